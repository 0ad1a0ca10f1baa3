package labcli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
)

func newLabUpgrade(s command.Streams, dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "upgrade [VERSION]",
		Short: "Upgrade the control plane to the next Kubernetes version",
		Long: `Upgrade the lab's control plane by one minor version: to VERSION, as 1.37, or to
the next. The API server, the controller manager and the scheduler start again
as that version, and the simulated Azure says so of the cluster; etcd and the
nodes stay as they are, as with "az aks upgrade --control-plane-only". nap then
replaces the nodes that it has made, within the window for Kubernetes versions.

There is one program for all versions: it plays an earlier one when the lab was
started with "nap lab up --kubernetes 1.36" (Kubernetes' --emulated-version).`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			version, err := cloud.Upgrade(cmd.Context(), *dir, strings.Join(args, ""))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.Out, "the control plane serves Kubernetes %s\n", version)
			return err
		},
	}
}

func newLabPublishImage(s command.Streams, dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "publish-image VERSION",
		Short: "Publish a node image version in the simulated Azure",
		Long: `Publish a version of every node image in the simulated Azure, as AKS does about
once a week. VERSION is as 202606.16.0: year and month, day, number. The newest
one is what new machines run, and older nodes have drifted.`,
		Args: command.Exactly("VERSION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAzure(*dir, func(azure *cloud.Client) error {
				if err := azure.PublishImages(cmd.Context(), args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintf(s.Out, "node image version %s is published\n", args[0])
				return err
			})
		},
	}
}

func newLabWindow(s command.Streams, dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "window WINDOW STATE",
		Short: "Open, close or remove a maintenance window of the cluster",
		Long: `Set a maintenance window of the lab's cluster. WINDOW is node-images
(aksManagedNodeOSUpgradeSchedule) or kubernetes (aksManagedAutoUpgradeSchedule).
STATE is open, from now on for four hours each day; closed, until twelve hours
from now; or none, without which nodes may be replaced at any time.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("one WINDOW (%s) and one STATE (%s) are needed, got %d words; see: %s --help",
					strings.Join(scenario.Windows(), ", "), strings.Join(scenario.WindowStates(), ", "), len(args), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAzure(*dir, func(azure *cloud.Client) error {
				if err := azure.SetWindow(cmd.Context(), args[0], args[1]); err != nil {
					return err
				}
				text := args[1]
				if text == scenario.WindowNone {
					text = "removed"
				}
				_, err := fmt.Fprintf(s.Out, "the window for %s is %s\n", args[0], text)
				return err
			})
		},
	}
}

func newLabUpgradeNap(s command.Streams, dir *string) *cobra.Command {
	rollback := false
	cmd := &cobra.Command{
		Use:   "upgrade-nap NAME=VALUE...",
		Short: "Roll nap out again with other settings, or as it was before",
		Long: `Apply the chart of the lab's release again with settings of the controller
changed, each named by its variable, and wait until the replicas are replaced,
as helm upgrade does. With --rollback the release is again as it was before.`,
		Example: `  nap lab upgrade-nap LOG_LEVEL=debug
  nap lab upgrade-nap --rollback`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case rollback && len(args) > 0:
				return fmt.Errorf("--rollback takes no settings, got %q", args)
			case rollback:
				if err := cloud.RollbackNap(cmd.Context(), *dir); err != nil {
					return err
				}
				_, err := fmt.Fprintln(s.Out, "nap runs as before its last upgrade")
				return err
			case len(args) == 0:
				return fmt.Errorf("a setting is missing; give at least one as LOG_LEVEL=debug, or --rollback")
			}
			for _, a := range args {
				if name, _, ok := strings.Cut(a, "="); !ok || name == "" {
					return fmt.Errorf("%q is not NAME=VALUE", a)
				}
			}
			if err := cloud.UpgradeNap(cmd.Context(), *dir, args); err != nil {
				return err
			}
			_, err := fmt.Fprintln(s.Out, "nap runs with", strings.Join(args, " "))
			return err
		},
	}
	cmd.Flags().BoolVar(&rollback, "rollback", false, "go back to the settings before the last upgrade")
	return cmd
}
