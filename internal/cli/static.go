package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
)

// staticGate is the feature gate with which the controller heeds spec.replicas.
const staticGate = "StaticCapacity"

// staticPool is a static NodePool whose number of nodes the controller changes, whatever pods
// there are.
type staticPool struct {
	pool *fleet.Pool
	// has is how many nodes it has, those that leave aside.
	has int
	// buys are how many it is to get, and goes the names of those that go: one of both is empty.
	buys int
	goes []string
	// machine is what a new node is, nil where nothing is sold that its template allows.
	machine *staticMachine
}

// staticMachine is the cheapest machine that the template of a static NodePool allows, which is
// the one that the controller orders.
type staticMachine struct {
	size     *model.InstanceType
	offering *model.Offering
	price    model.Money
	axes     model.Axes
}

// staticPools are the static NodePools that have more or fewer nodes than they are to have, by
// name. As in the controller, spec.limits.nodes bounds how many are bought, empty nodes go before
// those with pods, and a NodePool that is not ready buys none. unclaimed counts nodes without a
// NodeClaim, as files have them.
func staticPools(ctx context.Context, now *fleet.Snapshot, source *offline.Source, unclaimed bool) ([]staticPool, error) {
	var out []staticPool
	all := now.Pools()
	if !slices.ContainsFunc(all, func(p *fleet.Pool) bool { return p.Static }) {
		return nil, nil
	}
	views, err := now.Views(ctx, source)
	if err != nil {
		return nil, err
	}
	pods := map[string]int{}
	for p := range now.Pods() {
		if p.Bound() && !p.Daemon && !p.Static {
			pods[p.Node]++
		}
	}
	for _, pool := range all {
		if !pool.Static || pool.Deleting || pool.Invalid != "" {
			continue
		}
		var stay []*fleet.NodeView
		leaving := 0
		for i := range views {
			v := &views[i]
			switch {
			case v.Pool != pool.Name || v.Claim == "" && !unclaimed:
			case v.State == model.NodeLeaving:
				leaving++
			default:
				stay = append(stay, v)
			}
		}
		slices.SortStableFunc(stay, func(x, y *fleet.NodeView) int { return cmp.Compare(pods[x.Name], pods[y.Name]) })
		if s := settledPool(pool, stay, leaving); s.buys+len(s.goes) > 0 {
			s.machine = cheapestOf(pool, source.ForPool(pool.Name))
			out = append(out, s)
		}
	}
	return out, nil
}

// settledPool says how many nodes a static NodePool buys, and which go: the first of those that
// stay. Others are leaving.
func settledPool(pool *fleet.Pool, stay []*fleet.NodeView, leaving int) staticPool {
	s := staticPool{pool: pool, has: len(stay)}
	if pool.Ready {
		s.buys = max(0, pool.Replicas-s.has)
	}
	if pool.NodeLimit >= 0 {
		s.buys = max(0, min(s.buys, pool.NodeLimit-s.has-leaving))
	}
	for _, v := range stay[:max(0, s.has-pool.Replicas)] {
		s.goes = append(s.goes, v.Name)
	}
	return s
}

// cheapestOf is the cheapest machine that is sold and that a NodePool allows, or nil.
func cheapestOf(pool *fleet.Pool, catalog *fleet.Catalog) *staticMachine {
	template := &model.Pool{Requirements: pool.Requirements, Labels: pool.Labels}
	var best *staticMachine
	for i := range catalog.InstanceTypes {
		t := &catalog.InstanceTypes[i]
		for j := range t.Offerings {
			o := &t.Offerings[j]
			if o.Available && (best == nil || o.Price < best.offering.Price) && refusal(template, t, o) == "" {
				best = &staticMachine{size: t, offering: o, price: o.Price + pool.NodeCost, axes: catalog.Axes}
			}
		}
	}
	return best
}

// node is a new node of the NodePool, as it is once it is ready.
func (s *staticPool) node(number int) *corev1.Node {
	m := s.machine
	node := &corev1.Node{}
	node.Name = fmt.Sprintf("%s-new-%d", s.pool.Name, number)
	node.Labels = map[string]string{}
	for _, labels := range []map[string]string{m.size.Labels, m.offering.Labels, s.pool.Labels} {
		maps.Copy(node.Labels, labels)
	}
	maps.Copy(node.Labels, map[string]string{
		corev1.LabelInstanceTypeStable: m.size.Name, corev1.LabelTopologyZone: m.offering.Zone,
		v1.CapacityTypeLabelKey: string(m.offering.CapacityType), corev1.LabelHostname: node.Name,
		v1.NodeRegisteredLabelKey: "true", v1.NodeInitializedLabelKey: "true",
	})
	for _, t := range s.pool.Taints {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	node.Status.Capacity, node.Status.Allocatable = m.amounts(m.size.Capacity), m.amounts(m.size.Allocatable())
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return node
}

// amounts are resources of the catalogue as a node states them.
func (m *staticMachine) amounts(v model.Resources) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, text := range kube.WriteAmounts(v, m.axes) {
		out[corev1.ResourceName(name)] = resource.MustParse(text)
	}
	return out
}

