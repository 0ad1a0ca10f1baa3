package consolidate_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
)

// dice draws small fleets in which rules collide often: everything that a Fleet
// can hold is drawn now and then.
type dice struct {
	*rapid.T
	n int
	// calm leaves out limits, budgets and what holds nodes, so that nothing but
	// prices and places decides.
	calm bool
}

func (d *dice) upTo(n int) int {
	d.n++
	return rapid.IntRange(0, n).Draw(d.T, fmt.Sprint("n", d.n))
}

func (d *dice) once(in int) bool { return d.upTo(in-1) == in-1 }

// strife is once, and never in a calm fleet.
func (d *dice) strife(in int) bool { return d.once(in) && !d.calm }

func pick[V any](d *dice, values ...V) V { return values[d.upTo(len(values)-1)] }

// rack is a label that some nodes carry and nothing that is bought does.
const rack = "example.com/rack"

func (d *dice) fleet() *model.DisruptionProblem {
	p := &model.Problem{Axes: model.NewAxes("example.com/gpu"),
		Policy: model.Policy{RelaxMinValues: d.once(2), IgnorePreferences: d.once(5), Seed: uint64(d.upTo(3))}}
	if d.strife(6) {
		p.Policy.MaxInstanceTypes = 3 + d.upTo(2) // no fewer than minValues wants
	}
	p.Catalogs = []model.Catalog{d.catalog()}
	if d.strife(6) {
		p.Catalogs = append(p.Catalogs, d.catalog())
	}
	if d.strife(3) {
		p.Quotas = []model.Quota{{Name: "family", Left: int64(d.upTo(20))}}
	}
	f := &model.DisruptionProblem{Problem: p, Now: now, Bound: d.once(4)}
	for i := range 1 + d.upTo(2) {
		d.pool(f, i)
	}
	for i := range d.upTo(3) {
		f.Budgets = append(f.Budgets, model.PodBudget{Namespace: "default", Name: fmt.Sprint("b", i), Allowed: d.upTo(3), Blocking: d.strife(5)})
	}
	f.Terms = model.ConsolidationTerms{Payback: 24 * time.Hour, SpotToSpot: d.once(2)}
	if d.once(2) {
		f.Terms.EvictionPrice, f.Terms.MinimumSaving = model.USD(pick(d, 0.01, 0.1, 1)), pick(d, 0, 0.1)
	}
	if d.strife(12) {
		f.Terms = pick(d, model.ConsolidationTerms{}, model.DefaultConsolidationTerms(), model.ConsolidationTerms{EvictionPrice: 1},
			model.ConsolidationTerms{EvictionPrice: model.USD(1e6), Payback: time.Nanosecond, MinimumSaving: 1})
	}
	if d.strife(12) {
		f.ConsolidateFrom = now.Add(pick(d, time.Hour, -time.Hour))
	}
	for i := range 1 + d.upTo(5) {
		f.Movable = append(f.Movable, d.class(f, i))
		p.Shapes = append(p.Shapes, f.Movable[i].PodShape)
	}
	p.Shapes = append(p.Shapes, d.class(f, 6).PodShape) // of pods which no command moves
	for n := range 1 + d.upTo(7) {
		d.node(f, n)
	}
	for i := range d.upTo(2) {
		if d.strife(2) {
			d.waiting(f, i)
		}
	}
	return f
}

