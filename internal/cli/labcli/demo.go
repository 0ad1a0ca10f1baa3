package labcli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
)

func newLabDemo(s command.Streams, dir *string) *cobra.Command {
	o := upOptions{}
	keep := false
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the main job: pending pods become machines, and machines go back",
		Long: `Start a lab, and show on it what nap is for: pods that fit nowhere become
virtual machines, nodes and running pods; a GPU pod gets its own; spot capacity
runs out and on-demand takes over; the deployment shrinks and the machines go
back.

The control plane and the API calls to Azure are real, Azure and the kubelets
are simulated, with time running faster. Exit code 1 means that a step failed.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.dir = *dir
			if !cmd.Flags().Changed("dir") {
				o.dir = filepath.Join(lab.DefaultDir, "demo")
			}
			return labDemo(cmd.Context(), s, o, keep)
		},
	}
	// No fixed machines: every pod of the demo needs one to be bought. Plain machines:
	// what they boot from, nap writes.
	o.addFlags(cmd.Flags(), 0, config.ModeVMs)
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the lab running afterwards, to look around")
	return cmd
}

// labDemo plays the demo on a fresh lab.
func labDemo(ctx context.Context, s command.Streams, o upOptions, keep bool) error {
	story, err := scenario.Story("demo")
	if err != nil {
		return err
	}
	if err := discard(ctx, s, o.dir); err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "Azure is simulated and runs %g times faster than the real one; the control plane is real.\n", o.azure.Speed)
	o.detach = true
	began := time.Now()
	if err := labUp(ctx, command.Streams{In: s.In, Out: s.Err, Err: s.Err}, o); err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "the lab is ready after %.1f s\n", time.Since(began).Seconds())
	played := cloud.Play(ctx, o.dir, story, s.Out)
	if played == nil {
		fmt.Fprintf(s.Out, "the whole took %.1f s\n", time.Since(began).Seconds())
	}
	if keep {
		flag := lab.DirFlag(o.dir)
		fmt.Fprintf(s.Out, `
The lab is still there. Look around, and stop it when you are done:

  export KUBECONFIG=%s
  kubectl get nodepools,nodeclaims,nodes,pods
  nap lab status%[2]s
  nap lab logs controller%[2]s
  nap lab down%[2]s
`, filepath.Join(o.dir, "kubeconfig"), flag)
		return played
	}
	if played != nil {
		fmt.Fprintf(s.Err, "the lab's logs are in %s\n", filepath.Join(o.dir, "logs"))
	}
	// Interrupted or not, nothing is left running.
	_, err = lab.Down(context.WithoutCancel(ctx), o.dir)
	return errors.Join(played, err)
}

// discard removes what an earlier demo left, so that each starts from nothing.
func discard(ctx context.Context, s command.Streams, dir string) error {
	stopped, err := lab.Down(ctx, dir)
	if errors.Is(err, lab.ErrNoLab) {
		return nil
	}
	if err != nil {
		return err
	}
	if stopped {
		fmt.Fprintf(s.Err, "stopped the lab that an earlier demo had left in %s\n", dir)
	}
	return os.RemoveAll(dir)
}
