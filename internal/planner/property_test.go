package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/portfolio"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

const gi = 1 << 30

// dice draws small problems in which rules collide often: few zones, few
// labels, tight machines.
type dice struct {
	*rapid.T
	// tiny keeps the problem small enough to try everything.
	tiny bool
	// peaceful leaves out what makes pods compete: limits, topology, and nodes
	// with room for some of them.
	peaceful bool
	// open lets pools leave the value of a label open; no rule on topology is then
	// about it, since it is not known which machines have the same value.
	open bool
	// tied makes large machines cost next to as much as the small ones that hold as much,
	// with a disk in each price.
	tied bool
	n    int
}

func (d *dice) upTo(n int) int {
	d.n++
	return rapid.IntRange(0, n).Draw(d.T, fmt.Sprint("n", d.n))
}

func (d *dice) once(in int) bool { return d.upTo(in-1) == in-1 }

// strife is once, and never in a peaceful problem.
func (d *dice) strife(in int) bool { return d.once(in) && !d.peaceful }

func pick[V any](d *dice, values ...V) V { return values[d.upTo(len(values)-1)] }

func (d *dice) problem() *model.Problem {
	d.open, d.tied = d.once(2), d.tied || !d.tiny && d.once(3)
	p := &model.Problem{
		Axes: model.NewAxes(), Policy: model.Policy{IgnorePreferences: d.once(2), RelaxMinValues: d.once(2), MaxInstanceTypes: pick(d, 0, 0, 2)},
	}
	p.Catalogs = []model.Catalog{d.catalog()}
	pools := 2
	if d.tiny && !d.once(3) {
		pools = 1
	}
	for i := range 1 + d.upTo(pools-1) {
		p.Pools = append(p.Pools, d.pool(fmt.Sprint("pool", i)))
	}
	if d.strife(3) {
		p.Quotas = []model.Quota{{Name: "family", Left: int64(d.upTo(12)) * 1000}}
	}
	p.Shapes = []model.PodShape{d.shape(), d.shape()}
	if d.strife(2) {
		p.Shapes[0].AntiAffinity = []model.AffinityTerm{d.term()}
	}
	nodes, classes, pods := 4, 6, 6
	if d.tiny {
		nodes, classes, pods = 2, 2, 2
	}
	if d.peaceful {
		nodes = 0
	}
	for i := range d.upTo(nodes) {
		p.Nodes = append(p.Nodes, d.node(fmt.Sprint("node", i)))
	}
	for i := range 1 + d.upTo(classes-1) {
		p.Classes = append(p.Classes, d.class(i, 1+d.upTo(pods-1)))
	}
	return p
}

func (d *dice) catalog() model.Catalog {
	var c model.Catalog
	for i, t := range []struct {
		cores int64
		price float64
	}{{2, 0.10}, {4, 0.19}, {8, 0.42}}[:2+d.upTo(1)] {
		if d.tied {
			t.price = 0.1 * float64(t.cores) / 2 * (1 + 0.0002*float64(t.cores))
		}
		it := model.InstanceType{
			Name:     fmt.Sprintf("d%d", t.cores),
			Labels:   map[string]string{"family": pick(d, "d", "e"), "cores": fmt.Sprint(t.cores)},
			Capacity: model.Resources{t.cores * 1000, t.cores * 4 * gi, 100 * gi, int64(pick(d, 3, 30))},
			Overhead: model.Resources{200},
		}
		if d.once(6) {
			it.Choices = map[string][]string{"disk": {"fast", "slow"}}
		}
		if d.once(3) {
			it.VolumeSlots = map[string]int{"disk": 1 + d.upTo(2)}
		}
		for z := range 1 + d.upTo(2-min(1, i)) {
			o := model.Offering{
				Zone: fmt.Sprint("z", z+1), CapacityType: model.OnDemand, Price: model.USD(t.price * pick(d, 1, 1, 1.5)), Available: !d.once(6),
			}
			if d.tied {
				o.DiskPrice = model.USD(0.01)
			}
			if d.once(5) {
				o.CapacityType, o.Price = model.Spot, model.USD(t.price*pick(d, 0.3, 0.6))
			}
			if d.once(6) {
				o.Labels = map[string]string{"rack": pick(d, "r1", "r2")}
			}
			if d.once(4) {
				o.Quotas = []model.QuotaUse{{Quota: "family", Amount: t.cores * 1000}}
			}
			if d.strife(5) {
				o.CapacityType, o.Reservation, o.Remaining, o.Price = model.Reserved, fmt.Sprint("res", t.cores, z), 1+d.upTo(1), 0
			}
			it.Offerings = append(it.Offerings, o)
		}
		c.InstanceTypes = append(c.InstanceTypes, it)
	}
	return c
}

