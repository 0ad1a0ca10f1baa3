// Command bench measures nap's planner side by side with Karpenter's scheduler
// and prints a table; with -write it writes the table, with the machine it was
// measured on, into the documentation.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/fleets"
	"github.com/nodeautoprovision/nap/bench/workload"
)

func main() { bench.Main("bench", run) }

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
	chosen, fleetsChosen, lives, err := choose(s.Only)
	if err != nil {
		return err
	}
	if *list {
		for _, w := range chosen {
			fmt.Fprintf(os.Stdout, "%-26s %6d pods  %s\n", w.Name, w.Pods, w.About)
		}
		for _, f := range fleetsChosen {
			fmt.Fprintf(os.Stdout, "%-26s %6d nodes %s\n", f.Name, f.Nodes, f.About)
		}
		for _, f := range lives {
			fmt.Fprintf(os.Stdout, "%-26s %6d nodes %s\n", f.Name, f.Nodes, f.About)
		}
		return nil
	}
	m := &measured{settings: s, write: *write, date: *date}
	for i := range chosen {
		m.plan(ctx, &chosen[i])
	}
	for _, f := range fleetsChosen {
		m.giveBack(ctx, f)
	}
	for _, f := range lives {
		m.live(ctx, f)
	}
	return m.finish(len(chosen) + len(fleetsChosen) + len(lives))
}

// choose finds the workloads, fleets and lives whose names match.
func choose(pattern string) ([]workload.Workload, []fleets.Fleet, []fleets.Churn, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("-only %q: must be a regular expression: %w", pattern, err)
	}
	var chosen []fleets.Fleet
	for _, f := range fleets.All() {
		if re.MatchString(f.Name) {
			chosen = append(chosen, f)
		}
	}
	var lives []fleets.Churn
	for _, f := range fleets.Churns() {
		if re.MatchString(f.Name) {
			lives = append(lives, f)
		}
	}
	planned, err := workload.Select(pattern)
	if err != nil && len(chosen)+len(lives) > 0 {
		return nil, chosen, lives, nil
	}
	return planned, chosen, lives, err
}

// measured is what has been measured so far.
type measured struct {
	settings    bench.Settings
	write, date string
	plans       []*bench.Row
	fleets      []*fleets.Row
	lives       []*fleets.LivedRow
	failed      error
}

func (m *measured) plan(ctx context.Context, w *workload.Workload) {
	if ctx.Err() != nil {
		return // Interrupted: what is measured so far still counts.
	}
	row, err := bench.Run(ctx, w, m.settings)
	if err != nil {
		m.tell(ctx, err)
		return
	}
	fmt.Fprintln(os.Stderr, row.Summary())
	m.plans = append(m.plans, row)
	m.document()
}

func (m *measured) giveBack(ctx context.Context, f fleets.Fleet) {
	if ctx.Err() != nil {
		return
	}
	row, err := fleets.Run(ctx, f, fleets.Settings{SkipUpstream: m.settings.SkipUpstream, UpstreamTimeout: m.settings.UpstreamTimeout})
	if err != nil {
		m.tell(ctx, err)
		return
	}
	fmt.Fprintf(os.Stderr, "%s is measured\n", f.Name)
	m.fleets = append(m.fleets, row)
	m.document()
}

func (m *measured) live(ctx context.Context, f fleets.Churn) {
	if ctx.Err() != nil {
		return
	}
	row, err := fleets.RunChurn(ctx, f, fleets.Settings{SkipUpstream: m.settings.SkipUpstream})
	if err != nil {
		m.tell(ctx, err)
		return
	}
	fmt.Fprintf(os.Stderr, "%s is measured\n", f.Name)
	m.lives = append(m.lives, row)
	m.document()
}

func (m *measured) tell(ctx context.Context, err error) {
	if ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// finish prints the tables, and fails when anything is missing.
func (m *measured) finish(wanted int) error {
	if len(m.plans) > 0 {
		m.failed = errors.Join(m.failed, bench.WriteTable(os.Stdout, m.plans))
	}
	if len(m.fleets) > 0 {
		fmt.Fprintln(os.Stdout)
		m.failed = errors.Join(m.failed, bench.WriteFleets(os.Stdout, m.fleets))
	}
	if len(m.lives) > 0 {
		fmt.Fprintln(os.Stdout)
		m.failed = errors.Join(m.failed, bench.WriteChurn(os.Stdout, m.lives))
	}
	if n := len(m.plans) + len(m.fleets) + len(m.lives); n < wanted && m.failed == nil {
		return fmt.Errorf("%d of %d workloads failed or were not reached", wanted-n, wanted)
	}
	return m.failed
}

// document writes the page again after every workload, so that a run that is
// stopped leaves what it measured.
func (m *measured) document() {
	if m.write == "" {
		return
	}
	var b bytes.Buffer
	err := bench.WriteDocument(&b, m.date, m.settings, m.plans, m.fleets, m.lives)
	if err == nil {
		err = os.WriteFile(m.write, b.Bytes(), 0o644)
	}
	if err != nil {
		m.failed = fmt.Errorf("write the table: %w", err)
	}
}