func (d *dice) catalog() model.Catalog {
	var c model.Catalog
	for i, t := range []struct {
		cores int64
		price float64
	}{{2, 0.10}, {4, 0.19}, {8, 0.42}, {16, 0.70}} {
		it := model.InstanceType{Name: fmt.Sprint("t", t.cores),
			Labels: map[string]string{"example.com/cores": fmt.Sprint(t.cores)}, VolumeSlots: map[string]int{"disk": 2 + i}}
		it.Capacity = model.Resources{t.cores * 1000, t.cores * 4 * gi, 0, 20, int64(i % 2)}
		if d.once(6) {
			it.Overhead = model.Resources{pick[int64](d, 100, 2000, 3000), gi, 0, 0}
		}
		for _, z := range []string{"z1", "z2"} {
			quota := []model.QuotaUse{{Quota: pick(d, "family", "family", "unheard of"), Amount: t.cores}}
			it.Offerings = append(it.Offerings,
				model.Offering{Zone: z, CapacityType: model.OnDemand, Price: model.USD(t.price), Available: !d.once(8), Quotas: quota})
			it.Offerings = append(it.Offerings,
				model.Offering{Zone: z, CapacityType: model.Spot, Price: model.USD(t.price / pick(d, 3, 3, 1, 0.9)), Available: !d.once(3), Quotas: quota})
		}
		if d.strife(8) {
			it.Offerings = append(it.Offerings, model.Offering{Zone: "z1", CapacityType: model.Reserved,
				Price: pick[model.Money](d, 0, 1), Available: true, Reservation: "r" + it.Name, Remaining: d.upTo(2)})
		}
		c.InstanceTypes = append(c.InstanceTypes, it)
	}
	return c
}

func (d *dice) pool(f *model.DisruptionProblem, i int) {
	p := f.Problem
	pool := model.Pool{Name: fmt.Sprint("pool", i), NodeLimit: -1, Weight: pick(d, 0, 0, 1, 100), Catalog: d.upTo(len(p.Catalogs) - 1)}
	if d.strife(4) {
		pool.Requirements = append(pool.Requirements, model.Requirement{
			Key: pick(d, model.LabelInstanceType, model.LabelZone, model.LabelCapacityType), Operator: model.Exists, MinValues: 1 + d.upTo(2),
		})
	}
	if d.once(4) {
		pool.Requirements = append(pool.Requirements, pick(d,
			model.Requirement{Key: model.LabelCapacityType, Operator: model.In, Values: []string{"spot"}},
			model.Requirement{Key: model.LabelCapacityType, Operator: model.NotIn, Values: []string{"spot"}},
			model.Requirement{Key: model.LabelZone, Operator: model.In, Values: []string{"z2"}},
			model.Requirement{Key: "example.com/cores", Operator: model.Gt, Values: []string{"3"}},
			model.Requirement{Key: "example.com/team", Operator: model.In, Values: []string{"blue"}}))
	}
	if d.strife(4) {
		pool.Limits = []model.Limit{{
			Axis: pick(d, model.CPU, model.CPU, model.Memory, 4), Value: pick[int64](d, 1000, gi, 1) * int64(d.upTo(40)),
		}}
	}
	if d.strife(6) {
		pool.NodeLimit = d.upTo(8)
	}
	if d.strife(5) {
		limit := model.USD(float64(d.upTo(30)) / 20)
		pool.CostLimit = &limit
	}
	if d.strife(5) {
		pool.Taints = []model.Taint{d.taint()}
	}
	if d.once(6) {
		pool.Daemons = []model.Daemon{{Name: "logs", Requests: model.Resources{pick[int64](d, 100, 3000), gi / 2, 0, 1},
			HostPorts: pick(d, nil, []model.HostPort{{Port: 80, Protocol: "TCP"}})}}
	}
	policy := model.DisruptionPolicy{Pool: pool.Name, Consolidation: model.WhenEmptyOrUnderutilized}
	if !d.calm {
		policy.Consolidation = pick(d, model.WhenEmptyOrUnderutilized, model.WhenEmptyOrUnderutilized, model.WhenEmpty, model.Balanced)
		policy.Never, policy.Static = d.once(8), d.once(8)
		policy.After = pick(d, 0, time.Minute, time.Hour)
	}
	if d.strife(2) {
		policy.Allowed = map[model.DisruptionReason]int{}
		for _, r := range []model.DisruptionReason{model.DisruptUnderutilized, model.DisruptEmpty, model.DisruptDrifted, model.DisruptUnhealthy} {
			if !d.once(4) {
				policy.Allowed[r] = d.upTo(4) - 1
			}
		}
	}
	if policy.Static {
		policy.Count = &model.StaticCount{Replicas: d.upTo(8), Limit: d.upTo(10) - 1}
	}
	f.Policies = append(f.Policies, policy)
	if !policy.Static && !d.strife(8) { // otherwise nothing is bought for it here
		p.Pools = append(p.Pools, pool)
	}
}