func (d *dice) pool(name string) model.Pool {
	p := model.Pool{Name: name, NodeLimit: -1}
	if !d.tiny && d.once(3) {
		p.Weight = 1 + d.upTo(1)
	}
	if d.once(8) {
		p.Requirements = append(p.Requirements, pick(d,
			model.Requirement{Key: "cores", Operator: pick(d, model.Gte, model.Gt), Values: []string{"2"}},
			model.Requirement{Key: "cores", Operator: pick(d, model.Lte, model.Lt), Values: []string{"8"}},
		))
	}
	if d.once(4) {
		p.Taints = []model.Taint{{Key: "gpu", Value: "true", Effect: pick(d, model.NoSchedule, model.PreferNoSchedule)}}
	}
	if d.once(4) {
		p.Requirements = append(p.Requirements, model.Requirement{Key: "team", Operator: model.In, Values: []string{"a", "b"}[:1+d.upTo(1)]})
	}
	if d.open && d.once(3) {
		p.Requirements = append(p.Requirements, model.Requirement{Key: "team", Operator: model.Exists})
	}
	if d.strife(6) {
		p.Requirements = append(p.Requirements,
			model.Requirement{Key: pick(d, model.LabelInstanceType, model.LabelZone), Operator: model.Exists, MinValues: 1 + d.upTo(1)})
	}
	if d.strife(5) {
		p.NodeLimit = d.upTo(3)
	}
	if d.strife(5) {
		p.Limits = []model.Limit{{Axis: model.CPU, Value: int64(d.upTo(16)) * 1000}}
	}
	if d.strife(5) {
		limit := model.USD(float64(d.upTo(12)) / 10)
		p.CostLimit, p.Cost = &limit, model.USD(pick(d, 0, 0.05, 0.3))
	}
	if d.once(3) {
		daemon := model.Daemon{Name: "agent", Requests: model.Resources{100, gi / 4, 0, 1}, Tolerations: []model.Toleration{{Exists: true}}}
		if d.once(2) {
			daemon.Requirements = []model.Requirements{{pick(d,
				model.Requirement{Key: model.LabelZone, Operator: model.In, Values: []string{"z1"}},
				model.Requirement{Key: "cores", Operator: model.Gte, Values: []string{"4"}},
			)}}
		}
		if d.once(3) {
			daemon.HostPorts = []model.HostPort{{Port: 80, Protocol: "TCP"}}
		}
		p.Daemons = append(p.Daemons, daemon)
	}
	return p
}

func (d *dice) shape() model.PodShape {
	return model.PodShape{
		Namespace: pick(d, "default", "default", "default", "other"), Labels: map[string]string{"app": pick(d, "a", "b", "c")},
	}
}

func (d *dice) term() model.AffinityTerm {
	return model.AffinityTerm{
		TopologyKey: d.topologyKey(), Selector: d.selector(),
		Namespaces: pick(d, []string{"default"}, []string{"default"}, []string{"other"}, []string{"default", "other"}), AllNamespaces: d.once(6),
	}
}

