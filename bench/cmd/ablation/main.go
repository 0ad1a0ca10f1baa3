// Command ablation measures what each part of the planner's portfolio earns, on the
// workloads of the benchmark and on generated clusters, and prints a table; with -write
// it puts the table into the documentation.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/ablation"
)

func main() { bench.Main("ablation", run) }

func run(ctx context.Context) error {
	usual := flag.Int("usual", 1000, "how many clusters of the usual kind to plan")
	wide := flag.Int("wide", 940, "how many clusters with everything that Karpenter understands")
	large := flag.Int("large", 60, "how many clusters with some hundred pods")
	first := flag.Uint64("first", 0, "the seed of the first cluster of each family; 0 for the usual one")
	only := flag.String("only", "", "plan only problems whose names begin with this, for instance \"W3/\"")
	workers := flag.Int("workers", 2, "how many problems to plan at the same time")
	write := flag.String("write", "", "also write the table into this file, between its marks")
	flag.Parse()
	var problems []ablation.Problem
	for _, p := range ablation.Problems(*usual, *wide, *large, *first) {
		if strings.HasPrefix(p.Name, *only) {
			problems = append(problems, p)
		}
	}
	switch {
	case *workers < 1:
		return fmt.Errorf("-workers: got %d, must be at least 1", *workers)
	case len(problems) == 0:
		return fmt.Errorf("-only %q: no problem's name begins with it", *only)
	}
	rows, err := ablation.Run(ctx, problems, *workers, func(done int) {
		fmt.Fprintf(os.Stderr, "%d of %d problems\n", done, len(problems))
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(os.Stdout, ablation.Table(rows)); err != nil || *write == "" {
		return err
	}
	return bench.WriteBetweenMarks(*write, "ablation", ablation.Table(rows))
}