func (d *dice) taint() model.Taint {
	return model.Taint{Key: "example.com/dedicated", Value: "x", Effect: pick(d, model.NoSchedule, model.NoExecute, model.PreferNoSchedule)}
}

func selector(app string) *model.Selector {
	return &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{app}}}}
}

func (d *dice) class(f *model.DisruptionProblem, i int) model.MovableClass {
	c := model.MovableClass{EvictionCost: pick(d, 1.0, 1, 0, 3, -2)}
	c.PodClass = d.pods(i)
	c.Budgets = d.budgets(f)
	return c
}

// budgets draws the PodDisruptionBudgets that select a pod.
func (d *dice) budgets(f *model.DisruptionProblem) []int {
	var out []int
	for k := range f.Budgets {
		if d.once(4) {
			out = append(out, k)
		}
	}
	return out
}

// pods draws what pods of an app ask for.
func (d *dice) pods(i int) model.PodClass {
	c := model.PodClass{Requests: model.Resources{500 * int64(1+d.upTo(5)), gi * int64(1+d.upTo(6)), 0, 1}}
	if d.once(8) {
		c.Requests = pick(d, model.Resources{0, 0, 0, 1}, model.Resources{1, 1, 0, 1},
			model.Resources{500, gi}, model.Resources{100, gi, 0, 1, 1},
			model.Resources{math.MaxInt64, gi, 0, 1}, model.Resources{1 << 58, 1 << 60, 0, 1}, model.Resources{7999, 1, 1, 1})
	}
	c.Namespace, c.Labels = pick(d, "default", "default", "other"), map[string]string{"app": fmt.Sprint("app", i)}
	c.Owner = pick(d, fmt.Sprint("Deployment default/app", i), "")
	c.Priority = pick[int32](d, 0, 0, 1000, -5)
	for range pick(d, 1, 1, 1, 2, 3) {
		d.rule(&c)
	}
	if d.once(6) {
		c.Tolerations = []model.Toleration{{Key: "example.com/dedicated", Exists: true}}
	}
	return c
}

// key of topology: all nodes have a zone but few, all have a name.
func (d *dice) key() string {
	return pick(d, model.LabelZone, model.LabelHostname, model.LabelZone, rack)
}

func (d *dice) term() model.AffinityTerm {
	t := model.AffinityTerm{TopologyKey: d.key(), Selector: selector(fmt.Sprint("app", d.upTo(5))), Namespaces: []string{"default"}}
	if d.once(6) {
		t.Selector, t.AllNamespaces = pick(d, nil, &model.Selector{}), true
	}
	return t
}

func (d *dice) needs() model.Requirements {
	return model.Requirements{pick(d,
		model.Requirement{Key: model.LabelZone, Operator: model.In, Values: []string{pick(d, "z1", "z2", "z3")}},
		model.Requirement{Key: model.LabelZone, Operator: model.NotIn, Values: []string{"z1"}},
		model.Requirement{Key: model.LabelCapacityType, Operator: model.In, Values: []string{"on-demand", "reserved"}},
		model.Requirement{Key: model.LabelHostname, Operator: model.In, Values: []string{"node0", "node1"}},
		model.Requirement{Key: rack, Operator: model.Exists},
		model.Requirement{Key: rack, Operator: model.DoesNotExist},
		model.Requirement{Key: "example.com/cores", Operator: model.Lt, Values: []string{"9"}},
		model.Requirement{Key: "example.com/team", Operator: model.In, Values: []string{"blue"}})}
}