// topologyKey is mostly one of the usual keys.
func (d *dice) topologyKey() string {
	key := pick(d, model.LabelZone, model.LabelZone, model.LabelHostname,
		model.LabelHostname, model.LabelCapacityType, "family", "rack", "team")
	if d.open && key == "team" {
		return model.LabelZone
	}
	return key
}

func (d *dice) selector() *model.Selector {
	if d.once(5) {
		return &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.NotIn, Values: []string{pick(d, "a", "b")}}}}
	}
	return &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{pick(d, "a", "b", "c")}}}}
}

func (d *dice) node(name string) model.Node {
	n := model.Node{
		Name: name, State: pick(d, model.NodeReady, model.NodeReady, model.NodeRegistered, model.NodeLaunching, model.NodeLeaving),
		Labels:      map[string]string{model.LabelHostname: name, model.LabelCapacityType: "on-demand", "family": "d", "cores": "4"},
		Allocatable: model.Resources{4000, 16 * gi, 100 * gi, 10},
		Used:        model.Resources{int64(d.upTo(9)) * 500, int64(d.upTo(9)) * 2 * gi, 0, int64(d.upTo(10))},
	}
	if !d.once(6) {
		n.Labels[model.LabelZone] = pick(d, "z1", "z2", "z3")
	}
	if d.once(4) {
		n.Labels["team"] = pick(d, "a", "b")
	}
	if d.once(6) {
		n.Taints = []model.Taint{{Key: "gpu", Effect: model.NoExecute}}
	}
	if d.once(6) {
		n.HostPorts = []model.HostPort{{Port: 80, Protocol: "TCP"}}
	}
	if d.once(4) {
		n.VolumeSlots = map[string]int{"disk": d.upTo(2)}
		n.Attached = []model.Volume{{ID: "shared", Driver: "disk"}}[:d.upTo(1)]
	}
	for s := range 2 {
		if k := d.upTo(2); k > 0 {
			n.Bound = append(n.Bound, model.BoundPods{Shape: s, Count: k})
		}
	}
	return n
}

func (d *dice) class(i, pods int) model.PodClass {
	c := model.PodClass{
		Owner:    fmt.Sprint("Deployment default/", i),
		PodShape: d.shape(),
		Requests: model.Resources{int64(1+d.upTo(7)) * 400, int64(1+d.upTo(6)) * gi, 0, 1},
	}
	for k := range pods {
		c.Pods = append(c.Pods, model.PodRef{Namespace: "default", Name: fmt.Sprintf("p%d-%d", i, k)})
	}
	if d.once(4) {
		c.Tolerations = []model.Toleration{{Key: "gpu", Exists: true}}
	}
	if d.once(5) {
		c.NodeRequirements = model.Requirements{d.requirement()}
	}
	if d.once(5) {
		c.NodeAlternatives = []model.Requirements{{d.requirement()}, {d.requirement()}}[:1+d.upTo(1)]
	}
	if d.once(6) {
		c.VolumeAlternatives = []model.Requirements{{{Key: model.LabelZone, Operator: model.In, Values: []string{pick(d, "z1", "z2")}}}}
	}
	if d.strife(5) {
		c.Volumes = []model.Volume{{ID: pick(d, "", "shared", "own"), Driver: "disk"}}
	}
	if d.strife(6) {
		c.HostPorts = []model.HostPort{{IP: pick(d, "", "10.0.0.1", "10.0.0.2"), Port: 80, Protocol: "TCP"}}
	}
	for d.strife(3) && len(c.Spread) < 2 {
		c.Spread = append(c.Spread, model.SpreadConstraint{
			TopologyKey: d.topologyKey(), MaxSkew: int32(1 + d.upTo(1)), MinDomains: int32(d.upTo(2)),
			Selector: d.selector(), Hard: !d.once(4), HonorNodeAffinity: !d.once(3), HonorTaints: d.once(3),
		})
	}
	if d.strife(5) {
		c.Affinity = []model.AffinityTerm{d.term()}
	}
	if d.strife(5) {
		c.AntiAffinity = []model.AffinityTerm{d.term()}
	}
	if d.once(6) {
		c.NodePreferences = []model.NodePreference{{Weight: 1, Requirements: model.Requirements{d.requirement()}},
			{Weight: 5, Requirements: model.Requirements{d.requirement()}}}
	}
	if d.strife(5) {
		c.Preferences = []model.AffinityPreference{{Weight: 1, Anti: d.once(2), Term: d.term()},
			{Weight: 3, Anti: d.once(2), Term: d.term()}}[:1+d.upTo(1)]
	}
	if d.once(6) {
		c.MaxPrice = model.USD(pick(d, 0.10, 0.19, 0.30))
	}
	if !d.tiny {
		c.Priority = int32(d.upTo(2))
	}
	return c
}

