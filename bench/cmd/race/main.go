// Command race lets engine nap and engine karpenter do the same work in turns on one
// lab, and prints medians and spread of what users and operators notice: when machines
// are ordered, when pods run, money, processor time, memory, requests.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/onlab"
	"github.com/nodeautoprovision/nap/bench/race"
	"github.com/nodeautoprovision/nap/internal/lab/binary"
)

func main() { bench.Main("race", run) }

func run(ctx context.Context) (err error) {
	only := flag.String("only", "", "run the courses whose names match this regular expression")
	rounds := flag.Int("rounds", 5, "how many turns each engine has at each course")
	engines := flag.String("engines", "nap,karpenter", "who races, in the order of turns")
	controller := flag.String("controller", "bin/nap-controller", "the controller's program")
	profile := flag.Int("profile", 0, "for how many seconds the controllers are profiled, from the beginning of a course")
	keep := flag.String("keep", "", "the folder for logs and profiles; a temporary one if empty")
	floor := flag.Bool("floor", true, "measure what the control plane takes by itself, too")
	write := flag.String("write", "", "also write the tables into this page, between their marks")
	record := flag.String("record", "bench/race/testdata/turns.json",
		"the turns of the page; with -write those of this run take the place of the same courses' and engines'")
	flag.Parse()
	chosen, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only %q: must be a regular expression: %w", *only, err)
	}
	if *rounds < 1 {
		return fmt.Errorf("-rounds: got %d, must be at least 1", *rounds)
	}
	lab, err := binary.Installed(ctx, func(line string) { fmt.Fprintln(os.Stderr, line) })
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "race")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if *keep == "" {
		*keep = dir
	} else if err := os.MkdirAll(*keep, 0o755); err != nil {
		return err
	}
	l, err := race.Start(ctx, onlab.Programs{Lab: lab, Controller: *controller}, dir+"/lab")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Stop()) }()
	var results []*race.Result
	for round := range *rounds {
		for _, course := range race.Courses() {
			if !chosen.MatchString(course.Name) {
				continue
			}
			opts := race.Options{Dir: *keep, Profile: *profile, Turn: round + 1}
			done, err := play(ctx, l, &course, strings.Split(*engines, ","), *floor && round == 0, opts)
			if err != nil {
				return fmt.Errorf("course %s: %w", course.Name, err)
			}
			results = append(results, done...)
		}
		// After every round: a run takes hours, and may be ended.
		if err := keepResults(results, *profile > 0, *record, *write); err != nil {
			return err
		}
	}
	return nil
}

// keepResults prints what has been played so far, and with a page writes it there.
func keepResults(results []*race.Result, profiled bool, record, page string) error {
	if profiled {
		return finish(page, "race-profile", func(w io.Writer) error { return race.WriteProfiles(w, results) })
	}
	if page == "" {
		return finish("", "race", func(w io.Writer) error { return race.WriteTable(w, results) })
	}
	turns, err := race.ReadRecord(record)
	if err != nil {
		return err
	}
	turns = turns.With(results)
	return errors.Join(turns.Write(record), finish(page, "race", func(w io.Writer) error { return race.WriteTable(w, turns) }))
}

// play lets every engine have a turn at a course, after the control plane alone where
// the floor is wanted.
func play(ctx context.Context, l *race.Lab, course *race.Course, engines []string, floor bool, opts race.Options) ([]*race.Result, error) {
	var results []*race.Result
	if floor && len(course.Before) == 0 {
		r, err := l.Floor(ctx, course, opts)
		if err != nil {
			return nil, fmt.Errorf("the floor: %w", err)
		}
		results = append(results, r)
	}
	for _, engine := range engines {
		r, err := l.Turn(ctx, course, engine, opts)
		if err != nil {
			return nil, fmt.Errorf("engine %s: %w", engine, err)
		}
		results = append(results, r)
		fmt.Fprintf(os.Stderr, "%s %-13s %-9s first claim %5.1f s, last %5.1f s, all running %5.1f s, %d machines bought, "+
			"$%.3f/h, CPU %.1f s, %d MB, %d requests\n", time.Now().Format(time.TimeOnly), r.Course, r.Engine,
			r.FirstClaim.Seconds(), r.LastClaim.Seconds(), r.AllRunning.Seconds(), r.Bought, r.Cost, r.CPU.Seconds(), r.Peak>>20, r.Requests)
	}
	return results, nil
}

// finish prints a table, and writes it into a page, if there is one, between the marks of
// that name.
func finish(page, marks string, table func(io.Writer) error) error {
	var text strings.Builder
	if err := table(&text); err != nil {
		return err
	}
	fmt.Fprint(os.Stdout, text.String())
	if page == "" {
		return nil
	}
	return bench.WriteBetweenMarks(page, marks, text.String())
}
