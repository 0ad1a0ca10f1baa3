// Package labcli is the command line of nap-lab, which users reach as "nap lab": it
// starts and stops labs, plays stories in them and breaks things.
package labcli

import (
	"context"
	"fmt"

	"github.com/nodeautoprovision/nap/internal/cli/command"

	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/internal/lab"
)

// Main runs a command of the lab with the arguments that follow the program's name,
// and returns the exit code. Users type these commands as "nap lab ...".
func Main(ctx context.Context, args []string, s command.Streams) int {
	return command.Run(ctx, newLab(s), args, s)
}

func newLab(s command.Streams) *cobra.Command {
	var dir string
	cmd := command.Group(&cobra.Command{
		Use:   "nap-lab",
		Short: "Run a real control plane and a simulated Azure on this machine",
		Long: `A lab is a cluster on this machine, without containers: a real Kubernetes
control plane (etcd, kube-apiserver, kube-scheduler, kube-controller-manager), a
simulated Azure whose machines join as nodes, and nap's controller, all on
127.0.0.1, with everything they write in one folder. Labs in different folders
run side by side.`,
	})
	command.ShownAs(cmd, "nap lab")
	cmd.CompletionOptions.HiddenDefaultCmd = true // people run "nap lab", not this program
	cmd.PersistentFlags().StringVar(&dir, "dir", lab.DefaultDir, "the lab's folder")
	cmd.AddCommand(
		newLabUp(s, &dir),
		newLabDown(s, &dir),
		newLabStatus(s, &dir),
		newLabLogs(s, &dir),
		newLabRestart(s, &dir),
		newLabRun(s, &dir),
		newLabDemo(s, &dir),
		newLabFaultCommand(s, &dir),
		newLabUpgrade(s, &dir),
		newLabUpgradeNap(s, &dir),
		newLabPublishImage(s, &dir),
		newLabWindow(s, &dir),
	)
	return cmd
}

func newLabDown(s command.Streams, dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the lab",
		Long: `Stop the lab and everything that belongs to it. The folder stays: "nap lab up"
continues with its data. To start afresh, delete the folder.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			stopped, err := lab.Down(cmd.Context(), *dir)
			if err != nil {
				return err
			}
			if stopped {
				fmt.Fprintf(s.Err, "the lab in %s is stopped; its data is kept\n", *dir)
			} else {
				fmt.Fprintf(s.Err, "the lab in %s was not running\n", *dir)
			}
			return nil
		},
	}
}

func newLabRestart(s command.Streams, dir *string) *cobra.Command {
	return &cobra.Command{
		Use:               "restart COMPONENT",
		Short:             "Restart a part of the lab and wait until it is ready",
		Args:              command.Exactly("COMPONENT"),
		ValidArgsFunction: completeParts(dir, (*lab.State).PartNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := lab.Restart(cmd.Context(), *dir, args[0]); err != nil {
				return err
			}
			fmt.Fprintf(s.Err, "%s is ready again\n", args[0])
			return nil
		},
	}
}

func newLabLogs(s command.Streams, dir *string) *cobra.Command {
	o := lab.LogOptions{}
	const allTail = 20
	cmd := &cobra.Command{
		Use:   "logs [COMPONENT]",
		Short: "Print the log of a part of the lab, or the end of all logs",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("one component at most, got %d; see: %s --help", len(args), cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: completeParts(dir, (*lab.State).LogNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Part = args[0]
			} else if !cmd.Flags().Changed("tail") {
				o.Tail = allTail
			}
			return lab.Logs(cmd.Context(), *dir, o, s.Out)
		},
	}
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "continue to print what is added, until Ctrl-C")
	cmd.Flags().IntVar(&o.Tail, "tail", -1,
		fmt.Sprintf("how many of the last lines; -1 means all, and %d of each log without COMPONENT", allTail))
	return cmd
}

// completeParts lets the shell complete the names of the lab's parts.
func completeParts(dir *string, names func(*lab.State) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		s, err := lab.Inspect(*dir)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(s), cobra.ShellCompDirectiveNoFileComp
	}
}