func (d *dice) requirement() model.Requirement {
	return pick(d,
		model.Requirement{Key: model.LabelZone, Operator: model.In, Values: []string{pick(d, "z1", "z2")}},
		model.Requirement{Key: model.LabelZone, Operator: model.NotIn, Values: []string{"z1"}},
		model.Requirement{Key: "team", Operator: model.In, Values: []string{pick(d, "a", "b")}},
		model.Requirement{Key: "team", Operator: model.DoesNotExist},
		model.Requirement{Key: "team", Operator: model.Exists},
		model.Requirement{Key: "family", Operator: model.In, Values: []string{"d"}},
		model.Requirement{Key: "cores", Operator: pick(d, model.Gt, model.Gte, model.Lt, model.Lte), Values: []string{"4"}},
		model.Requirement{Key: model.LabelCapacityType, Operator: model.In, Values: []string{pick(d, "spot", "on-demand")}},
		model.Requirement{Key: "rack", Operator: pick(d, model.In, model.NotIn), Values: []string{"r1"}},
		model.Requirement{Key: "disk", Operator: model.In, Values: []string{"fast"}},
		model.Requirement{Key: model.LabelHostname, Operator: model.In, Values: []string{"node0"}},
	)
}

// describe prints what matters of a problem and its plan, shortly.
func describe(p *model.Problem, plan *model.Plan) string {
	var b strings.Builder
	for i := range p.Pools {
		q := &p.Pools[i]
		fmt.Fprintf(&b, "pool %s weight %d %v taints %v limits %v nodes %d dollars %s of %v daemons %v\n",
			q.Name, q.Weight, q.Requirements, q.Taints, q.Limits, q.NodeLimit, q.Cost, q.CostLimit, q.Daemons)
	}
	for _, t := range p.Catalogs[0].InstanceTypes {
		fmt.Fprintf(&b, "type %s %v choices %v capacity %v disks %v\n", t.Name, t.Labels, t.Choices, t.Capacity, t.VolumeSlots)
		for _, o := range t.Offerings {
			fmt.Fprintf(&b, "  %s %s %v %s available %v %v %d\n", o.Zone, o.CapacityType, o.Labels, o.Price, o.Available, o.Quotas, o.Remaining)
		}
	}
	fmt.Fprintf(&b, "quotas %v\n", p.Quotas)
	for i, s := range p.Shapes {
		fmt.Fprintf(&b, "shape %d %s %v anti %s\n", i, s.Namespace, s.Labels, terms(s.AntiAffinity))
	}
	for _, n := range p.Nodes {
		fmt.Fprintf(&b, "node %s %s %v %v free %v ports %v slots %v attached %v bound %v\n", n.Name,
			n.State, n.Labels, n.Taints, n.Free(), n.HostPorts, n.VolumeSlots, n.Attached, n.Bound)
	}
	for i := range p.Classes {
		c := &p.Classes[i]
		fmt.Fprintf(&b, "class %d x%d %s %v %v selector %v alternatives %v volumes %v %v ports %v tolerations %v affinity "+
			"%s anti %s priority %d at most %s\n", i, len(c.Pods), c.Namespace, c.Labels, c.Requests,
			c.NodeRequirements, c.NodeAlternatives, c.Volumes, c.VolumeAlternatives, c.HostPorts,
			c.Tolerations, terms(c.Affinity), terms(c.AntiAffinity), c.Priority, c.MaxPrice)
		for _, s := range c.Spread {
			fmt.Fprintf(&b, "  spread %s skew %d min %d %v hard %v affinity %v taints %v\n", s.TopologyKey,
				s.MaxSkew, s.MinDomains, s.Selector.Requirements, s.Hard, s.HonorNodeAffinity, s.HonorTaints)
		}
	}
	for _, pl := range plan.Placements {
		fmt.Fprintf(&b, "-> %s %v\n", p.Nodes[pl.Node].Name, pl.Pods)
	}
	for _, n := range plan.NewNodes {
		fmt.Fprintf(&b, "-> new %s", p.Pools[n.Pool].Name)
		for _, o := range n.Offerings {
			t := p.Catalogs[0].InstanceTypes[o.InstanceType]
			fmt.Fprintf(&b, " %s/%s", t.Name, t.Offerings[o.Offering].Zone)
		}
		fmt.Fprintf(&b, " %v %v\n", n.Requirements, n.Pods)
	}
	for _, u := range plan.Unschedulable {
		fmt.Fprintf(&b, "-> nowhere class %d %v %s\n", u.Class, u.Pods, u.Reason)
	}
	fmt.Fprintf(&b, "cost %s bound %s\n", plan.Cost, plan.LowerBound)
	return b.String()
}

