package consolidate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
	"github.com/nodeautoprovision/nap/internal/planner/oracle"
)

// dice draws small fleets in which rules collide often.
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

func (d *dice) fleet() *model.Fleet {
	p := &model.Problem{Axes: model.NewAxes(), Policy: model.Policy{RelaxMinValues: d.once(2)}}
	var c model.Catalog
	for i, t := range []struct {
		cores int64
		price float64
	}{{2, 0.10}, {4, 0.19}, {8, 0.42}, {16, 0.70}} {
		it := model.InstanceType{Name: fmt.Sprint("t", t.cores), Capacity: model.Resources{t.cores * 1000, t.cores * 4 * gi, 0, 20}, VolumeSlots: map[string]int{"disk": 2 + i}}
		for _, z := range []string{"z1", "z2"} {
			quota := []model.QuotaUse{{Quota: "family", Amount: t.cores}}
			it.Offerings = append(it.Offerings, model.Offering{Zone: z, CapacityType: model.OnDemand, Price: model.USD(t.price), Available: !d.once(8), Quotas: quota})
			it.Offerings = append(it.Offerings, model.Offering{Zone: z, CapacityType: model.Spot, Price: model.USD(t.price / 3), Available: !d.once(3), Quotas: quota})
		}
		c.InstanceTypes = append(c.InstanceTypes, it)
	}
	p.Catalogs = []model.Catalog{c}
	if d.strife(3) {
		p.Quotas = []model.Quota{{Name: "family", Left: int64(d.upTo(20))}}
	}
	f := &model.Fleet{Problem: p, Now: now}
	for i := range 1 + d.upTo(1) {
		pool := model.Pool{Name: fmt.Sprint("pool", i), NodeLimit: -1, Weight: d.upTo(1)}
		if d.strife(4) {
			pool.Requirements = append(pool.Requirements, model.Requirement{Key: model.LabelInstanceType, Operator: model.Exists, MinValues: 1 + d.upTo(2)})
		}
		if d.strife(4) {
			pool.Limits = []model.Limit{{Axis: model.CPU, Value: 1000 * int64(d.upTo(40))}}
		}
		p.Pools = append(p.Pools, pool)
		policy := model.DisruptionPolicy{Pool: pool.Name, Consolidation: model.WhenEmptyOrUnderutilized}
		if !d.calm {
			policy.Consolidation = pick(d, model.WhenEmptyOrUnderutilized, model.WhenEmptyOrUnderutilized, model.WhenEmpty, model.Balanced)
			policy.Never, policy.Static = d.once(8), d.once(8)
			policy.After = pick(d, 0, time.Minute, time.Hour)
		}
		if d.strife(2) {
			policy.Allowed = map[model.DisruptionReason]int{model.DisruptUnderutilized: d.upTo(3), model.DisruptEmpty: d.upTo(2), model.DisruptDrifted: d.upTo(2)}
		}
		f.Policies = append(f.Policies, policy)
	}
	for i := range d.upTo(2) {
		f.Budgets = append(f.Budgets, model.PodBudget{Namespace: "default", Name: fmt.Sprint("b", i), Allowed: d.upTo(3), Blocking: d.strife(5)})
	}
	f.Terms = model.MoveTerms{Payback: 24 * time.Hour, SpotToSpot: d.once(2)}
	if d.once(2) {
		f.Terms.EvictionPrice, f.Terms.MinimumSaving = model.USD(pick(d, 0.01, 0.1, 1)), pick(d, 0, 0.1)
	}
	for i := range 1 + d.upTo(5) {
		f.Movable = append(f.Movable, d.class(f, i))
		p.Shapes = append(p.Shapes, f.Movable[i].PodShape)
	}
	for n := range 1 + d.upTo(7) {
		d.node(f, n)
	}
	return f
}

func selector(app string) *model.Selector {
	return &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{app}}}}
}

