// Package clitest is what the tests of nap's command lines share: running a command
// line in the process, golden files, and the manners that every command has.
package clitest

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// Main is a program's main function without the process around it.
type Main func(ctx context.Context, args []string, s command.Streams) int

// Run runs a command line and returns what it wrote and its exit code.
func (main Main) Run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = main(t.Context(), args, command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	return out.String(), errs.String(), code
}

// Golden compares with testdata/NAME.txt of the package under test, or writes it where
// the flag -rewrite is set.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if f := flag.Lookup("rewrite"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("output differs from %s, see -rewrite (-want +got):\n%s", path, diff)
	}
}

// columns is how wide a screen is.
const columns = 80

// Help checks that every command of a tree shows its help, says in a few words what it
// does, and explains itself in lines that fit a screen.
func (main Main) Help(t *testing.T, root *cobra.Command) {
	t.Helper()
	words := len(strings.Fields(root.CommandPath()))
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		args := append(strings.Fields(cmd.CommandPath())[words:], "--help")
		out, errs, code := main.Run(t, args...)
		if errs != "" || code != 0 || !strings.Contains(out, "Usage:\n  "+cmd.CommandPath()) {
			t.Errorf("%s --help: exit code %d, stderr %q, stdout:\n%s", cmd.CommandPath(), code, errs, out)
		}
		if strings.HasSuffix(cmd.Short, ".") || cmd.Short == "" {
			t.Errorf("%s: short description %q, want a few words without a full stop", cmd.CommandPath(), cmd.Short)
		}
		for line := range strings.Lines(cmd.Long) {
			if line = strings.TrimSuffix(line, "\n"); len([]rune(line)) > columns {
				t.Errorf("%s --help: a line of %d columns: %s", cmd.CommandPath(), len([]rune(line)), line)
			}
		}
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() && !sub.DisableFlagParsing {
				visit(sub)
			}
		}
	}
	visit(root)
}

// Mistake is a command line that cannot work and how the message begins.
type Mistake struct {
	Args []string
	Want string
}

// Mistakes checks that each mistake gets one line on standard error and exit code 1.
func (main Main) Mistakes(t *testing.T, tests map[string]Mistake) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out, errs, code := main.Run(t, tc.Args...)
			if out != "" {
				t.Errorf("stdout = %q, want nothing", out)
			}
			if !strings.HasPrefix(errs, tc.Want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("stderr = %q\nwant one line that begins with %q", errs, tc.Want)
			}
			if code != 1 {
				t.Errorf("exit code = %d, want 1", code)
			}
		})
	}
}
