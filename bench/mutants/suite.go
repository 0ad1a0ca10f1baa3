package mutants

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Suite is packages' mutants, compiled into the tests that must notice them, and what is
// known of these tests.
type Suite struct {
	runner  Runner
	targets map[string]Target // by the packages' folders
	// numbers are those of the switches, from 1, by the mutants' names; a mutant without a
	// number is compiled alone.
	numbers  map[string]int
	binaries []*binary
	// reached are the tests that get where a mutant makes a difference, by number.
	reached map[int][]timedTest
}

// timedTest is a test and how long it takes.
type timedTest struct {
	binary *binary
	name   string
	took   time.Duration
}

// Prepare compiles the tests of the targets with all mutants of the targets in them and runs
// each test once, with none of the mutants on. An error means that a mutant would look
// killed for a reason of its own.
func (r Runner) Prepare(ctx context.Context, targets []Target, all []Mutant) (*Suite, error) {
	code, err := r.instrument(ctx, all)
	if err != nil {
		return nil, err
	}
	s := &Suite{runner: r, targets: map[string]Target{}, numbers: code.numbers, reached: map[int][]timedTest{}}
	var folders []string
	for _, t := range targets {
		s.targets[t.Dir] = t
		folders = append(folders, t.Tests...)
	}
	slices.Sort(folders)
	for _, folder := range slices.Compact(folders) {
		b, err := r.compile(ctx, folder, code.overlay)
		if err != nil {
			return nil, err
		}
		s.binaries = append(s.binaries, b)
	}
	return s, s.measure(ctx)
}

// measure runs each test alone and writes down how long it takes and what it reaches.
func (s *Suite) measure(ctx context.Context) error {
	var tests []timedTest
	for _, b := range s.binaries {
		names, err := b.list(ctx)
		if err != nil {
			return err
		}
		for _, name := range names {
			tests = append(tests, timedTest{binary: b, name: name})
		}
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, t := range tests {
		group.Go(func() error {
			began := time.Now()
			reached, err := t.binary.record(ctx, t.name, s.runner.Timeout)
			if err != nil {
				return err
			}
			t.took = time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			for _, n := range reached {
				s.reached[n] = append(s.reached[n], t)
			}
			return nil
		})
	}
	return group.Wait()
}

// Judge judges mutants and tells of each, in about their order.
func (s *Suite) Judge(ctx context.Context, picked []Mutant, tell func(Mutant, Outcome)) error {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, m := range picked {
		group.Go(func() error {
			outcome, err := s.judge(ctx, m)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			tell(m, outcome)
			return nil
		})
	}
	return group.Wait()
}

// judge runs the tests that reach a mutant against it until one fails, the fastest first.
func (s *Suite) judge(ctx context.Context, m Mutant) (Outcome, error) {
	target := s.targets[path.Dir(m.File)]
	n := s.numbers[m.Name()]
	if n == 0 {
		return s.runner.judgeAlone(ctx, m, target.Tests)
	}
	tests := slices.DeleteFunc(slices.Clone(s.reached[n]), func(t timedTest) bool { return !slices.Contains(target.Tests, t.binary.folder) })
	if len(tests) == 0 {
		return Unreached, nil
	}
	for _, some := range batches(tests) {
		passed, err := some[0].binary.pass(ctx, n, some, s.runner.Timeout)
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.Name(), err)
		}
		if !passed {
			return Killed, nil
		}
	}
	return Survived, nil
}

// firstBatch is about what it takes to start a test's process twice.
const firstBatch = 500 * time.Millisecond

// batches sorts tests and divides them into runs, each of one binary: few fast ones first, since most
// mutants are killed at once, then ever more, since each run begins a process.
func batches(tests []timedTest) [][]timedTest {
	slices.SortFunc(tests, func(a, b timedTest) int {
		return cmp.Or(cmp.Compare(a.took, b.took), cmp.Compare(a.name, b.name))
	})
	var out [][]timedTest
	for most := firstBatch; len(tests) > 0; most *= 3 {
		end, sum := 1, tests[0].took
		for end < len(tests) && sum+tests[end].took <= most {
			sum += tests[end].took
			end++
		}
		byBinary := map[*binary][]timedTest{}
		var order []*binary
		for _, t := range tests[:end] {
			if byBinary[t.binary] == nil {
				order = append(order, t.binary)
			}
			byBinary[t.binary] = append(byBinary[t.binary], t)
		}
		for _, b := range order {
			out = append(out, byBinary[b])
		}
		tests = tests[end:]
	}
	return out
}