func (d *dice) class(f *model.Fleet, i int) model.MovableClass {
	c := model.MovableClass{EvictionCost: pick(d, 1.0, 1, 0, 3, -2)}
	c.Requests = model.Resources{500 * int64(1+d.upTo(5)), gi * int64(1+d.upTo(6)), 0, 1}
	c.Namespace, c.Labels = "default", map[string]string{"app": fmt.Sprint("app", i)}
	c.Owner = fmt.Sprint("Deployment default/app", i)
	app := func() string { return fmt.Sprint("app", d.upTo(5)) }
	key := func() string { return pick(d, model.LabelZone, model.LabelHostname) }
	switch d.upTo(8) {
	case 0:
		c.Spread = []model.SpreadConstraint{{TopologyKey: key(), MaxSkew: int32(1 + d.upTo(1)), Hard: !d.once(3), Selector: selector(c.Labels["app"]), HonorNodeAffinity: true}}
	case 1:
		c.AntiAffinity = []model.AffinityTerm{{TopologyKey: key(), Selector: selector(app()), Namespaces: []string{"default"}}}
	case 2:
		c.Affinity = []model.AffinityTerm{{TopologyKey: key(), Selector: selector(app()), Namespaces: []string{"default"}}}
	case 3:
		c.NodeRequirements = model.Requirements{{Key: model.LabelZone, Operator: model.In, Values: []string{pick(d, "z1", "z2")}}}
	case 4:
		c.HostPorts = []model.HostPort{{Port: 80, Protocol: "TCP"}}
	case 5:
		c.Volumes = []model.Volume{{ID: pick(d, "", "shared"), Driver: "disk"}}
		c.VolumeAlternatives = []model.Requirements{{{Key: model.LabelZone, Operator: model.In, Values: []string{pick(d, "z1", "z2")}}}}
	case 6:
		c.NodePreferences = []model.NodePreference{{Weight: 1, Requirements: model.Requirements{{Key: model.LabelCapacityType, Operator: model.In, Values: []string{"on-demand"}}}}}
	}
	for k := range f.Budgets {
		if d.once(4) {
			c.Budgets = append(c.Budgets, k)
		}
	}
	return c
}

func (d *dice) node(f *model.Fleet, n int) {
	p := f.Problem
	it := &p.Catalogs[0].InstanceTypes[d.upTo(3)]
	o := it.Offerings[d.upTo(3)]
	policy := d.upTo(len(f.Policies)-1+1) - 1
	if d.calm {
		policy = max(policy, 0)
	}
	node := model.Node{
		Name: fmt.Sprint("node", n), Claim: fmt.Sprint("claim", n), State: model.NodeReady, Price: o.Price,
		Labels:      map[string]string{model.LabelZone: o.Zone, model.LabelInstanceType: it.Name, model.LabelCapacityType: string(o.CapacityType), model.LabelHostname: fmt.Sprint("node", n)},
		Allocatable: it.Allocatable(), Used: make(model.Resources, 4), VolumeSlots: map[string]int{"disk": it.VolumeSlots["disk"]},
	}
	t := model.Tenancy{Policy: policy, Initialized: true, Ready: !d.strife(12), Nominated: d.strife(12), DoNotDisrupt: d.strife(12), Marked: d.strife(15), GracePeriod: d.strife(3)}
	t.InitializedAt = now.Add(-2 * time.Hour)
	t.LastPodEvent = now.Add(-pick(d, 2*time.Hour, 30*time.Minute, 10*time.Second))
	if policy >= 0 {
		node.Pool = f.Policies[policy].Pool
		node.Labels[model.LabelNodePool] = node.Pool
	}
	if d.strife(12) {
		t.Initialized, node.State = false, model.NodeRegistered
	}
	if d.strife(6) {
		t.Drift, t.DriftSince = "NodePoolDrifted", now.Add(-time.Hour)
	}
	if d.strife(8) {
		t.ExpiresAt = now.Add(pick(d, time.Minute, time.Hour))
	}
	if d.strife(6) {
		t.Earned = model.USD(pick(d, 0.02, 0.2, 2))
	}
	if d.strife(8) {
		t.Held = []model.HeldPod{{Pod: model.PodRef{Namespace: "default", Name: "held"}, Until: pick(d, time.Time{}, now.Add(-time.Minute), now.Add(time.Minute))}}
	}
	for range d.upTo(4) {
		i := d.upTo(len(f.Movable) - 1)
		c := &f.Movable[i]
		if used := node.Used.Add(c.Requests); used.Fits(node.Allocatable) && !(len(c.HostPorts) > 0 && len(node.HostPorts) > 0) && node.VolumeSlots["disk"] >= len(c.Volumes) {
			node.Used = used
			node.HostPorts = append(node.HostPorts, c.HostPorts...)
			for _, v := range c.Volumes {
				if v.ID == "" || !slices.Contains(node.Attached, v) {
					node.VolumeSlots["disk"]--
					node.Attached = append(node.Attached, v)
				}
			}
			c.Pods = append(c.Pods, model.PodRef{Namespace: "default", Name: fmt.Sprintf("app%d-%d", i, len(c.Pods))})
			t.Pods = append(t.Pods, model.ClassPods{Class: i, Pods: []int{len(c.Pods) - 1}})
			node.Bound = append(node.Bound, model.BoundPods{Shape: i, Count: 1})
		}
	}
	p.Nodes = append(p.Nodes, node)
	f.Tenancies = append(f.Tenancies, t)
}

