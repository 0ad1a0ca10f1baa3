// Command mutants takes single conditions, calls and fields out of nap and says which of
// these losses no test notices. It fails if one survives that
// bench/mutants/testdata/survivors.txt does not explain.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/mutants"
)

func main() { bench.Main("mutants", run) }

type options struct {
	only, match *regexp.Regexp
	n           int
	seed        uint64
	list        bool
}

func run(ctx context.Context) error {
	only := flag.String("only", "", "regular expression: only packages whose folder matches")
	match := flag.String("match", "", "regular expression: only mutants whose name matches, all of them")
	n := flag.Int("n", 20, "how many mutants of each package to judge; 0: all")
	seed := flag.Uint64("seed", 1, "of the choice")
	list := flag.Bool("list", false, "print the mutants that would be judged, and judge none")
	timeout := flag.Duration("timeout", 15*time.Minute, "after which tests of a package count as failed")
	flag.Parse()
	o := options{n: *n, seed: *seed, list: *list}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if o.match, err = regexp.Compile(*match); err != nil {
		return fmt.Errorf("-match: %w", err)
	}
	if *match != "" {
		o.n = 0
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if *n < 0 || *timeout <= 0 {
		return fmt.Errorf("-n must not be negative and -timeout positive, got %d and %s", *n, *timeout)
	}
	scratch, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	return judge(ctx, mutants.Runner{Root: root, Scratch: scratch, Timeout: *timeout}, o)
}

// choice is what a run is to judge.
type choice struct {
	targets []mutants.Target
	// all are the mutants of the targets, picked those to judge, by the targets' folders.
	all    []mutants.Mutant
	picked map[string][]mutants.Mutant
	known  mutants.Survivors
}

// judge chooses mutants and prints a line per survivor and one per package.
func judge(ctx context.Context, r mutants.Runner, o options) error {
	c, stale, err := choose(r.Root, o)
	if err != nil {
		return err
	}
	wrong := len(stale)
	for _, name := range stale {
		fmt.Fprintln(os.Stdout, "no longer there, remove it from the list:", name)
	}
	if o.list {
		c.show()
	} else {
		survived, err := c.judge(ctx, r)
		if err != nil {
			return err
		}
		wrong += survived
	}
	if wrong > 0 {
		return fmt.Errorf("%d findings: write a test that notices, or state the reason in bench/mutants/testdata/survivors.txt", wrong)
	}
	return nil
}

// choose picks mutants, and names listed survivors whose code is gone.
func choose(root string, o options) (c choice, stale []string, err error) {
	if c.known, err = mutants.ReadSurvivors(filepath.Join(root, "bench/mutants/testdata/survivors.txt")); err != nil {
		return choice{}, nil, err
	}
	c.picked = map[string][]mutants.Mutant{}
	for _, target := range mutants.Targets() {
		if !o.only.MatchString(target.Dir) {
			continue
		}
		found, err := mutants.Find(root, target.Dir)
		if err != nil {
			return choice{}, nil, err
		}
		stale = append(stale, c.known.Stale(found)...)
		if some := mutants.Sample(matching(found, o.match), o.n, o.seed); len(some) > 0 {
			c.all, c.targets, c.picked[target.Dir] = append(c.all, found...), append(c.targets, target), some
		}
	}
	if len(c.targets) == 0 {
		return choice{}, nil, errors.New("nothing matches -only and -match; -list prints what there is")
	}
	return c, stale, nil
}

// show prints the mutants that would be judged.
func (c choice) show() {
	for _, target := range c.targets {
		for _, m := range c.picked[target.Dir] {
			fmt.Fprintf(os.Stdout, "%s:%d %s\n", m.File, m.Line, m.Name())
		}
	}
}

// judge judges the picked mutants and returns how many survived without a reason.
func (c choice) judge(ctx context.Context, r mutants.Runner) (int, error) {
	suite, err := r.Prepare(ctx, c.targets, c.all)
	if err != nil {
		return 0, err
	}
	wrong := 0
	for _, target := range c.targets {
		survived, err := one(ctx, suite, target.Dir, c.picked[target.Dir], c.known)
		if err != nil {
			return 0, err
		}
		wrong += survived
	}
	return wrong, nil
}

func matching(all []mutants.Mutant, match *regexp.Regexp) []mutants.Mutant {
	var out []mutants.Mutant
	for _, m := range all {
		if match.MatchString(m.Name()) {
			out = append(out, m)
		}
	}
	return out
}

// one judges the mutants of a package and returns how many survived without a reason.
func one(ctx context.Context, s *mutants.Suite, dir string, picked []mutants.Mutant, known mutants.Survivors) (int, error) {
	count, wrong := map[mutants.Outcome]int{}, 0
	err := s.Judge(ctx, picked, func(m mutants.Mutant, outcome mutants.Outcome) {
		count[outcome]++
		if outcome != mutants.Survived && outcome != mutants.Unreached || known[m.Name()] != "" {
			return
		}
		wrong++
		fmt.Fprintf(os.Stdout, "%s, line %d: %s\n", outcome, m.Line, m.Name())
	})
	if err != nil {
		return 0, err
	}
	survived := count[mutants.Survived] + count[mutants.Unreached]
	fmt.Fprintf(os.Stdout, "%-40s %3d judged: %d killed, %d survived (%d with a reason, %d reached by no test), %d do not compile\n",
		strings.TrimPrefix(dir, "internal/"), len(picked), count[mutants.Killed], survived,
		survived-wrong, count[mutants.Unreached], count[mutants.Invalid])
	return wrong, nil
}