func (d *dice) rule(c *model.PodClass) {
	switch d.upTo(12) {
	case 0, 1:
		s := model.SpreadConstraint{TopologyKey: d.key(), MaxSkew: int32(1 + d.upTo(1)), Hard: !d.once(3),
			Selector: selector(c.Labels["app"]), HonorNodeAffinity: !d.once(3), HonorTaints: d.once(3)}
		if d.once(4) {
			s.MinDomains = int32(d.upTo(4))
		}
		if d.once(6) {
			s.Selector = pick(d, nil, &model.Selector{}, selector("app1"))
		}
		c.Spread = append(c.Spread, s)
	case 2:
		c.AntiAffinity = append(c.AntiAffinity, d.term())
	case 3:
		c.Affinity = append(c.Affinity, d.term())
	case 4:
		c.NodeRequirements = append(c.NodeRequirements, d.needs()...)
	case 5:
		c.HostPorts = append(c.HostPorts,
			model.HostPort{IP: pick(d, "", "10.0.0.1"), Port: pick[int32](d, 80, 443), Protocol: pick(d, "TCP", "UDP")})
	case 6:
		c.Volumes = append(c.Volumes, model.Volume{ID: pick(d, "", "shared", "both"), Driver: pick(d, "disk", "disk", "file")})
		c.VolumeAlternatives = []model.Requirements{{{Key: model.LabelZone, Operator: model.In, Values: []string{pick(d, "z1", "z2")}}}}
	case 7:
		c.NodePreferences = append(c.NodePreferences, model.NodePreference{Weight: 1 + int32(d.upTo(99)), Requirements: d.needs()})
	case 8:
		c.NodeAlternatives = append(c.NodeAlternatives, d.needs())
	case 9:
		c.Preferences = append(c.Preferences, model.AffinityPreference{Weight: 1 + int32(d.upTo(99)), Anti: d.once(2), Term: d.term()})
	case 10:
		c.MaxPrice = model.USD(pick(d, 0.05, 0.10, 0.20))
	}
}

// waiting adds pods without a place.
func (d *dice) waiting(f *model.DisruptionProblem, i int) {
	c := d.pods(d.upTo(6))
	// Where pods that wait go, moves do not tell; so no pod which moves may need them.
	for k := range f.Movable {
		if len(f.Movable[k].Affinity) > 0 {
			c.Labels = map[string]string{"app": "waits"}
		}
	}
	for k := range 1 + d.upTo(3) {
		c.Pods = append(c.Pods, model.PodRef{Namespace: c.Namespace, Name: fmt.Sprintf("waiting%d-%d", i, k)})
	}
	f.Problem.Classes = append(f.Problem.Classes, c)
}

