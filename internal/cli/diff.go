package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/model"
)

func newDiff(s command.Streams, now func() time.Time) *cobra.Command {
	c := &planCommand{streams: s, now: now, engine: engineNap}
	var from []string
	cmd := &cobra.Command{
		Use:   "diff -f FILE",
		Short: "Show what an edited NodePool or AKSNodeClass would do: drift, who moves, cost",
		Long: `Compare the cluster as it is with how it would be once the NodePools and
AKSNodeClasses of the files were applied: which nodes would drift and why, how
many pods would move, what is bought, and the price before and after. Nothing is
touched. The cluster is the live one, or what --from has.

Exit code 0: nothing would change. 2: something would. 1: an error, or a
NodePool that the API server would refuse.`,
		Example: `  nap diff -f pool.yaml
  nap diff -f docs/examples/nodepool.yaml --from docs/examples/fleet.yaml`,
		Args: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.runDiff(cmd.Context(), from) },
	}
	c.input.add(cmd)
	cmd.Flags().StringArrayVar(&from, "from", nil, "the cluster as files have it, instead of a live one (repeatable)")
	addOutput(cmd, &c.output, documentForms())
	c.policyFlags(cmd)
	return cmd
}

// driftedNode is a node that would be replaced.
type driftedNode struct {
	Node     string `json:"node"`
	NodePool string `json:"nodePool"`
	Reason   string `json:"reason"`
}

func (c *planCommand) runDiff(ctx context.Context, from []string) error {
	if err := checkOutput(c.output, documentForms()); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	if len(c.input.files) == 0 {
		return errors.New("no NodePool to compare: give one with -f FILE")
	}
	edited, err := (&inputFlags{files: c.input.files, catalogFlags: catalogFlags{region: c.input.region}}).read(ctx, c.streams.In)
	if err != nil {
		return err
	}
	if err := errors.Join(edited.problems...); err != nil {
		return err
	}
	if err := admitted(edited.manifests); err != nil {
		return err
	}
	c.input.files = from
	read, err := c.input.read(ctx, c.streams.In)
	if err != nil {
		return err
	}
	before, err := read.source(ctx, c.input.catalogFlags)
	if err != nil {
		return err
	}
	p := &comparison{}
	change := p.compare(read, edited)
	now, err := c.outcome(ctx, read, before, &fleetChange{})
	if err != nil {
		return err
	}
	after := *read
	after.classes, after.pools = maps.Clone(read.classes), maps.Clone(read.pools)
	maps.Copy(after.classes, edited.classes)
	for name, pool := range change.pools {
		after.pools[name] = pool.(*v1.NodePool)
	}
	if change.source, err = after.source(ctx, c.input.catalogFlags); err != nil {
		return err
	}
	then, err := c.outcome(ctx, read, change.source, change)
	if err != nil {
		return err
	}
	then.Evictions = change.evictions(read)
	p.Before, p.After = now, then
	read.talk(c.streams.Err, nil, before)
	if err := read.sayOffline(&c.streams, c.output); err != nil {
		return err
	}
	if err := p.writeDiff(c.streams.Out, c.output); err != nil {
		return err
	}
	if len(p.Suppose) > 0 {
		return &command.ExitError{Code: 2}
	}
	return nil
}

// writeDiff prints the comparison, or that there is nothing to compare.
func (p *comparison) writeDiff(w io.Writer, form string) error {
	if form == "table" && len(p.Suppose) == 0 {
		_, err := fmt.Fprintln(w, "Nothing would change: the files say what the cluster has.")
		return err
	}
	return p.write(w, form)
}

// compare finds what the files change, and the nodes that drift by it.
func (p *comparison) compare(read, edited *planInput) *fleetChange {
	f := &fleetChange{lost: map[string]bool{}, pools: map[string]client.Object{}}
	given := map[string]bool{}
	for _, m := range edited.manifests {
		if np, is := m.Object.(*v1.NodePool); is {
			given[np.Name] = true
		}
	}
	classes := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(edited.classes)) {
		old := read.classes[name]
		switch {
		case old == nil:
			p.Suppose = append(p.Suppose, "AKSNodeClass "+name+" is new")
		case !equality.Semantic.DeepEqual(old, edited.classes[name]):
			p.Suppose = append(p.Suppose, "AKSNodeClass "+name+" is changed")
			classes[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		np, old := edited.pools[name].DeepCopy(), read.pools[name]
		switch {
		case old == nil:
			p.Suppose = append(p.Suppose, "NodePool "+name+" is new")
		case equality.Semantic.DeepEqual(old.Spec, np.Spec):
			continue
		default:
			p.Suppose = append(p.Suppose, "NodePool "+name+" is changed")
			np.Status, np.UID = old.Status, old.UID
		}
		f.pools[name] = np
	}
	for _, o := range read.objects {
		node, is := o.(*corev1.Node)
		if !is {
			continue
		}
		pool := node.Labels[v1.NodePoolLabelKey]
		reason := ""
		if np, changed := f.pools[pool].(*v1.NodePool); changed && read.pools[pool] != nil {
			reason = driftOf(read.pools[pool], np, node)
		}
		if np := read.pools[pool]; reason == "" && np != nil && np.Spec.Template.Spec.NodeClassRef != nil &&
			classes[np.Spec.Template.Spec.NodeClassRef.Name] {
			reason = "NodeClassDrift"
		}
		if reason != "" {
			f.lost[node.Name] = true
			p.Drifted = append(p.Drifted, driftedNode{node.Name, pool, reason})
		}
	}
	slices.SortFunc(p.Drifted, func(x, y driftedNode) int { return strings.Compare(x.Node, y.Node) })
	return f
}

// driftOf is why a node of a NodePool drifts once that is edited, in Karpenter's words, or
// "".
func driftOf(before, after *v1.NodePool, node *corev1.Node) string {
	if before.Hash() != after.Hash() {
		return "NodePoolDrifted"
	}
	for i := range after.Spec.Template.Spec.Requirements {
		r := &after.Spec.Template.Spec.Requirements[i]
		value, known := node.Labels[r.Key]
		if !known { // nodes in files often lack labels that Azure's have
			continue
		}
		wanted := model.Requirement{Key: r.Key, Operator: model.Operator(r.Operator), Values: r.Values}
		if !wanted.Matches(value, true) {
			return fmt.Sprintf("RequirementsDrifted: %s is %s", r.Key, value)
		}
	}
	return ""
}
