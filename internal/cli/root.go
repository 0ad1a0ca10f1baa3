// Package cli is the command line of nap: one file per command, and Main, which
// runs the one that was typed.
//
// What a command computes goes to standard output, what it has to say about it
// to standard error, so that output can be piped. Errors are one message that
// begins with "nap: " and ends with what to do. Exit codes are 0 for success, 1
// for failure, and others only where a command documents them (ExitError).
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Streams are where a command reads and writes.
type Streams struct {
	In  io.Reader
	Out io.Writer // data
	Err io.Writer // talk
}

// ExitError ends nap with a code of its own. Err may be nil: then nothing is
// printed, because the output has said it all.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Main runs nap with the arguments that follow the program's name and returns
// the exit code. The version is what "nap version" prints.
func Main(ctx context.Context, args []string, version string, s Streams) int {
	root := newRoot(version, s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	exit := &ExitError{Code: 1, Err: err}
	errors.As(err, &exit)
	if exit.Err != nil {
		fmt.Fprintf(s.Err, "nap: %v\n", exit.Err)
	}
	return exit.Code
}

// isTerminal reports whether a person is likely to read what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func newRoot(version string, s Streams) *cobra.Command {
	root := group(&cobra.Command{
		Use:   "nap",
		Short: "Provision Kubernetes nodes on Azure, and prove the price",
		Long: `nap buys virtual machines for pods that cannot be scheduled, and gives them
back when fewer or cheaper ones would do.

To see it work on this machine, without Azure and without containers:

  nap lab up`,
		SilenceUsage:  true,
		SilenceErrors: true,
	})
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see: %s --help", err, cmd.CommandPath())
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		newLab(s),
		newController(s),
		newPlan(s),
		newCatalog(s),
		newExplain(s),
		newVersion(version, s),
	)
	return root
}

// group makes a command that only has subcommands: alone it shows its help, and
// with a word that it does not know it says which ones it does.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var known []string
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				known = append(known, sub.Name())
			}
		}
		return fmt.Errorf("unknown command %q for %q; there are: %s", args[0], cmd.CommandPath(), strings.Join(known, ", "))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

func newVersion(version string, s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of nap",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(s.Out, "nap %s\n", version)
			return err
		},
	}
}