func (d *dice) node(f *model.DisruptionProblem, n int) {
	p := f.Problem
	it := &p.Catalogs[0].InstanceTypes[d.upTo(3)]
	o := it.Offerings[d.upTo(len(it.Offerings)-1)]
	policy := d.upTo(len(f.Policies)) - 1
	if d.calm {
		policy = max(policy, 0)
	}
	node := model.Node{
		Name: fmt.Sprint("node", n), Claim: fmt.Sprint("claim", n), State: model.NodeReady, Price: o.Price,
		Labels: map[string]string{model.LabelZone: o.Zone, model.LabelInstanceType: it.Name,
			model.LabelCapacityType: string(o.CapacityType), model.LabelHostname: fmt.Sprint("node", n)},
		Allocatable: it.Allocatable(), Used: make(model.Resources, 5), VolumeSlots: map[string]int{"disk": it.VolumeSlots["disk"]},
	}
	maps.Copy(node.Labels, it.Labels)
	d.oddities(p, &node)
	if policy >= 0 {
		node.Pool = f.Policies[policy].Pool
		node.Labels[model.LabelNodePool] = node.Pool
		for i := range p.Pools {
			if p.Pools[i].Name == node.Pool {
				p.Pools[i].Usage, p.Pools[i].Nodes = p.Pools[i].Usage.Add(it.Capacity), p.Pools[i].Nodes+1
				p.Pools[i].Cost += node.Price
				node.Taints = append(node.Taints, p.Pools[i].Taints...)
			}
		}
	} else {
		node.Price = pick(d, node.Price, 0)
		if d.strife(4) { // they stay as long as the node does
			node.Bound = append(node.Bound, model.BoundPods{Shape: len(p.Shapes) - 1, Count: 1 + d.upTo(2)})
		}
	}
	t := d.tenancy(&node)
	t.Policy = policy
	if policy >= 0 && node.State != model.NodeLeaving {
		t.Held = it.Capacity
	}
	if d.strife(4) {
		t.DaemonPods = []model.DaemonPod{{Pod: model.PodRef{Namespace: "default", Name: fmt.Sprint("daemon", n)}, Budgets: d.budgets(f)}}
	}
	for range d.upTo(4) {
		d.tenant(f, &node, &t)
	}
	if len(t.DoNotDisruptPods) > 0 && len(t.Pods) > 0 {
		t.DoNotDisruptPods[0].Pod = f.Movable[t.Pods[0].Class].Pods[t.Pods[0].Pods[0]]
	}
	if policy >= 0 && f.Policies[policy].Count != nil {
		f.Policies[policy].Count.Nodes++
		if !t.Disrupting {
			f.Policies[policy].Count.Staying++
		}
	}
	p.Nodes = append(p.Nodes, node)
	f.Usages = append(f.Usages, t)
}

// oddities make a node unlike what would be bought now.
func (d *dice) oddities(p *model.Problem, node *model.Node) {
	if d.once(8) {
		node.Labels[rack] = pick(d, "r1", "r2")
	}
	if d.once(8) {
		node.Labels["example.com/team"] = "blue"
	}
	if d.strife(12) { // a machine of no NodePool's catalogue
		delete(node.Labels, model.LabelZone)
		delete(node.Labels, model.LabelInstanceType)
		delete(node.Labels, model.LabelCapacityType)
	}
	if d.strife(12) {
		node.Labels[model.LabelZone] = "z3"
	}
	if d.strife(12) {
		node.Taints = append(node.Taints, d.taint())
	}
	if d.strife(10) {
		node.Price = pick[model.Money](d, 0, 1, 7*node.Price)
	}
	if d.strife(12) { // more than there is: the scheduler does not place static pods
		node.Used = pick(d, model.Resources{1500, gi, 0, 1, 0}, model.Resources{17000, gi, 0, 2, 0}, node.Allocatable)
	}
}

func (d *dice) tenancy(node *model.Node) model.NodeUsage {
	t := model.NodeUsage{Initialized: true, Ready: !d.strife(12), Nominated: d.strife(12),
		DoNotDisrupt: d.strife(12), Disrupting: d.strife(15), Reserved: d.strife(15), GracePeriod: d.strife(3)}
	t.Created = now.Add(-3 * time.Hour)
	t.InitializedAt = now.Add(-2 * time.Hour)
	t.LastPodEvent = now.Add(-pick(d, 2*time.Hour, 30*time.Minute, 10*time.Second))
	if d.strife(10) {
		t.Initialized, node.State = false, pick(d, model.NodeRegistered, model.NodeLaunching)
		node.Claim = pick(d, node.Claim, "")
	}
	if d.strife(15) {
		t.Disrupting, node.State = true, model.NodeLeaving
	}
	if d.strife(6) {
		t.Drift, t.DriftSince = "NodePoolDrifted", now.Add(-time.Hour)
	}
	if d.strife(8) {
		t.Unhealthy, t.UnhealthySince = "Ready=Unknown", now.Add(-pick(d, time.Minute, time.Hour))
		t.Ready = d.once(2)
	}
	if d.strife(8) {
		t.ExpiresAt = now.Add(pick(d, time.Minute, time.Hour, -time.Hour))
	}
	if d.strife(15) {
		t.RetryAfter = now.Add(pick(d, time.Minute, -time.Minute))
	}
	if d.strife(8) {
		t.Ending, t.EndingUntil = 1, now.Add(pick(d, time.Second, -time.Second))
		t.Returning, t.ReturningUntil = pick(d, 0, 1), now.Add(pick(d, time.Second, -time.Second))
	}
	if d.strife(6) {
		t.ExpectedSaving = model.USD(pick(d, 0.02, 0.2, 2))
	}
	if d.strife(8) {
		t.DoNotDisruptPods = []model.DoNotDisruptPod{{
			Pod: model.PodRef{Namespace: "default", Name: "held"}, Until: pick(d, time.Time{}, now.Add(-time.Minute), now.Add(time.Minute), now),
		}}
	}
	return t
}

