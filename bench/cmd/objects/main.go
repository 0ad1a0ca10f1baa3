// Command objects measures both engines on large clusters that exist as objects in a real
// API server, without kubelets, and prints a table; with -write it puts it into the
// documentation.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/objects"
	"github.com/nodeautoprovision/nap/bench/onlab"
	"github.com/nodeautoprovision/nap/internal/lab/binary"
)

func main() { bench.Main("objects", run) }

// flags are what the command line says.
type flags struct {
	nodes, engines, controller string
	keep, write, record        string
	profile, soon, standby     bool
	starts                     int
}

func parseFlags() (*flags, error) {
	f := &flags{}
	flag.StringVar(&f.nodes, "nodes", "500,2000,5000", "the sizes of clusters, in nodes, with ten times the pods")
	flag.StringVar(&f.engines, "engines", "karpenter,nap", "which engines are measured: nap, karpenter")
	flag.StringVar(&f.controller, "controller", "bin/nap-controller", "the controller's program")
	flag.StringVar(&f.keep, "keep", "", "the folder for labs and logs; a temporary one if empty")
	flag.BoolVar(&f.profile, "profile", false,
		"write processor profiles of the start, of the time at rest, of changed and of single pods beside the logs; wants -keep")
	flag.IntVar(&f.starts, "starts", 1, "how often the start is measured; the median counts")
	flag.BoolVar(&f.soon, "soon", false, "leave out the time at rest, and waiting until no node is young")
	flag.BoolVar(&f.standby, "standby", false, "measure the second of two replicas, which waits for the lease, and nothing else")
	flag.StringVar(&f.write, "write", "", "also write the table into this page, between its marks")
	flag.StringVar(&f.record, "record", "",
		"the figures of the page; with -write those of this run take the place of the same sizes' and engines' "+
			"(figures.json or standby.json in bench/objects/testdata)")
	flag.Parse()
	switch {
	case f.profile && f.keep == "":
		return nil, errors.New("-profile: name the folder for profiles with -keep")
	case f.starts < 1:
		return nil, fmt.Errorf("-starts %d: must be at least 1", f.starts)
	case f.soon && f.write != "":
		return nil, errors.New("-soon: the table that -write writes has a column of the time at rest; leave one of them out")
	case f.standby && (f.soon || f.profile || f.starts != 1):
		return nil, errors.New("-standby: a replica that waits has no -soon, -profile or -starts; leave them out")
	}
	for e := range strings.SplitSeq(f.engines, ",") {
		if !slices.Contains([]string{"nap", "karpenter"}, e) {
			return nil, fmt.Errorf("-engines %q: allowed are nap and karpenter, with a comma between", f.engines)
		}
	}
	return f, nil
}

func run(ctx context.Context) (err error) {
	f, err := parseFlags()
	if err != nil {
		return err
	}
	ctrllog.SetLogger(logr.Discard()) // the caches of this program have nothing to tell
	sizes, err := parse(f.nodes)
	if err != nil {
		return err
	}
	lab, err := binary.Installed(ctx, func(line string) { fmt.Fprintln(os.Stderr, line) })
	if err != nil {
		return err
	}
	if f.keep == "" {
		if f.keep, err = os.MkdirTemp("", "objects"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(f.keep)) }()
	}
	opts := objects.Options{
		Programs: onlab.Programs{Lab: lab, Controller: f.controller}, Dir: f.keep, Profile: f.profile, Soon: f.soon, Starts: f.starts,
	}
	if f.standby {
		return measure(ctx, f, sizes, page[*objects.Standby]{
			marks: "standby", record: "bench/objects/testdata/standby.json", write: objects.WriteStandbyTable,
			measure: func(ctx context.Context, engine string, size objects.Size) (*objects.Standby, error) {
				return objects.MeasureStandby(ctx, opts, engine, size)
			},
		})
	}
	return measure(ctx, f, sizes, page[*objects.Figures]{
		marks: "objects", record: "bench/objects/testdata/figures.json", write: objects.WriteTable,
		measure: func(ctx context.Context, engine string, size objects.Size) (*objects.Figures, error) {
			return objects.Measure(ctx, opts, engine, size)
		},
	})
}

// page is one kind of measurement and where its table goes.
type page[R objects.Row] struct {
	marks  string // the table's, on the page
	record string // the file of what earlier runs have measured
	// measure makes a cluster and measures an engine on it.
	measure func(ctx context.Context, engine string, size objects.Size) (R, error)
	write   func(w io.Writer, all []R) error
}

// measure measures each engine on each size, and keeps what is measured, whatever fails later.
func measure[R objects.Row](ctx context.Context, f *flags, sizes []int, p page[R]) error {
	if f.record != "" {
		p.record = f.record
	}
	var all []R
	for _, n := range sizes {
		for engine := range strings.SplitSeq(f.engines, ",") {
			fmt.Fprintf(os.Stderr, "%s on %d nodes\n", engine, n)
			row, err := p.measure(ctx, engine, objects.SizeOf(n))
			if err != nil {
				return fmt.Errorf("%s on %d nodes: %w", engine, n, err)
			}
			all = append(all, row)
			if err := p.keep(row, f.write); err != nil {
				return err
			}
		}
	}
	return p.write(os.Stdout, all)
}

// keep prints a row, and puts it into the record and the page if there is one.
func (p page[R]) keep(row R, into string) error {
	if err := p.write(os.Stderr, []R{row}); err != nil || into == "" {
		return err
	}
	r, err := objects.ReadRecord[R](p.record)
	if err != nil {
		return err
	}
	r = r.With(row)
	var text strings.Builder
	if err := p.write(&text, r); err != nil {
		return err
	}
	return errors.Join(r.Write(p.record), bench.WriteBetweenMarks(into, p.marks, text.String()))
}

func parse(list string) ([]int, error) {
	var out []int
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 10 {
			return nil, fmt.Errorf("-nodes %q: must be numbers from 10 on, with commas between", list)
		}
		out = append(out, n)
	}
	return out, nil
}