func terms(ts []model.AffinityTerm) string {
	var out []string
	for _, t := range ts {
		out = append(out, fmt.Sprint(t.TopologyKey, " ", t.Namespaces, t.AllNamespaces, " ")+t.Selector.Requirements.String())
	}
	return fmt.Sprint(out)
}

func judge(t *rapid.T, p *model.Problem, plan *model.Plan) {
	if violations := verify.Check(p, plan); len(violations) > 0 {
		t.Fatalf("%v\n%s", violations, describe(p, plan))
	}
}

// No node gets more than it has, no pod goes where its rules or those of others
// forbid it, no limit is exceeded, and every pod is accounted for.
func TestSolveBreaksNoRule(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := &dice{T: rt}
		p := d.problem()
		p.Policy.Budget = pick(d, 0, 2*time.Millisecond) // without and with mending
		judge(rt, p, planner.Solve(p))
	})
}

// Fewer machines cost at most half a percent more, and no pod its place or a preference.
func TestSolvePaysLittleForFewerMachines(t *testing.T) {
	joined := 0
	rapid.Check(t, func(rt *rapid.T) {
		d := &dice{T: rt, tied: true}
		p := d.problem()
		addFull(p, 3)
		p.Policy.Budget = pick(d, 0, 2*time.Millisecond)
		cheapest, plan := planner.SolveBy(p, portfolio.Standard().Cheapest()), planner.Solve(p)
		judge(rt, p, plan)
		if float64(plan.Cost) > (1+model.NearTie)*float64(cheapest.Cost) || len(plan.NewNodes) > len(cheapest.NewNodes) {
			rt.Fatalf("%d machines for %s where %d cost %s\n%s", len(plan.NewNodes), plan.Cost, len(cheapest.NewNodes), cheapest.Cost, describe(p, plan))
		}
		if diff := cmp.Diff(cheapest.Relaxed, plan.Relaxed); diff != "" {
			rt.Fatalf("fewer machines cost a preference:\n%s", diff)
		}
		if plan.Fewer.Machines > 0 {
			joined++
		}
	})
	t.Logf("%d plans paid for fewer machines", joined)
}

