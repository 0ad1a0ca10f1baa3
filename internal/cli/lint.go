package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/poollint"
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
dollars below the cheapest machine, overlaps at equal weight, and pinned images
on nodes that never expire. What the API server refuses is for nap plan and nap
convert to say.

Exit codes: 0 nothing was found, 1 the input was not understood, 2 something was
found.`,
		Example: `  nap lint -f docs/examples/spot.yaml
  nap lint --context aks -o json`,
		Args: cobra.NoArgs,
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
	excluded := source.Excluded
	if excluded == nil { // a catalogue of the user's own says nothing of it
		excluded = func(string) string { return "" }
	}
	var pools []poollint.Pool
	for _, name := range slices.Sorted(maps.Keys(in.pools)) {
		p := in.pools[name]
		_, costErr := kube.NodeCost(p)
		_, limitErr := kube.CostLimit(p)
		if err := cmp.Or(costErr, limitErr); err != nil {
			return fmt.Errorf("NodePool %s: %w", name, err)
		}
		catalog, err := source.Catalog(ctx, name)
		if err != nil {
			return err
		}
		entry := poollint.Pool{
			Pool: kube.Pool(p), Catalog: catalog, Excluded: excluded, NeverExpires: p.Spec.Template.Spec.ExpireAfter.Duration == nil,
		}
		if ref := p.Spec.Template.Spec.NodeClassRef; ref != nil && in.classes[ref.Name] != nil {
			entry.Image = in.classes[ref.Name].ImageVersion
		}
		pools = append(pools, entry)
	}
	limits := map[string]int64{}
	if in.told != nil && in.told.document != nil {
		for _, l := range in.told.document.Status.Quotas {
			limits[l.Name] = l.Limit
		}
	}
	return c.report(poollint.Lint(pools, limits), len(pools))
}

func (c *lintCommand) report(found []poollint.Finding, pools int) error {
	if isDocument(c.output) {
		document := map[string]any{"nodePools": pools, "findings": append([]poollint.Finding{}, found...)}
		if err := writeDocument(c.streams.Out, c.output, document); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(c.streams.Out, "%s, %s.\n", plural(pools, "NodePool"), plural(len(found), "finding"))
		for _, f := range found {
			fmt.Fprint(c.streams.Out, "\n", prose("NodePool %s: %s", f.NodePool, f.Code), prose("  %s", f.Message), prose("  fix: %s", f.Fix))
		}
	}
	if len(found) > 0 {
		return &command.ExitError{Code: exitFindings}
	}
	return nil
}
