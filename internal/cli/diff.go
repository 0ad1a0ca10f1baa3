package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/cloudprovider"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/kube"
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

Annotations of NodePools that decide what is bought or which nodes go count:
karpenter.azure.com/node-cost, max-hourly-cost, frozen and frozen-until. One
that a file lacks counts as with kubectl apply: it goes if kubectl has applied
it, and stays if another one wrote it, such as nap freeze.

Exit code 0: nothing would change. 2: something would. 1: an error, or a
NodePool that the API server would refuse, also for what an edit may not change.`,
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

// errNothingToCompare is that no file has what diff compares.
var errNothingToCompare = errors.New("no NodePool or AKSNodeClass to compare: give one with -f FILE")

// comparedKinds counts the NodePools and AKSNodeClasses of the files, and names the others
// with their number, such as "2 Deployments".
func comparedKinds(manifests []kube.Manifest) (compared int, others []string) {
	counts := map[string]int{}
	for i := range manifests {
		switch kind := kindOf(manifests[i].Object); kind {
		case nodePoolKind, nodeClassKind:
			compared++
		default:
			counts[kind]++
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		others = append(others, plural(counts[kind], kind))
	}
	return compared, others
}

// kindOf is the kind of an object: what it says, or its type.
func kindOf(o client.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.TypeOf(o).Elem().Name()
}

// driftedNode is a node that would be replaced.
type driftedNode struct {
	Node     string `json:"node"`
	NodePool string `json:"nodePool"`
	Reason   string `json:"reason"`
	// Stays is why it stays all the same; empty where it is replaced.
	Stays string `json:"stays,omitempty"`
}

func (c *planCommand) runDiff(ctx context.Context, from []string) error {
	if err := checkOutput(c.output, documentForms()); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	edited, err := c.readEdited(ctx)
	if err != nil {
		return err
	}
	c.input.files = from
	read, err := c.input.read(ctx, c.streams.In)
	if err != nil {
		return err
	}
	if err := admitted(edited.manifests, read.pools); err != nil {
		return err
	}
	before, err := read.source(ctx, c.input.catalogFlags)
	if err != nil {
		return err
	}
	p := &comparison{}
	change := p.compare(read, edited, before)
	present := &fleetChange{lost: map[string]bool{}}
	if err := c.settle(ctx, read, before, present); err != nil {
		return err
	}
	now, err := c.outcome(ctx, read, before, present)
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
	if err := c.keepNodes(ctx, read, change, p); err != nil {
		return err
	}
	if p.Replaced, err = c.replaced(ctx, read, before, change.lost); err != nil {
		return err
	}
	if err := c.settle(ctx, read, change.source, change); err != nil {
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
	return answered(read, len(p.Suppose) > 0)
}

// readEdited reads the files whose NodePools and AKSNodeClasses are compared.
func (c *planCommand) readEdited(ctx context.Context) (*planInput, error) {
	if len(c.input.files) == 0 {
		return nil, errNothingToCompare
	}
	edited, err := (&inputFlags{files: c.input.files, catalogFlags: catalogFlags{region: c.input.region}}).read(ctx, c.streams.In)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(edited.problems...); err != nil {
		return nil, err
	}
	compared, others := comparedKinds(edited.manifests)
	if compared == 0 {
		return nil, fmt.Errorf("%w; the files have %s", errNothingToCompare, cmp.Or(strings.Join(others, ", "), "no object"))
	}
	if len(others) > 0 {
		sayNote(c.streams.Err, "not compared: %s", strings.Join(others, ", "))
	}
	return edited, nil
}

// keepNodes leaves the drifted nodes which stay out of the change, and says of each why.
func (c *planCommand) keepNodes(ctx context.Context, read *planInput, change *fleetChange, p *comparison) error {
	if len(p.Drifted) == 0 {
		return nil
	}
	reasons := map[string]string{}
	for _, d := range p.Drifted {
		reasons[d.Node] = d.Reason
	}
	stays, err := c.stays(ctx, read, change, reasons)
	if err != nil {
		return err
	}
	for i := range p.Drifted {
		p.Drifted[i].Stays = stays[p.Drifted[i].Node]
	}
	change.without(stays)
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

// compare finds what the files change, and the nodes that drift by it. source is what NodePools
// can buy before that.
func (p *comparison) compare(read, edited *planInput, source *offline.Source) *fleetChange {
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
		case !equality.Semantic.DeepEqual(withoutTags(old), withoutTags(edited.classes[name])):
			p.Suppose = append(p.Suppose, "AKSNodeClass "+name+" is changed")
			classes[name] = true
		case !equality.Semantic.DeepEqual(old, edited.classes[name]):
			p.Suppose = append(p.Suppose, "AKSNodeClass "+name+" has other tags, which machines get where they are")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if np := p.comparePool(read.pools[name], edited.pools[name]); np != nil {
			f.pools[name] = np
		}
	}
	sizes := map[string]*sizeLabels{}
	for name := range f.pools {
		sizes[name] = sizeLabelsOf(source.ForPool(name))
	}
	for _, node := range objectsOf[*corev1.Node](read.objects.Distinct()) {
		pool := node.Labels[v1.NodePoolLabelKey]
		reason := ""
		if np, changed := f.pools[pool].(*v1.NodePool); changed && read.pools[pool] != nil {
			reason = driftOf(read.pools[pool], np, node, sizes[pool])
		}
		if np := read.pools[pool]; reason == "" && np != nil && np.Spec.Template.Spec.NodeClassRef != nil &&
			classes[np.Spec.Template.Spec.NodeClassRef.Name] {
			reason = string(cloudprovider.DriftNodeClass)
		}
		if reason != "" {
			f.lost[node.Name] = true
			p.Drifted = append(p.Drifted, driftedNode{Node: node.Name, NodePool: pool, Reason: reason})
		}
	}
	slices.SortFunc(p.Drifted, func(x, y driftedNode) int { return strings.Compare(x.Node, y.Node) })
	return f
}

// comparePool says what is different of a NodePool, and is how the cluster has it then; nil where
// nothing is different.
func (p *comparison) comparePool(old, edited *v1.NodePool) *v1.NodePool {
	np := edited.DeepCopy()
	if old == nil {
		p.Suppose = append(p.Suppose, "NodePool "+np.Name+" is new")
		return np
	}
	annotations := applyAnnotations(old, np)
	same := equality.Semantic.DeepEqual(old.Spec, np.Spec)
	if same && len(annotations) == 0 {
		return nil
	}
	if !same {
		p.Suppose = append(p.Suppose, "NodePool "+np.Name+" is changed")
	}
	for _, change := range annotations {
		p.Suppose = append(p.Suppose, "NodePool "+np.Name+" "+change)
	}
	np.Status, np.UID = old.Status, old.UID
	return np
}

// withoutTags is a node class without its tags, for which no machine is replaced.
func withoutTags(class *nodeclass.NodeClass) *nodeclass.NodeClass {
	own := *class
	own.Tags = nil
	return &own
}

// Karpenter's reasons of drift that an edit leads to.
const (
	driftedPool         = "NodePoolDrifted"
	driftedRequirements = "RequirementsDrifted"
)

// driftOf is why a node of a NodePool drifts once that is edited, in Karpenter's words, or
// "". Nodes in files often lack labels that Azure's have: where their size does not tell these
// either, they count as met.
func driftOf(before, after *v1.NodePool, node *corev1.Node, sizes *sizeLabels) string {
	if equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return "" // where only annotations differ, what drifts does so without the edit
	}
	if before.Hash() != after.Hash() {
		return driftedPool
	}
	for i := range after.Spec.Template.Spec.Requirements {
		r := &after.Spec.Template.Spec.Requirements[i]
		value, present, known := sizes.of(node, r.Key)
		wanted := model.Requirement{Key: r.Key, Operator: model.Operator(r.Operator), Values: r.Values}
		switch {
		case !known || wanted.Matches(value, present):
		case present:
			return fmt.Sprintf("%s: %s is %s", driftedRequirements, r.Key, value)
		default:
			return fmt.Sprintf("%s: its size has no %s", driftedRequirements, r.Key)
		}
	}
	return ""
}
