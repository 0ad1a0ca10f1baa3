// Command objects measures both engines on large clusters that exist as objects in a real
// API server, without kubelets, and prints a table; with -write it puts it into the
// documentation.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
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

func run(ctx context.Context) (err error) {
	nodes := flag.String("nodes", "500,2000,5000", "the sizes of clusters, in nodes, with ten times the pods")
	engines := flag.String("engines", "karpenter,nap", "which engines are measured: nap, karpenter")
	controller := flag.String("controller", "bin/nap-controller", "the controller's program")
	keep := flag.String("keep", "", "the folder for labs and logs; a temporary one if empty")
	profile := flag.Bool("profile", false,
		"write processor profiles of the start, of the time at rest, of changed and of single pods beside the logs; wants -keep")
	starts := flag.Int("starts", 1, "how often the start is measured; the median counts")
	soon := flag.Bool("soon", false, "leave out the time at rest, and waiting until no node is young")
	write := flag.String("write", "", "also write the table into this page, between its marks")
	record := flag.String("record", "bench/objects/testdata/figures.json",
		"the figures of the page; with -write those of this run take the place of the same sizes' and engines'")
	flag.Parse()
	if *profile && *keep == "" {
		return errors.New("-profile: name the folder for profiles with -keep")
	}
	if *starts < 1 {
		return fmt.Errorf("-starts %d: must be at least 1", *starts)
	}
	if *soon && *write != "" {
		return errors.New("-soon: the table that -write writes has a column of the time at rest; leave one of them out")
	}
	ctrllog.SetLogger(logr.Discard()) // the caches of this program have nothing to tell
	sizes, err := parse(*nodes)
	if err != nil {
		return err
	}
	chosen := strings.Split(*engines, ",")
	for _, e := range chosen {
		if !slices.Contains([]string{"nap", "karpenter"}, e) {
			return fmt.Errorf("-engines %q: allowed are nap and karpenter, with a comma between", *engines)
		}
	}
	lab, err := binary.Installed(ctx, func(line string) { fmt.Fprintln(os.Stderr, line) })
	if err != nil {
		return err
	}
	if *keep == "" {
		if *keep, err = os.MkdirTemp("", "objects"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(*keep)) }()
	}
	opts := objects.Options{
		Programs: onlab.Programs{Lab: lab, Controller: *controller}, Dir: *keep, Profile: *profile, Soon: *soon, Starts: *starts,
	}
	var all []*objects.Figures
	for _, n := range sizes {
		for _, engine := range chosen {
			fmt.Fprintf(os.Stderr, "%s on %d nodes\n", engine, n)
			f, err := objects.Measure(ctx, opts, engine, objects.SizeOf(n))
			if err != nil {
				return fmt.Errorf("%s on %d nodes: %w", engine, n, err)
			}
			all = append(all, f)
			if err := keepFigures(f, *record, *write); err != nil { // whatever fails later
				return err
			}
		}
	}
	return objects.WriteTable(os.Stdout, all)
}

// keepFigures prints figures, and puts them into the record and the page if there is one.
func keepFigures(f *objects.Figures, record, page string) error {
	if err := objects.WriteTable(os.Stderr, []*objects.Figures{f}); err != nil || page == "" {
		return err
	}
	r, err := objects.ReadRecord(record)
	if err != nil {
		return err
	}
	r = r.With(f)
	var text strings.Builder
	if err := objects.WriteTable(&text, r); err != nil {
		return err
	}
	return errors.Join(r.Write(record), bench.WriteBetweenMarks(page, "objects", text.String()))
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
