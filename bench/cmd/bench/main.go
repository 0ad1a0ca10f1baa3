// Command bench measures nap's planner side by side with Karpenter's scheduler
// and prints a table; with -write it writes the table, with the machine it was
// measured on, into the documentation.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/workload"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	list := flag.Bool("list", false, "list the workloads and stop")
	write := flag.String("write", "", "also write the table to this file")
	date := flag.String("date", "", "the day of the measurement, for the file")
	s := bench.Settings{}
	flag.StringVar(&s.Only, "only", "", "measure the workloads whose names match this regular expression")
	flag.IntVar(&s.Pods, "pods", 0, "shrink every workload to about that many pods")
	flag.DurationVar(&s.Budget, "budget", 250*time.Millisecond, "nap's time to improve its first plan")
	flag.IntVar(&s.Repeat, "repeat", 3, "how often nap plans; the median counts")
	flag.BoolVar(&s.SkipUpstream, "skip-upstream", false, "leave Karpenter out")
	flag.DurationVar(&s.UpstreamTimeout, "upstream-timeout", 5*time.Minute, "stop Karpenter after that")
	flag.Parse()
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case s.Repeat < 1:
		return fmt.Errorf("-repeat: got %d, must be at least 1", s.Repeat)
	case *write != "" && *date == "":
		return fmt.Errorf("-write needs -date, the day of the measurement")
	}
	chosen, err := workload.Select(s.Only)
	if err != nil {
		return err
	}
	if *list {
		for _, w := range chosen {
			fmt.Fprintf(os.Stdout, "%-26s %6d pods  %s\n", w.Name, w.Pods, w.About)
		}
		return nil
	}
	var rows []*bench.Row
	for i := range chosen {
		row, err := bench.Run(ctx, &chosen[i], s)
		if ctx.Err() != nil {
			break // Interrupted: what is measured so far still counts.
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			continue
		}
		fmt.Fprintln(os.Stderr, row.Summary())
		rows = append(rows, row)
		if *write == "" {
			continue
		}
		if err := document(*write, *date, s, rows); err != nil {
			return err
		}
	}
	if err := bench.WriteTable(os.Stdout, rows); err != nil {
		return err
	}
	if len(rows) < len(chosen) {
		return fmt.Errorf("%d of %d workloads failed or were not reached", len(chosen)-len(rows), len(chosen))
	}
	return nil
}

// document writes the page anew after every workload, so that a run that is
// stopped leaves what it measured.
func document(path, date string, s bench.Settings, rows []*bench.Row) error {
	var b bytes.Buffer
	if err := bench.WriteDocument(&b, date, s, rows); err != nil {
		return err
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}
