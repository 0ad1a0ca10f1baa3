// Command conformance runs the suites that Karpenter and its Azure provider publish
// against nap, and writes docs/conformance.md from what came of them.
//
//	conformance api [-suite NAME,...]       the definitions that nap ships; minutes
//	conformance cluster [-suite NAME,...] [-engine nap|karpenter] [-focus REGEXP] [-limit DURATION] [-again]
//	conformance page                        writes the page again from the record
//
// Results stay in the record, and "cluster" runs only specs that have none yet, unless
// -again is given; so a run that was interrupted continues.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/nodeautoprovision/nap/bench/conformance"
)

func main() {
	played, err := conformance.Play(os.Args, os.Environ())
	if !played {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = execute(ctx, os.Args[1:])
		stop()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "conformance: %v\n", err)
		os.Exit(1)
	}
}

// settings are the flags of all commands.
type settings struct {
	dir, lab, provider, record, page, suites string
	cluster                                  conformance.Selection
}

func execute(ctx context.Context, args []string) error {
	var o settings
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.StringVar(&o.dir, "dir", "bin/conformance", "folder for compiled suites, labs and logs")
	flags.StringVar(&o.lab, "lab", "bin/nap-lab", "the program nap-lab, with nap-controller beside it")
	flags.StringVar(&o.provider, "provider", "", "checkout of karpenter-provider-azure to take where its module cannot be downloaded")
	flags.StringVar(&o.record, "record", "bench/conformance/testdata/results.json", "file with all results")
	flags.StringVar(&o.page, "page", "docs/conformance.md", "page to write the tables into; empty for none")
	flags.StringVar(&o.suites, "suite", "", "suites to run, by comma; empty for all")
	o.cluster.AddFlags(flags)
	if len(args) == 0 {
		return errors.New("give api, cluster or page")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}
	record, err := conformance.ReadRecord(o.record)
	if err != nil {
		return err
	}
	switch args[0] {
	case "api":
		err = o.runAPI(ctx, record)
	case "cluster":
		err = o.runCluster(ctx, record)
	case "page":
	default:
		return fmt.Errorf("%q: allowed are api, cluster and page", args[0])
	}
	if o.page == "" {
		return err
	}
	return errors.Join(err, conformance.WritePage(o.page, record))
}

func (o settings) workspace() (*conformance.Workspace, error) {
	modules := map[string]string{}
	if o.provider != "" {
		modules[conformance.ProviderModule] = o.provider
	}
	return conformance.NewWorkspace(o.dir, o.lab, modules)
}

func (o settings) named(kind conformance.Kind) ([]conformance.Suite, error) {
	var names []string
	if o.suites != "" {
		names = strings.Split(o.suites, ",")
	}
	return conformance.Named(kind, names)
}

// runAPI runs the suites of kind API. That a spec fails or a suite cannot be run is an
// error, but the others are run all the same.
func (o settings) runAPI(ctx context.Context, record *conformance.Record) error {
	w, err := o.workspace()
	if err != nil {
		return err
	}
	suites, err := o.named(conformance.API)
	if err != nil {
		return err
	}
	var misses []error
	for _, s := range suites {
		specs, err := w.RunAPI(ctx, s)
		if err != nil {
			misses = append(misses, err)
			fmt.Fprintf(os.Stdout, "%-24s not run: %v\n", s.Name, err)
			continue
		}
		record.SetAPI(s.Name, specs)
		tally := record.API[s.Name]
		fmt.Fprintf(os.Stdout, "%-24s %d of %d passed\n", s.Name, tally.Passed, tally.Specs)
		for _, spec := range specs {
			if spec.State != conformance.Passed {
				misses = append(misses, fmt.Errorf("%s: %s: %s", s.Name, spec.State, spec.Text))
				fmt.Fprintf(os.Stdout, "  %s: %s\n    %s\n", spec.State, spec.Text, spec.Message)
			}
		}
	}
	if len(misses) > 0 {
		err = fmt.Errorf("%d misses, the first: %w", len(misses), misses[0])
	}
	return errors.Join(err, record.Write(o.record))
}

func (o settings) runCluster(ctx context.Context, record *conformance.Record) error {
	w, err := o.workspace()
	if err != nil {
		return err
	}
	suites, err := o.named(conformance.Cluster)
	if err != nil {
		return err
	}
	save := func() error {
		if err := record.Write(o.record); err != nil || o.page == "" {
			return err
		}
		return conformance.WritePage(o.page, record)
	}
	return w.RunCluster(ctx, suites, o.cluster, record, save, func(line string) { fmt.Fprintln(os.Stdout, line) })
}
