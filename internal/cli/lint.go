package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/poollint"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// exitFindings is the exit code of nap lint where it found something.
const exitFindings = 2

// lintCommand is "nap lint" before it runs.
type lintCommand struct {
	streams command.Streams
	input   inputFlags
	output  string
}

func newLint(s command.Streams) *cobra.Command {
	c := &lintCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "lint",
		Short: "Say what is unwise about NodePools",
		Long: `Look at NodePools together with the catalogue, and on a live cluster with its
quota: NodePools that can buy nothing, sizes that AKS does not take, one size
only, spot without fallback, no limits, limits above the quota, limits in
dollars below the cheapest machine, overlaps at equal weight, pinned images on
nodes that never expire, and managed GPUs without the preview feature that AKS
wants for them, as the controller of a live cluster knows it. What the API
server refuses is for nap plan and nap convert to say.

Exit codes: 0 nothing was found, 1 the input was not understood, 2 something was
found.`,
		Example: `  nap lint -f docs/examples/spot.yaml
  nap lint --context aks -o json`,
		Args: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.input.add(cmd)
	addOutput(cmd, &c.output, textForms())
	return cmd
}

func (c *lintCommand) run(ctx context.Context) error {
	if err := checkOutput(c.output, textForms()); err != nil {
		return err
	}
	in, err := c.input.read(ctx, c.streams.In)
	if err != nil {
		return err
	}
	if len(in.problems) > 0 {
		return errors.Join(in.problems...)
	}
	if !c.input.live() && !slices.ContainsFunc(in.manifests, func(m kube.Manifest) bool { _, is := m.Object.(*v1.NodePool); return is }) {
		return errors.New("nothing to look at: the input has no NodePool")
	}
	source, err := in.source(ctx, c.input.catalogFlags)
	if err != nil {
		return err
	}
	pools, err := lintedPools(ctx, in, source)
	if err != nil {
		return err
	}
	subscription := poollint.Subscription{Limits: map[string]int64{}}
	if in.told != nil && in.told.document != nil {
		for _, l := range in.told.document.Status.Quotas {
			subscription.Limits[l.Name] = l.Limit
		}
	}
	known := false
	if c.input.live() {
		if known, subscription.NoManagedGPU, err = c.managedGPU(ctx); err != nil {
			return err
		}
	}
	if !known {
		c.noteManagedGPU(pools)
	}
	c.noteNames(pools)
	for _, name := range slices.Sorted(maps.Keys(in.pools)) {
		for _, note := range kube.AnnotationNotes(in.pools[name]) {
			sayNote(c.streams.Err, "%s", note)
		}
	}
	return c.report(poollint.Lint(pools, subscription), len(pools))
}

// lintedPools are the NodePools of the input with what they are judged by.
func lintedPools(ctx context.Context, in *planInput, source *offline.Source) ([]poollint.Pool, error) {
	var pools []poollint.Pool
	for _, name := range slices.Sorted(maps.Keys(in.pools)) {
		p := in.pools[name]
		_, costErr := kube.NodeCost(p)
		_, limitErr := kube.CostLimit(p)
		_, untilErr := kube.FrozenUntil(p)
		if err := cmp.Or(costErr, limitErr, untilErr); err != nil {
			return nil, fmt.Errorf("NodePool %s: %w", name, err)
		}
		catalog, err := source.Catalog(ctx, name)
		if err != nil {
			return nil, err
		}
		entry := poollint.Pool{
			Pool: kube.Pool(p), Catalog: catalog, Lacking: poollint.Lacking{Excluded: source.Excluded, Unknown: source.Unknown},
			NeverExpires: p.Spec.Template.Spec.ExpireAfter.Duration == nil,
		}
		if err := kube.CheckManaged(p); err != nil {
			entry.Invalid = err.Error()
		}
		if ref := p.Spec.Template.Spec.NodeClassRef; ref != nil && in.classes[ref.Name] != nil {
			class := in.classes[ref.Name]
			entry.Image, entry.ManagedGPU = class.ImageVersion, class.NVIDIAManagement == nodeclass.NVIDIAManaged
		}
		pools = append(pools, entry)
	}
	return pools, nil
}

// managedGPU reports whether the controller of a live cluster has looked at the
// prerequisites, and whether it has found that AKS makes no machines with managed GPUs.
func (c *lintCommand) managedGPU(ctx context.Context) (known, missing bool, err error) {
	config, err := c.input.cluster.Config(ctx)
	if err != nil {
		return false, false, err
	}
	reader, err := ownKinds(config)
	if err != nil {
		return false, false, err
	}
	mode := &v1alpha1.NodeAutoProvisioning{}
	err = reader.Get(ctx, client.ObjectKey{Name: v1alpha1.NodeAutoProvisioningName}, mode)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		return false, false, nil
	case err != nil:
		return false, false, fmt.Errorf("read NodeAutoProvisioning %s: %w", v1alpha1.NodeAutoProvisioningName, err)
	}
	looked := meta.FindStatusCondition(mode.Status.Conditions, v1alpha1.ConditionPrerequisites)
	known = looked != nil && looked.Status != metav1.ConditionUnknown
	return known, slices.Contains(mode.Status.UnmetPrerequisites, prerequisites.RowManagedGPU), nil
}

// noteManagedGPU names the NodePools that may need the preview feature, where nothing tells
// whether it is registered.
func (c *lintCommand) noteManagedGPU(pools []poollint.Pool) {
	var names []string
	for i := range pools {
		if pools[i].NeedsManagedGPU() {
			names = append(names, pools[i].Name)
		}
	}
	if len(names) > 0 {
		sayNote(c.streams.Err, "where AKS makes the machines, NodePool %s needs the preview feature %s: nap doctor says whether it is registered",
			strings.Join(names, ", "), prerequisites.FeatureManagedGPU)
	}
}

// noteNames tells of sizes of which nothing is known, and of names that are too long for plain
// machines.
func (c *lintCommand) noteNames(pools []poollint.Pool) {
	for i := range pools {
		if sizes := poollint.UnknownSizes(&pools[i]); len(sizes) > 0 {
			sayNote(c.streams.Err, "NodePool %s names %s: nap's built-in table lacks %s and does not tell whether the region sells %s",
				pools[i].Name, strings.Join(sizes, ", "), itOrThem(len(sizes)), itOrThem(len(sizes)))
		}
		if note := longName(pools[i].Name); note != "" {
			sayNote(c.streams.Err, "%s", note)
		}
	}
}

func itOrThem(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// lintReport is nap lint -o json. Its fields are a promise: docs/plan-json.md documents them.
type lintReport struct {
	Findings []poollint.Finding `json:"findings"`
	// NodePools is how many NodePools were looked at.
	NodePools int `json:"nodePools"`
}

func (c *lintCommand) report(found []poollint.Finding, pools int) error {
	if isDocument(c.output) {
		document := lintReport{Findings: append([]poollint.Finding{}, found...), NodePools: pools}
		if err := writeDocument(c.streams.Out, c.output, document); err != nil {
			return err
		}
	} else {
		var text strings.Builder
		fmt.Fprintf(&text, "%s, %s.\n", plural(pools, "NodePool"), plural(len(found), "finding"))
		for _, f := range found {
			fmt.Fprint(&text, "\n", prose("NodePool %s: %s", f.NodePool, f.Code), prose("  %s", f.Message), prose("  fix: %s", f.Fix))
		}
		if _, err := io.WriteString(c.streams.Out, text.String()); err != nil {
			return err
		}
	}
	if len(found) > 0 {
		return &command.ExitError{Code: exitFindings}
	}
	return nil
}