// key names the machine among what is bought.
func (m *staticMachine) key() string {
	return fmt.Sprintf("%s %s %s", m.size.Name, model.ZoneName(m.offering.Zone), m.offering.CapacityType)
}

// reportStatic says how the number of nodes of a static NodePool changes. Its fields are a
// promise: docs/plan-json.md documents them.
type reportStatic struct {
	NodePool string `json:"nodePool"`
	// Replicas is spec.replicas, Nodes how many nodes there are.
	Replicas int `json:"replicas"`
	Nodes    int `json:"nodes"`
	// Buys and GivesBack are what the controller does about it; one of them is zero.
	Buys      int `json:"buys,omitempty"`
	GivesBack int `json:"givesBack,omitempty"`
	// HourlyPrice is of the cheapest machine that may be bought, zero where none is sold.
	HourlyPrice float64 `json:"hourlyPrice,omitempty"`
	Message     string  `json:"message"`
}

// report says what the controller does, under a condition such as "with the gate, "; empty for none.
func (s *staticPool) report(condition string) reportStatic {
	out := reportStatic{NodePool: s.pool.Name, Replicas: s.pool.Replicas, Nodes: s.has, Buys: s.buys, GivesBack: len(s.goes)}
	does := fmt.Sprintf("gives back %d beside this plan", len(s.goes))
	switch {
	case s.buys > 0 && s.machine == nil:
		does = fmt.Sprintf("tries to buy %d, and nothing is sold that its template allows", s.buys)
	case s.buys > 0:
		out.HourlyPrice = s.machine.price.Dollars()
		does = fmt.Sprintf("buys %d beside this plan, for %s/h each at least", s.buys, dollars(out.HourlyPrice))
	}
	out.Message = fmt.Sprintf("%s: %sthe controller %s.", s.wants(), condition, does)
	return out
}

// wants says how many nodes the NodePool is to have and has.
func (s *staticPool) wants() string {
	return fmt.Sprintf("NodePool %s wants %s (spec.replicas) and has %d", s.pool.Name, plural(s.pool.Replicas, "node"), s.has)
}

// staticCapacity says whether the controller of a live cluster heeds spec.replicas; known is
// false where no controller tells.
func (t *told) staticCapacity() (on, known bool) {
	if t == nil || t.document == nil {
		return false, false
	}
	return slices.Contains(t.document.Status.FeatureGates, staticGate), true
}

// addStatic adds to a plan what becomes of static NodePools.
func (c *planCommand) addStatic(ctx context.Context, made *madePlan) error {
	pools, err := staticPools(ctx, made.read.store.Snapshot(), made.source, !c.input.live())
	if err != nil {
		return err
	}
	on, known := made.read.told.staticCapacity()
	condition := ""
	if !known {
		condition = "with the feature gate " + staticGate + ", "
	}
	for i := range pools {
		if known && !on {
			made.read.notes = append(made.read.notes, pools[i].idle())
			continue
		}
		made.report.StaticNodePools = append(made.report.StaticNodePools, pools[i].report(condition))
	}
	return nil
}

// idle says that nothing becomes of what the NodePool wants, since the gate is off.
func (s *staticPool) idle() string {
	return fmt.Sprintf("%s: it stays so, for the controller's feature gate %s is off", s.wants(), staticGate)
}

// settle gives static NodePools of a changed fleet as many nodes as they are to have, and notes
// what that takes for granted.
func (c *planCommand) settle(ctx context.Context, read *planInput, source *offline.Source, f *fleetChange) error {
	pools, err := staticPools(ctx, f.apply(read).Snapshot(), source, !c.input.live())
	if err != nil {
		return err
	}
	on, known := read.told.staticCapacity()
	for i := range pools {
		s := &pools[i]
		note := fmt.Sprintf("NodePool %s: its number of nodes is that of spec.replicas, as with the feature gate %s", s.pool.Name, staticGate)
		if known && !on {
			note = s.idle()
		}
		if (!known || !on) && !slices.Contains(read.notes, note) {
			read.notes = append(read.notes, note)
		}
		if known && !on {
			continue
		}
		for _, name := range s.goes {
			f.lost[name] = true
		}
		for n := 0; s.machine != nil && n < s.buys; n++ {
			f.nodes = append(f.nodes, newNode{s.node(n), s.machine.price, s.machine.key()})
		}
	}
	return nil
}

// newNode is a node that is bought whatever pods there are.
type newNode struct {
	node  *corev1.Node
	price model.Money
	// key names its machine, as in outcome.Buys.
	key string
}