// tenant puts a pod of some class on a node, if there is room.
func (d *dice) tenant(f *model.DisruptionProblem, node *model.Node, t *model.NodeUsage) {
	i := d.upTo(len(f.Movable) - 1)
	c := &f.Movable[i]
	used := node.Used.Add(c.Requests)
	if !used.Fits(node.Allocatable) || len(c.HostPorts) > 0 && len(node.HostPorts) > 0 ||
		node.VolumeSlots["disk"] < len(c.Volumes) || node.State == model.NodeLaunching {
		return
	}
	if node.State == model.NodeLeaving {
		return // its pods would be among those that wait
	}
	node.Used = used
	node.HostPorts = append(node.HostPorts, c.HostPorts...)
	for _, v := range c.Volumes {
		if v.ID == "" || !slices.Contains(node.Attached, v) {
			if v.Driver == "disk" {
				node.VolumeSlots["disk"]--
			}
			node.Attached = append(node.Attached, v)
		}
	}
	c.Pods = append(c.Pods, model.PodRef{Namespace: c.Namespace, Name: fmt.Sprintf("app%d-%d", i, len(c.Pods))})
	t.Pods = append(t.Pods, model.ClassPods{Class: i, Pods: []int{len(c.Pods) - 1}})
	node.Bound = append(node.Bound, model.BoundPods{Shape: i, Count: 1})
}

// later is the fleet after something has happened.
func (d *dice) later(f *model.DisruptionProblem) *model.DisruptionProblem {
	out, p := *f, *f.Problem
	out.Problem = &p
	p.Nodes, out.Usages, out.Budgets = slices.Clone(p.Nodes), slices.Clone(f.Usages), slices.Clone(f.Budgets)
	for range d.upTo(4) {
		n := d.upTo(len(p.Nodes) - 1)
		node, t := &p.Nodes[n], &out.Usages[n]
		switch d.upTo(8) {
		case 0:
			t.Disrupting = true
		case 1:
			t.Disrupting, node.State = true, model.NodeLeaving
		case 2:
			t.Ready = false
		case 3:
			t.DoNotDisrupt = true
		case 4:
			t.Drift, t.Nominated = "", true
		case 5:
			t.DoNotDisruptPods = append(slices.Clone(t.DoNotDisruptPods),
				model.DoNotDisruptPod{Pod: model.PodRef{Namespace: "default", Name: "new"}})
		case 6:
			t.Pods, node.Bound = nil, nil
		case 7:
			if len(p.Nodes) > 1 {
				p.Nodes, out.Usages = slices.Delete(p.Nodes, n, n+1), slices.Delete(out.Usages, n, n+1)
			}
		case 8:
			for k := range out.Budgets {
				out.Budgets[k].Allowed = 0
			}
		}
	}
	if d.once(4) {
		p.Pools = p.Pools[:d.upTo(len(p.Pools))]
	}
	if d.once(4) {
		p.Nodes = slices.Clone(p.Nodes)
		for i := range p.Nodes {
			p.Nodes[i].Used = p.Nodes[i].Allocatable
		}
	}
	return &out
}