// addFull adds pods that fill dear machines of their own, so that little of the cost is
// left to choose.
func addFull(p *model.Problem, pods int) {
	large := model.Resources{100_000, 400 * gi, 0, 10}
	p.Catalogs = append(p.Catalogs, model.Catalog{InstanceTypes: []model.InstanceType{{
		Name: "d100", Labels: map[string]string{"family": "d"}, Capacity: large,
		Offerings: []model.Offering{{Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(10), DiskPrice: model.USD(0.01), Available: true}},
	}}})
	p.Pools = append(p.Pools, model.Pool{
		Name: "full", Catalog: len(p.Catalogs) - 1, NodeLimit: -1, Taints: []model.Taint{{Key: "full", Effect: model.NoSchedule}},
	})
	class := model.PodClass{Requests: large[:2:2]}
	class.Tolerations = []model.Toleration{{Key: "full", Exists: true}}
	for i := range pods {
		class.Pods = append(class.Pods, model.PodRef{Namespace: "default", Name: fmt.Sprint("full-", i)})
	}
	p.Classes = append(p.Classes, class)
}

// A pod stays without a place only if none is left for it.
func TestSolveLeavesOutOnlyPodsThatFitNowhere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := (&dice{T: rt, tiny: true}).problem()
		plan := planner.Solve(p)
		if where := verify.CouldAdd(p, plan); where != "" {
			rt.Fatalf("%s\n%s", where, describe(p, plan))
		}
	})
}

// The bound is never above what the best of all plans costs. Where pods do not
// compete for limits or keep each other away, no pod stays out that any plan
// could place.
func TestSolveTinyProblemsAgainstExhaustiveSearch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := &dice{T: rt, tiny: true, peaceful: rapid.Bool().Draw(rt, "peaceful")}
		p := d.problem()
		p.Policy.Budget = pick(d, 0, time.Millisecond) // without one there are no exact bounds
		plan := planner.Solve(p)
		judge(rt, p, plan)
		best := verify.Cheapest(p)
		missing := 0
		for _, u := range plan.Unschedulable {
			missing += len(u.Pods)
		}
		if d.peaceful && missing != best.Unschedulable {
			rt.Fatalf("%d pods stay out, %d need to\n%sbest:\n%s", missing, best.Unschedulable, describe(p, plan), describe(p, best.Plan))
		}
		if bound := planner.BoundOfAll(p); best.Unschedulable == 0 && bound > best.Cost {
			rt.Fatalf("the bound alone %s is above the optimum %s\n%s", bound, best.Cost, describe(p, best.Plan))
		}
		if missing == 0 && plan.LowerBound > best.Cost {
			rt.Fatalf("the bound %s is above the optimum %s\n%sbest:\n%s", plan.LowerBound, best.Cost, describe(p, plan), describe(p, best.Plan))
		}
	})
}

// No pod goes to a machine of a NodePool if a heavier one sells a machine for it.
func TestSolvePrefersPoolsOfHigherWeight(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := (&dice{T: rt, peaceful: true}).problem()
		for i := range p.Classes {
			p.Classes[i].NodePreferences = nil // what is preferred may be sold by the lighter one alone
		}
		for i := range p.Pools {
			p.Pools[i].Taints = slices.DeleteFunc(p.Pools[i].Taints, func(t model.Taint) bool { return t.Effect == model.PreferNoSchedule })
		}
		plan := planner.Solve(p)
		if which := verify.Lighter(p, plan); which != "" {
			rt.Fatalf("%s\n%s", which, describe(p, plan))
		}
	})
}

// The same problem gives the same plan.
func TestSolveIsDeterministic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := (&dice{T: rt}).problem()
		if diff := cmp.Diff(planner.Solve(p), planner.Solve(p)); diff != "" {
			rt.Fatalf("two runs differ:\n%s", diff)
		}
	})
}
