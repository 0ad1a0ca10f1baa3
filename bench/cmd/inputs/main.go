// Command inputs measures what `nap plan -f` takes for short files of many things, and prints a
// table; with -write it puts it into the documentation.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/inputs"
)

func main() { bench.Main("inputs", run) }

func run(ctx context.Context) error {
	nap := flag.String("nap", "bin/nap", "the program that is measured")
	size := flag.Int("bytes", 1_500_000, "how long each file is at most")
	only := flag.String("only", "", "a regular expression for the names of kinds, all if empty")
	runs := flag.Int("runs", 2, "how often each file is planned for: the fastest run counts")
	keep := flag.String("keep", "", "the folder for the files; a temporary one if empty")
	write := flag.String("write", "", "also write the table into this file, between its marks")
	flag.Parse()
	if *size < 1 || *runs < 1 {
		return fmt.Errorf("-bytes and -runs must be at least 1, got %d and %d", *size, *runs)
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	dir := *keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "nap-inputs-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	var all []*inputs.Measured
	kinds := inputs.Kinds()
	for i := range kinds {
		if !wanted.MatchString(kinds[i].Name) {
			continue
		}
		fmt.Fprintln(os.Stderr, kinds[i].Name)
		m, err := inputs.Measure(ctx, *nap, dir, &kinds[i], *size, *runs)
		if err != nil {
			return err
		}
		all = append(all, m)
	}
	if len(all) == 0 {
		return fmt.Errorf("-only: no kind is called so; there are %s", inputs.Names())
	}
	text, err := inputs.Table(all)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(os.Stdout, text); err != nil || *write == "" {
		return err
	}
	return bench.WriteBetweenMarks(*write, "inputs", text)
}
