package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/cli/command"
)

func newEnable(s command.Streams, now func() time.Time) *cobra.Command {
	o := &operator{streams: s, now: now}
	return enableCommand(o, newEnabler(o))
}

// enableCommand is the command with what it works with.
func enableCommand(o *operator, e *enabler) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "enable",
		Short: "Install nap in an AKS cluster and switch it on, or switch it on again after nap disable",
		Long: `With --resource-group and --name: read the AKS cluster, check what it must have
(nap doctor), and make what nap needs, each thing unless it is there: in Azure
an identity, its federated credential, two custom roles with their assignments,
and an agent pool of mode Machines; in the cluster the Helm releases nap-crd and
nap, which helm upgrade takes over. Then wait until nap is ready.

A run that was stopped, or failed, is finished by the next one. --dry-run looks,
and prints for each thing the command that makes it and the one that removes it:
for those who may not make roles, and ask an owner to. --undo removes what was
made, and refuses while nap has machines.

Without them: undo nap disable, also one that was stopped half way. NodePools
get the limits or replicas back that they had, the taint
karpenter.azure.com/disable goes, and spec.mode of NodeAutoProvisioning default
becomes Auto. What you have changed meanwhile stays: a limit that is not 0 any
more is left as it is.

Exit codes: 0 all is as it should be; 1 something failed, run it again; 2
something else has to be done first, which the message says; 3 all is made, and
nap was not ready in time.`,
		Example: `  nap enable --resource-group rg --name cluster --image registry.example/nap:v1 --dry-run
  nap enable --resource-group rg --name cluster --image registry.example/nap:v1
  nap enable --resource-group rg --name cluster --image registry.example/nap:v1 --dry-run -o json
  nap enable --resource-group rg --name cluster --undo
  nap enable`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.checkOutput(); err != nil {
				return err
			}
			if !e.wanted(cmd.Flags()) {
				return o.enable(cmd.Context())
			}
			return e.run(cmd.Context(), cmd.Flags())
		},
	}
	o.add(cmd)
	o.addOutput(cmd)
	e.add(cmd.Flags())
	return cmd
}

// enable opens the NodePools, and switches the mode first: a machine that is bought in
// between is bought in mode Auto.
func (o *operator) enable(ctx context.Context) error {
	if err := o.connect(ctx); err != nil {
		return err
	}
	mode, err := o.mode(ctx)
	if err != nil {
		return err
	}
	pools, err := o.nodePools(ctx)
	if err != nil {
		return err
	}
	if mode.Spec.Mode != v1alpha1.ModeAuto {
		if err := o.switchMode(ctx, v1alpha1.ModeAuto); err != nil {
			return err
		}
	} else {
		o.say("The mode is Auto already.")
	}
	var opened []string
	for i := range pools {
		change, err := opening(&pools[i])
		if err != nil {
			return err
		}
		if change == nil {
			continue
		}
		if err := o.write(ctx, kindNodePool, pools[i].Name, change); err != nil {
			return err
		}
		opened = append(opened, pools[i].Name)
	}
	if len(opened) > 0 {
		o.say("Opened again: %s.", strings.Join(opened, ", "))
	} else {
		o.say("No NodePool was closed by nap disable.")
	}
	if o.dryRun && !o.forPrograms() && mode.Spec.Mode == v1alpha1.ModeAuto && len(opened) == 0 {
		_, err := fmt.Fprintln(o.streams.Out, "Nothing would be written: the mode is Auto, and nap disable has closed no NodePool.")
		return err
	}
	return o.tellPrograms()
}

// opening is the patch that undoes what nap disable has done to a NodePool; nil where that
// is nothing.
func opening(p *v1.NodePool) (map[string]any, error) {
	taints := slices.DeleteFunc(slices.Clone(p.Spec.Template.Spec.Taints), func(t corev1.Taint) bool { return t.Key == disableTaint })
	text, remembered := p.Annotations[v1beta1.AnnotationBeforeDisable]
	if !remembered && len(taints) == len(p.Spec.Template.Spec.Taints) {
		return nil, nil
	}
	change := map[string]any{}
	if len(taints) < len(p.Spec.Template.Spec.Taints) {
		change = templateTaints(taints)
	}
	if !remembered {
		return change, nil
	}
	was := before{}
	if err := json.Unmarshal([]byte(text), &was); err != nil {
		return nil, fmt.Errorf("NodePool %s: annotation %s: got %q, must be what nap disable has written: "+
			"set the limits by hand and remove it: %w", p.Name, v1beta1.AnnotationBeforeDisable, text, err)
	}
	change["metadata"] = map[string]any{"annotations": map[string]any{v1beta1.AnnotationBeforeDisable: nil}}
	if !closedAlready(p) {
		return change, nil // it was opened by hand
	}
	spec, has := change["spec"].(map[string]any)
	if !has {
		spec = map[string]any{}
		change["spec"] = spec
	}
	switch {
	case was.Replicas != nil:
		spec["replicas"] = *was.Replicas
	case was.CPU != nil:
		spec["limits"] = map[string]any{"cpu": *was.CPU}
	default:
		spec["limits"] = map[string]any{"cpu": nil}
	}
	return change, nil
}
