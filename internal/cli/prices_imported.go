package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/azure/price/billing"
	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// exitPart is the exit code where a part was not imported.
const exitPart = 2

// imported is what nap prices import has read.
type imported struct {
	region string
	now    time.Time
	terms  price.Terms
	// counts say what was imported, a line for each part; notes are what a person should
	// know of it.
	counts, notes []string
	// lacking is what Azure refuses.
	lacking []*billing.Refusal
	// until is the day on which the first reservation ends; zero where none says.
	until time.Time
}

// without goes on without what Azure refuses; other errors end the import.
func (i *imported) without(err error) error {
	var refusal *billing.Refusal
	switch {
	case !errors.As(err, &refusal):
		return err
	case refusal.Retail:
		i.counts = append(i.counts, refusal.Error())
	default:
		i.lacking = append(i.lacking, refusal)
	}
	return nil
}

// write writes the prices to a file, - being standard output, and says what they are made of.
func (i *imported) write(s command.Streams, file string) error {
	missing := i.missing()
	if missing != nil && len(i.counts) == 0 {
		return missing
	}
	if _, err := os.Stat(file); missing != nil && file != "-" && err == nil {
		return fmt.Errorf("%w\n%s stays as it was; what is left goes to standard output without -o: %s",
			missing, file, strings.Join(i.counts, "; "))
	}
	text, err := i.text()
	if err != nil {
		return err
	}
	for _, line := range slices.Concat(i.notes, i.counts) {
		fmt.Fprintln(s.Err, line)
	}
	if file == "-" {
		_, err = s.Out.Write(text)
	} else if err = replaceFile(file, text); err == nil {
		fmt.Fprintln(s.Err, "wrote "+file)
	}
	if err != nil || missing == nil {
		return err
	}
	return &command.ExitError{Code: exitPart, Err: fmt.Errorf("%w\nimported all the same: %s", missing, strings.Join(i.counts, "; "))}
}

// missing is what Azure refuses as an error; nil where it gives all.
func (i *imported) missing() error {
	var errs []error
	for _, refusal := range i.lacking {
		errs = append(errs, refusal)
	}
	return errors.Join(errs...)
}

// text is the file.
func (i *imported) text() ([]byte, error) {
	terms, err := yaml.Marshal(i.terms)
	if err != nil {
		return nil, err
	}
	text := fmt.Appendf(nil, "# What the subscription pays in %s, imported at %s.\n", i.region, i.now.UTC().Format(time.RFC3339))
	for _, refusal := range i.lacking {
		text = fmt.Appendf(text, "# It lacks %s.\n", refusal.What)
	}
	if !i.until.IsZero() {
		text = fmt.Appendf(text, "# The first of the reservations ends on %s: import again then.\n", i.until.Format(time.DateOnly))
	}
	return append(text, terms...), nil
}

// checkFile refuses a form of output in the place of a file's name.
func checkFile(name string) error {
	if slices.Contains([]string{"", "json", "yaml", "wide", "csv"}, name) {
		return fmt.Errorf("--output-file: got %q, which is no file's name; the prices are YAML: give a file such as prices.yaml", name)
	}
	return nil
}

// replaceFile writes a file as a whole: until all of it is there, what was there stays.
func replaceFile(name string, text []byte) error {
	target, err := filepath.EvalSymlinks(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		target = name
	case err != nil:
		return fmt.Errorf("--output-file: %w", err)
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(target); err == nil {
		if !info.Mode().IsRegular() {
			return fmt.Errorf("--output-file: %s is no file; leave the flag out for standard output", name)
		}
		mode = info.Mode().Perm()
	}
	beside, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+"-*")
	if err != nil {
		return fmt.Errorf("--output-file %s: %w", name, err)
	}
	_, err = beside.Write(text)
	if err = errors.Join(err, beside.Chmod(mode), beside.Sync(), beside.Close()); err == nil {
		err = os.Rename(beside.Name(), target)
	}
	if err != nil {
		return fmt.Errorf("--output-file %s: %w", name, errors.Join(err, os.Remove(beside.Name())))
	}
	return nil
}