// No answer moves a pod to where it may not be, spends more than budgets and
// PodDisruptionBudgets allow, makes the fleet more expensive, or is silent about
// a node.
func TestMovesAreSafe(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := &dice{T: rt}
		f := d.fleet()
		f.Problem.Policy.Budget = pick(d, 0, 5*time.Millisecond)
		moves := consolidate.Plan(f)
		for _, v := range oracle.CheckMoves(f, moves) {
			rt.Errorf("%s", v)
		}
		saved := model.Money(0)
		for i := range moves.Moves {
			if r := moves.Moves[i].Reason; r == model.DisruptEmpty || r == model.DisruptUnderutilized {
				saved += moves.Moves[i].Saving
			}
		}
		if saved < 0 {
			rt.Errorf("consolidation costs %s", -saved)
		}
	})
}

func TestSameFleetSameMoves(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := &dice{T: rt}
		f := d.fleet()
		f.Problem.Policy.Budget = 5 * time.Millisecond
		if diff := cmp.Diff(consolidate.Plan(f), consolidate.Plan(f)); diff != "" {
			rt.Errorf("two answers differ:\n%s", diff)
		}
	})
}

// A move stands right after it was decided.
func TestMovesStandWhileNothingHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := (&dice{T: rt}).fleet()
		moves := consolidate.Plan(f)
		if len(moves.Moves) > 0 {
			for _, o := range consolidate.Recheck(f, consolidate.IntentOf(f, &moves.Moves[0])) {
				rt.Errorf("%s: %s", o.Node, o.Message)
			}
		}
	})
}

// Made and asked again, the fleet becomes cheaper with every answer and soon
// nothing more is proposed.
func TestAnswersComeToRest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := (&dice{T: rt, calm: true}).fleet()
		for range 12 {
			moves := consolidate.Plan(f)
			for _, v := range oracle.CheckMoves(f, moves) {
				rt.Errorf("%s", v)
			}
			if len(moves.Moves) == 0 {
				if moves.After != moves.Before {
					rt.Errorf("nothing is proposed, and %s becomes %s", moves.Before, moves.After)
				}
				return
			}
			if moves.After > moves.Before {
				rt.Fatalf("%s becomes %s", moves.Before, moves.After)
			}
			f = apply(f, moves)
		}
		rt.Error("after 12 answers there is still more to propose")
	})
}
