package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/controller/cloudprovider"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/karpenterengine"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
)

// solveWithKarpenter hands the same pods, NodePools and catalogue to Karpenter's
// own scheduler and reports what it would buy, at the cheapest offering that each
// of its NodeClaims allows. The bound is nap's, so that the gap says how far from
// the best Karpenter is.
func (c *planCommand) solveWithKarpenter(ctx context.Context, m *madePlan) (*planReport, error) {
	cloudprovider.RegisterLabels()
	in, catalog, err := m.karpenterInput()
	if err != nil {
		return nil, err
	}
	s, err := karpenterengine.New(ctx, in,
		karpenterengine.Options{IgnorePreferences: c.rules.preferences == "Ignore", RelaxMinValues: c.rules.minValues == "BestEffort"})
	if err != nil {
		return nil, err
	}
	result, err := s.Solve(ctx)
	if err != nil {
		return nil, err
	}
	m.read.notes = append(m.read.notes, costLimitNotes(m.input.Problem, result)...)
	return m.karpenterReport(result, catalog), nil
}

// costLimitNotes name the NodePools whose limit in dollars a plan of Karpenter passes. Its
// scheduler does not know these limits: the controller looks at them before each purchase.
func costLimitNotes(p *model.Problem, result *karpenterengine.Result) (notes []string) {
	cost := map[string]model.Money{}
	for i := range result.Nodes {
		cost[result.Nodes[i].Pool] += model.USD(result.Nodes[i].Price)
	}
	for i := range p.Pools {
		pool := &p.Pools[i]
		if bought := cost[pool.Name]; bought > 0 && pool.CostLimit != nil && pool.Cost+bought > *pool.CostLimit {
			notes = append(notes, fmt.Sprintf("NodePool %s: of its limit of %s it uses %s, and this plan buys for %s more: "+
				"Karpenter's scheduler does not know the limit, the controller buys no machine beyond it",
				pool.Name, *pool.CostLimit, pool.Cost, bought))
		}
	}
	return notes
}

// karpenterInput are the objects that Karpenter looks at: pods that the problem
// has places to find for, pods that run, and the pools that buy.
func (m *madePlan) karpenterInput() (*karpenterengine.Input, *fleet.Catalog, error) {
	p := m.input.Problem
	if len(p.Pools) == 0 {
		return nil, nil, errors.New("--engine karpenter: no NodePool can buy anything, see the messages above")
	}
	catalog := m.source.ForPool(p.Pools[0].Name)
	buying := map[string]bool{}
	for i := range p.Pools {
		if m.source.ForPool(p.Pools[i].Name) != catalog {
			return nil, nil, fmt.Errorf("--engine karpenter: NodePools %q and %q have different AKSNodeClasses or NodeOverlays, "+
				"plan for one at a time",
				p.Pools[0].Name, p.Pools[i].Name)
		}
		buying[p.Pools[i].Name] = true
	}
	waiting := map[model.PodRef]bool{}
	for i := range p.Classes {
		for _, ref := range p.Classes[i].Pods {
			waiting[ref] = true
		}
	}
	in := &karpenterengine.Input{Objects: slices.Clone(m.read.added.assumed)}
	for o := range m.read.objects.All() {
		switch o := o.(type) {
		case *v1.NodePool:
			if buying[o.Name] {
				in.Objects = append(in.Objects, o)
			}
		case *corev1.Pod:
			if o.Spec.NodeName == "" && !waiting[model.PodRef{Namespace: o.Namespace, Name: o.Name}] {
				continue
			}
			o = m.read.spread.Give(o)
			if o.UID == "" { // Karpenter tells pods apart by it.
				o = o.DeepCopy()
				o.UID = types.UID(o.Namespace + "/" + o.Name)
			}
			in.Objects = append(in.Objects, o)
		case *corev1.Node:
			if o.Spec.ProviderID == "" && o.Labels[v1.NodePoolLabelKey] != "" { // Karpenter leaves such a node out
				o = o.DeepCopy()
				o.Spec.ProviderID = "nap://" + o.Name
			}
			in.Objects = append(in.Objects, o)
		case *corev1.PersistentVolumeClaim:
			in.Objects = append(in.Objects, kube.WithBinding(o))
		default:
			in.Objects = append(in.Objects, o)
		}
	}
	var err error
	in.InstanceTypes, err = karpenterengine.InstanceTypes(kube.NewCatalogFile(m.source.Region, catalog))
	return in, catalog, err
}

func (m *madePlan) karpenterReport(result *karpenterengine.Result, catalog *fleet.Catalog) *planReport {
	r := newReport(m.input.Problem)
	for _, n := range result.Nodes {
		r.Nodes = append(r.Nodes, m.karpenterNode(r, n, catalog))
	}
	for _, node := range slices.Sorted(maps.Keys(result.Existing)) {
		r.Existing = append(r.Existing, reportExisting{Node: node, Pods: m.named(r, result.Existing[node])})
	}
	var pending []types.NamespacedName
	for pod := range result.Unschedulable {
		pending = append(pending, pod)
	}
	slices.SortFunc(pending, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	for _, pod := range pending {
		words := explain.Pending{Why: result.Unschedulable[pod]} // Karpenter's own
		out := newReportPending(model.ReasonNothingCompatible, words, nil)
		out.Pod = m.named(r, []types.NamespacedName{pod})[0]
		r.Unschedulable = append(r.Unschedulable, out)
	}
	r.addRejected(m)
	bound := m.plan.LowerBound
	if len(result.Unschedulable) != len(m.report.Unschedulable) {
		// The bound is for the pods that nap places; these are others.
		bound = 0
	}
	r.summarize(m, model.USD(result.Cost), bound, engineKarpenter)
	return r
}

func (m *madePlan) karpenterNode(r *planReport, n karpenterengine.Node, catalog *fleet.Catalog) reportNode {
	out := reportNode{
		NodePool:       n.Pool,
		reportOffering: reportOffering{InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType, HourlyPrice: n.Price},
		Alternatives:   []reportOffering{},
		Pods:           m.named(r, n.Pods),
	}
	axes := m.input.Problem.Axes
	for _, pod := range n.Pods {
		if record := m.input.Record(model.PodRef{Namespace: pod.Namespace, Name: pod.Name}); record != nil {
			out.requests = out.requests.Add(record.Spec.Requests.Vector(axes))
		}
	}
	for i := range catalog.InstanceTypes {
		if t := &catalog.InstanceTypes[i]; t.Name == n.InstanceType {
			out.room = t.Allocatable()
			out.Allocatable = kube.WriteAmounts(out.room, catalog.Axes)
		}
	}
	out.Requests = kube.WriteAmounts(out.requests, axes)
	return out
}

func (m *madePlan) named(r *planReport, pods []types.NamespacedName) []string {
	refs := make([]model.PodRef, len(pods))
	for i, pod := range pods {
		refs[i] = model.PodRef{Namespace: pod.Namespace, Name: pod.Name}
	}
	return r.owners.note(m.input, refs)
}
