// Command worst looks for the pod that costs the planner most and prints each dearer one
// that it finds, with what it states.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/worst"
)

func main() { bench.Main("worst", run) }

func run(ctx context.Context) error {
	tries := flag.Int("tries", 2000, "how many pods to plan")
	seed := flag.Uint64("seed", 1, "of the search")
	copies := flag.Int("copies", 20, "how often the dearest pod is planned at once in the end")
	flag.Parse()
	if *tries < 1 || *copies < 1 {
		return fmt.Errorf("-tries and -copies must be at least 1, got %d and %d", *tries, *copies)
	}
	b, err := worst.NewBench()
	if err != nil {
		return err
	}
	dearest := worst.Mix{}
	fmt.Fprintln(os.Stdout, "     time  allocated  bytes of JSON  the pod states")
	err = b.Search(ctx, rand.New(rand.NewPCG(*seed, 0)), *tries, func(m worst.Mix, c worst.Cost) {
		dearest = m
		fmt.Fprintf(os.Stdout, "%9s %7.1f MB %14d  %s\n", c.Time.Round(time.Millisecond/10), float64(c.Allocated)/(1<<20), m.Bytes(), words(m))
	})
	if err != nil {
		return err
	}
	c, err := b.Plan(ctx, dearest.Pod(), *copies)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "%d such pods at once: %s, %.1f MB\n", *copies, c.Time.Round(time.Millisecond), float64(c.Allocated)/(1<<20))
	return nil
}

func words(m worst.Mix) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if m[name] > 0 {
			out = append(out, fmt.Sprintf("%d %s", m[name], name))
		}
	}
	return strings.Join(out, ", ")
}
