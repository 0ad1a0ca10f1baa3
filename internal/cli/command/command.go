// Package command is what the command lines of nap's programs have in common:
// streams, exit codes, how errors are printed, how a cluster is found.
//
// What a command computes goes to standard output, what it has to say about it
// to standard error, so that output can be piped. Errors are one message that
// begins with "nap: " and ends with what to do; several are a line each. Exit codes are 0 for success, 1
// for failure, 130 after an interrupt, and others only where a command documents them ([ExitError]).
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/nodeautoprovision/nap/internal/mask"
)

// Streams are where a command reads and writes.
type Streams struct {
	In  io.Reader
	Out io.Writer // data
	Err io.Writer // talk
	// Program is how commands of nap that an answer offers begin; empty for "nap".
	Program string
}

// Offered is a command that an answer offers, as it has to be typed here.
func (s Streams) Offered(command string) string {
	if rest, is := strings.CutPrefix(command, "nap "); is && s.Program != "" {
		return s.Program + " " + rest
	}
	return command
}

// ExitError ends the program with a code of its own. Err may be nil: then nothing
// is printed, because the output has said it all.
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

// Run executes the root command with the arguments that follow the program's name
// and returns the exit code. It takes over the root's streams and error messages.
func Run(ctx context.Context, root *cobra.Command, args []string, s Streams) int {
	root.SilenceUsage, root.SilenceErrors = true, true
	out := &remembering{to: s.Out}
	root.SetIn(s.In)
	root.SetOut(out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see: %s --help", legible(err), cmd.CommandPath())
	})
	root.SetArgs(args)
	root.InitDefaultCompletionCmd(args...)
	for _, sub := range root.Commands() {
		if sub.Name() == "completion" { // cobra's own, which answers a shell that it does not know with its help
			Group(sub)
		}
	}
	err := cmp.Or(root.ExecuteContext(ctx), out.err)
	if err == nil {
		return 0
	}
	exit := &ExitError{Code: 1, Err: err}
	errors.As(err, &exit)
	if ctx.Err() != nil {
		exit = interrupted(exit)
	}
	if exit.Err != nil {
		text := mask.Text(exit.Err.Error()) // errors of HTTP clients have the address of a proxy as it was given
		fmt.Fprintf(s.Err, "nap: %s\n", strings.ReplaceAll(folded(text), "\n", "\nnap: "))
	}
	return exit.Code
}

// folded is an error on one line that has paragraphs, as those of client libraries may have; nap's
// own have none, and several errors stay a line each.
func folded(text string) string {
	if !strings.Contains(strings.Trim(text, "\n"), "\n\n") {
		return text
	}
	var line []string
	for p := range strings.SplitSeq(text, "\n\n") {
		if words := strings.Join(strings.Fields(p), " "); words != "" {
			line = append(line, strings.TrimSuffix(words, "."))
		}
	}
	return strings.Join(line, ". ")
}

// exitInterrupted is the exit code by which shells know that Ctrl-C has ended a program.
const exitInterrupted = 130

// interrupted is how a command ends that a signal has ended: whatever it was about to do, it says
// that it was interrupted. What failed for another reason ends as it would have.
func interrupted(exit *ExitError) *ExitError {
	said := exit.Error()
	switch {
	case strings.HasPrefix(said, "interrupted"): // and where
		return &ExitError{Code: exitInterrupted, Err: exit.Err}
	case errors.Is(exit, context.Canceled), strings.Contains(said, context.Canceled.Error()): // not all libraries wrap it
		return &ExitError{Code: exitInterrupted, Err: errors.New("interrupted")}
	}
	return exit
}

// remembering keeps the first error of a writer, for cobra drops those of its help.
type remembering struct {
	to  io.Writer
	err error
}

// Write implements io.Writer.
func (r *remembering) Write(text []byte) (int, error) {
	n, err := r.to.Write(text)
	r.err = cmp.Or(r.err, err)
	return n, err
}

// legible says of a flag's value what is allowed, where the library names a function of Go.
func legible(err error) error {
	must := MustBe(err)
	if must == "" {
		return err
	}
	var wrong *pflag.InvalidValueError
	errors.As(err, &wrong)
	return fmt.Errorf("--%s: got %q, must be %s", wrong.GetFlag().Name, wrong.GetValue(), must)
}

// MustBe is what a flag takes whose value was refused with an error, such as "a whole number";
// empty where the error says so itself.
func MustBe(err error) string {
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return ""
	}
	switch wrong.GetFlag().Value.Type() {
	case "uint64":
		return "a whole number of zero or more"
	case "int", "int64":
		return "a whole number"
	case "float64":
		return "a number"
	case "bool":
		return "true or false"
	case "duration":
		if _, is := time.ParseDuration(wrong.GetValue()); is != nil { // else it is refused for another reason
			return "a duration such as 90s, 15m or 2h"
		}
	}
	return ""
}

// ShownAs makes a root command call itself by the words that start it, such as
// "nap lab", in its help and errors.
func ShownAs(root *cobra.Command, words string) *cobra.Command {
	if root.Annotations == nil {
		root.Annotations = map[string]string{}
	}
	root.Annotations[cobra.CommandDisplayNameAnnotation] = words
	return root
}

// IsTerminal reports whether a person is likely to read what is written to w.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Group makes a command that only has subcommands: alone it shows its help, and
// with a word that it does not know it says which ones it does.
func Group(cmd *cobra.Command) *cobra.Command {
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

// NoArgs refuses arguments of a command that has no subcommands either, where cobra's own says
// that it does not know one.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no arguments, got %q; see: %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// Exactly accepts one argument and names it in the error otherwise.
func Exactly(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return fmt.Errorf("exactly one %s is needed, got %d; see: %s --help", name, len(args), cmd.CommandPath())
	}
}
