package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/lab/binary"
)

// program is another program of nap, which has the commands below one word of
// nap's command line.
type program struct {
	// name is the file's name, without the ending that some systems add.
	name string
	// find returns the path of the program, and may build it.
	find func(ctx context.Context, s command.Streams) (string, error)
}

// newLab is "nap lab": the commands of nap-lab.
func newLab(s command.Streams) *cobra.Command {
	p := program{name: binary.Name, find: func(ctx context.Context, s command.Streams) (string, error) {
		return binary.Ensure(ctx, func(line string) { fmt.Fprintln(s.Err, line) })
	}}
	cmd := p.command(s, &cobra.Command{
		Use:   "lab",
		Short: "Run a real control plane and a simulated Azure on this machine",
	})
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && args[0] == "build" {
			return buildLab(cmd.Context(), args[1:], s)
		}
		if path, err := p.beside(); err == nil && os.Getenv(binary.Variable) == "" && asksForHelp(args) {
			return replaceProcess(cmd.Context(), path, args, s) // a question is no reason to build it again
		}
		return run(cmd, args)
	}
	return cmd
}

// asksForHelp reports whether the words of a command line ask for help alone.
func asksForHelp(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return len(args) == 0 || args[0] == "help" || slices.Contains(args, "--help") || slices.Contains(args, "-h")
}

// newController is "nap controller": the commands of nap-controller.
func newController(s command.Streams) *cobra.Command {
	p := program{name: "nap-controller"}
	p.find = func(context.Context, command.Streams) (string, error) { return p.beside() }
	return p.command(s, &cobra.Command{
		Use:   "controller",
		Short: "Run the controller: buy nodes for pending pods, remove nodes that are not needed",
	})
}

// command makes the word of nap's command line that stands for the program. Flags
// and arguments go to the program as they are, and so do questions of the shell's
// completion.
func (p *program) command(s command.Streams, cmd *cobra.Command) *cobra.Command {
	cmd.DisableFlagParsing = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path, err := p.find(cmd.Context(), s)
		if err != nil {
			return err
		}
		return replaceProcess(cmd.Context(), path, args, s)
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		path, err := p.beside()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return askCompletion(cmd.Context(), path, append(args, toComplete))
	}
	return cmd
}

// beside finds the program in the folder of the program that runs, or in PATH.
func (p *program) beside() (string, error) {
	name := p.name
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if self, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("the program %s is missing: put it beside nap or in PATH; in a checkout, run: make build", name)
	}
	return path, nil
}

// askCompletion asks a program what could come next, in the form that cobra speaks:
// a line each, and last a colon with the directive.
func askCompletion(ctx context.Context, path string, words []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	out, err := exec.CommandContext(ctx, path, append([]string{cobra.ShellCompRequestCmd}, words...)...).Output()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []cobra.Completion
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, ":") {
			break
		}
		found = append(found, line)
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// buildLab is "nap lab build", which comes before there is a nap-lab.
func buildLab(ctx context.Context, args []string, s command.Streams) error {
	cmd := command.ShownAs(&cobra.Command{
		Use:   "build",
		Short: "Build the lab's program, if it is missing or its sources have changed",
		Long: `Build nap-lab, the program with the control plane, the simulated Azure and the
lab's commands, from a checkout of nap's sources. "nap lab up" does that by
itself; this is for scripts that want to do it beforehand. The path of the
program is printed.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := binary.Ensure(cmd.Context(), func(line string) { fmt.Fprintln(s.Err, line) })
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(s.Out, path)
			return err
		},
	}, "nap lab build")
	if code := command.Run(ctx, cmd, args, s); code != 0 {
		return &command.ExitError{Code: code}
	}
	return nil
}

// runChild runs a program to its end as a child, with nap's streams, and ends with
// its exit code. It is for systems that cannot replace the process, and for tests.
func runChild(ctx context.Context, path string, args []string, s command.Streams) error {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.In, s.Out, s.Err
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &command.ExitError{Code: exit.ExitCode()}
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", path, err)
	}
	return nil
}
