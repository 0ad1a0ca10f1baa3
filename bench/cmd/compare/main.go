// Command compare runs the planner's benchmarks of a commit and of the sources at hand in
// turns, and prints a table of times and memory; with -write it puts the table into the
// documentation.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/compare"
)

func main() { bench.Main("compare", run) }

func run(ctx context.Context) (err error) {
	base := flag.String("base", "", "the commit to compare with")
	rounds := flag.Int("rounds", 10, "how often each benchmark of each side runs")
	each := flag.Duration("each", 200*time.Millisecond, "how long about one run of a benchmark lasts")
	write := flag.String("write", "", "also write the table into this file, between its marks")
	flag.Parse()
	switch {
	case *base == "":
		return errors.New("-base: got nothing, want a commit, for instance main~1")
	case *rounds < 1:
		return fmt.Errorf("-rounds: got %d, must be at least 1", *rounds)
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	sources := filepath.Join(dir, "sources")
	remove, err := compare.CheckOut(ctx, root, *base, sources)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	var sides []*compare.Side
	for i, from := range []string{sources, root} {
		to := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
		side, err := compare.Build(ctx, []string{"commit " + *base, "this code"}[i], from, to)
		if err != nil {
			return err
		}
		sides = append(sides, side)
	}
	rows, err := compare.Measure(ctx, sides[0], sides[1], *rounds, *each, func(suite string, round int) {
		fmt.Fprintf(os.Stderr, "%s: round %d of %d\n", suite, round, *rounds)
	})
	if err != nil {
		return err
	}
	table := compare.Table(sides[0].Name, sides[1].Name, *rounds, rows)
	if _, err := fmt.Fprint(os.Stdout, table); err != nil || *write == "" {
		return err
	}
	return bench.WriteBetweenMarks(*write, "compare", table)
}
