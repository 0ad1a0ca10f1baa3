package planner_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

// withCommon draws a problem of tenants who share open NodePools, some of whose pods belong to no
// tenant.
func (d *dice) withCommon() *model.Problem {
	p := d.tenants()
	for i := range p.Pools {
		if d.once(2) {
			last := &p.Pools[i].Requirements[len(p.Pools[i].Requirements)-1]
			*last = model.Requirement{Key: "tenant", Operator: model.Exists}
		}
		if d.once(3) {
			p.Pools[i].NodeLimit = p.Pools[i].Nodes + d.upTo(3)
			p.Pools[i].Weight = 0 // so that those with limits are shared, too
		}
	}
	for i := range p.Classes {
		rules := &p.Classes[i].PodRules
		if d.once(3) {
			rules.NodeRequirements = slices.DeleteFunc(slices.Clone(rules.NodeRequirements), func(r model.Requirement) bool { return r.Key == "tenant" })
		}
	}
	return p
}

// A plan made in phases breaks no rule of the whole, leaves no pod out for which there is a place,
// and its bound holds for plans of the whole, as theirs for it.
func TestPlanInPhasesIsOneOfTheWhole(t *testing.T) {
	phased, compared, cost, costWhole := 0, 0, model.Money(0), model.Money(0)
	rapid.Check(t, func(rt *rapid.T) {
		d := &dice{T: rt, tiny: rapid.Bool().Draw(rt, "tiny")}
		p := d.withCommon()
		p.Policy.Budget = pick(d, 0, 2*time.Millisecond)
		if !planner.Phased(p) {
			return
		}
		phased++
		plan := planner.SolveInTurn(p)
		violations := slices.DeleteFunc(verify.Check(p, plan), func(v verify.Violation) bool {
			return v.Rule == "near tie" // which is each phase's own, by its own bound
		})
		if len(violations) > 0 {
			rt.Fatalf("%v\n%s", violations, describe(p, plan))
		}
		for i := range plan.Unschedulable {
			if plan.Unschedulable[i].Reason == "" {
				rt.Fatalf("no reason for %+v\n%s", plan.Unschedulable[i], describe(p, plan))
			}
		}
		whole := planner.SolveWhole(p)
		if more := verify.CouldAdd(p, plan); d.tiny && more != "" && verify.CouldAdd(p, whole) == "" {
			rt.Fatalf("%s\n%s", more, describe(p, plan))
		}
		if left(plan) != left(whole) {
			return
		}
		compared, cost, costWhole = compared+1, cost+plan.Cost, costWhole+whole.Cost
		if plan.LowerBound > whole.Cost || whole.LowerBound > plan.Cost {
			rt.Fatalf("costs %s, at least %s; as a whole %s, at least %s\n%s", plan.Cost, plan.LowerBound, whole.Cost, whole.LowerBound,
				describe(p, plan))
		}
	})
	t.Logf("%d plans in phases, %d of them compared: they cost %s, as a whole %s", phased, compared, cost, costWhole)
	if compared < 10 {
		t.Errorf("only %d plans in phases, %d of them compared", phased, compared)
	}
}

// teamsBesideShared is a problem of teams with two pods each, which leave room on their machines,
// and of pods which any machine may hold.
func teamsBesideShared(teams, shared int) *model.Problem {
	p := &model.Problem{Axes: model.NewAxes(), Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{
		{Name: "small", Capacity: model.Resources{2000, 8 * gi, 100 * gi, 110}, Offerings: []model.Offering{
			{Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(1), Available: true},
			{Zone: "z2", CapacityType: model.OnDemand, Price: model.USD(1), Available: true},
		}},
		{Name: "tight", Capacity: model.Resources{1500, 8 * gi, 100 * gi, 110}, Offerings: []model.Offering{
			{Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(1.01), Available: true},
		}},
	}}}}
	p.Pools = []model.Pool{{Name: "all", NodeLimit: -1, Requirements: model.Requirements{{Key: "team", Operator: model.Exists}}}}
	class := func(name string, n int, millis int64) model.PodClass {
		c := model.PodClass{Owner: name, PodShape: model.PodShape{Namespace: "default", Labels: map[string]string{"app": name}},
			Requests: model.Resources{millis, gi, 0, 1}}
		for i := range n {
			c.Pods = append(c.Pods, model.PodRef{Namespace: "default", Name: fmt.Sprint(name, "-", i)})
		}
		return c
	}
	for i := range teams {
		c := class(fmt.Sprint("team-", i), 1, 1500)
		c.NodeRequirements = model.Requirements{{Key: "team", Operator: model.In, Values: []string{fmt.Sprint(i)}}}
		p.Classes = append(p.Classes, c)
	}
	p.Classes = append(p.Classes, class("shared", shared, 400))
	return p
}

// Pods that belong to no team take what the teams' machines have left, and no machine is bought
// for them before that is used up. Machines that took one are not bought in a size without room
// for it.
func TestPhasesFillWhatOthersBought(t *testing.T) {
	p := teamsBesideShared(4, 3)
	plan := planner.SolveInTurn(p)
	if len(plan.NewNodes) != 4 || plan.Cost != model.USD(4) || len(plan.Unschedulable) > 0 || !planner.Phased(p) {
		t.Fatalf("%d machines for %s, %d classes wait, phased %v", len(plan.NewNodes), plan.Cost, len(plan.Unschedulable), planner.Phased(p))
	}
	for i := range plan.NewNodes {
		n := &plan.NewNodes[i]
		both := len(n.Pods) == 2
		for _, o := range n.Offerings {
			if both && o.InstanceType == 1 {
				t.Errorf("a machine with a shared pod may be of a size that does not hold it: %+v", n)
			}
		}
		millis := int64(1500)
		if both {
			millis = 1900
		}
		if n.Requests.Get(model.CPU) != millis {
			t.Errorf("machine %d asks for %d millis, want %d", i, n.Requests.Get(model.CPU), millis)
		}
		if len(n.Requirements) == 0 || n.Requirements[0].Key != "team" || len(n.Requirements[0].Values) != 1 {
			t.Errorf("machine %d is of no team: %+v", i, n.Requirements)
		}
	}
	if v := verify.Check(p, plan); len(v) > 0 {
		t.Error(v)
	}
}

// Some machines are left to the pods that they were bought for: what others would need of them is not
// known, or forbidden.
func TestPhasesLeaveSomeMachinesAlone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *model.Problem, shared *model.PodClass)
		// filled is how many machines of teams hold a shared pod.
		filled int
	}{
		"nothing special": {func(*model.Problem, *model.PodClass) {}, 3},
		"minValues": {func(p *model.Problem, _ *model.PodClass) {
			p.Pools[0].Requirements = append(p.Pools[0].Requirements,
				model.Requirement{Key: model.LabelInstanceType, Operator: model.Exists, MinValues: 1})
		}, 0},
		"a heavier NodePool for all": {func(p *model.Problem, _ *model.PodClass) {
			p.Pools = append(p.Pools, model.Pool{Name: "heavy", Weight: 1, NodeLimit: -1})
		}, 0},
		"a price that the machines exceed": {func(p *model.Problem, shared *model.PodClass) {
			shared.MaxPrice = model.USD(0.5)
			p.Catalogs[0].InstanceTypes = append(p.Catalogs[0].InstanceTypes, model.InstanceType{
				Name: "cheap", Capacity: model.Resources{1000, 8 * gi, 100 * gi, 110},
				Offerings: []model.Offering{{Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(0.5), Available: true}},
			})
		}, 0},
		"a label that no pod of theirs decides, and that is not wanted": {func(p *model.Problem, shared *model.PodClass) {
			p.Pools[0].Requirements = append(p.Pools[0].Requirements, model.Requirement{Key: "rack", Operator: model.In, Values: []string{"a", "b"}})
			shared.NodeRequirements = model.Requirements{{Key: "rack", Operator: model.NotIn, Values: []string{"a"}}}
		}, 0},
		"a label that is only to be there": {func(p *model.Problem, shared *model.PodClass) {
			p.Pools[0].Requirements = append(p.Pools[0].Requirements, model.Requirement{Key: "rack", Operator: model.In, Values: []string{"a", "b"}})
			shared.NodeRequirements = model.Requirements{{Key: "rack", Operator: model.Exists}}
		}, 3},
		"a port that a DaemonSet has": {func(p *model.Problem, shared *model.PodClass) {
			port := []model.HostPort{{Port: 80, Protocol: "TCP"}}
			p.Pools[0].Daemons = []model.Daemon{{Name: "agent", HostPorts: port}}
			p.Pools = append(p.Pools, model.Pool{Name: "other", NodeLimit: -1})
			shared.HostPorts = port
		}, 0},
		"a taint": {func(p *model.Problem, _ *model.PodClass) {
			p.Pools[0].Taints = []model.Taint{{Key: "teams", Effect: model.NoSchedule}}
			for i := range p.Classes[:4] {
				p.Classes[i].Tolerations = []model.Toleration{{Key: "teams", Exists: true}}
			}
			p.Pools = append(p.Pools, model.Pool{Name: "other", NodeLimit: -1, Requirements: model.Requirements{{Key: "team", Operator: model.Exists}}})
			p.Classes[0].Tolerations = nil // so that the NodePools belong together but for the shared pods
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := teamsBesideShared(4, 3)
			c.change(p, &p.Classes[4])
			plan := planner.SolveInTurn(p)
			if v := verify.Check(p, plan); len(v) > 0 || len(plan.Unschedulable) > 0 || !planner.Phased(p) {
				t.Fatalf("phased %v: %v\n%s", planner.Phased(p), v, describe(p, plan))
			}
			filled := 0
			for i := range plan.NewNodes {
				if len(plan.NewNodes[i].Pods) == 2 {
					filled++
				}
			}
			if filled != c.filled {
				t.Errorf("%d machines of teams hold shared pods, want %d\n%s", filled, c.filled, describe(p, plan))
			}
		})
	}
}

// A machine that was filled keeps its alternatives, also where the plan uses up what there is.
func TestFilledMachinesKeepTheirAlternatives(t *testing.T) {
	for name, change := range map[string]func(p *model.Problem){
		"nothing is limited": func(*model.Problem) {},
		"a limit":            func(p *model.Problem) { p.Pools[0].NodeLimit = 4 },
		"a quota": func(p *model.Problem) {
			p.Quotas = []model.Quota{{Name: "family", Left: 8}}
			for i := range p.Catalogs[0].InstanceTypes[0].Offerings {
				p.Catalogs[0].InstanceTypes[0].Offerings[i].Quotas = []model.QuotaUse{{Quota: "family", Amount: 2}}
			}
		},
	} {
		p := teamsBesideShared(4, 3)
		change(p)
		plan := planner.SolveInTurn(p)
		for i := range plan.NewNodes {
			if n := &plan.NewNodes[i]; len(n.Pods) == 2 && len(n.Offerings) != 2 {
				t.Errorf("%s: machine %d has %d offerings, want those of both zones", name, i, len(n.Offerings))
			}
		}
		if v := verify.Check(p, plan); len(v) > 0 || len(plan.NewNodes) != 4 {
			t.Errorf("%s: %v\n%s", name, v, describe(p, plan))
		}
	}
}

// Where a phase does not fill some machines, and leaves pods out which these would hold, the
// problem is planned as one.
func TestPhasesLeaveNoPodOut(t *testing.T) {
	p := teamsBesideShared(4, 3)
	p.Pools[0].NodeLimit = 4
	p.Pools[0].Requirements = append(p.Pools[0].Requirements, model.Requirement{Key: model.LabelInstanceType, Operator: model.Exists, MinValues: 1})
	plan := planner.SolveInTurn(p)
	if len(plan.Unschedulable) > 0 || len(plan.NewNodes) != 4 || !planner.Phased(p) {
		t.Errorf("phased %v\n%s", planner.Phased(p), describe(p, plan))
	}
}

// Pods that depend on each other by topology are planned together.
func TestPhasesAreForIndependentPods(t *testing.T) {
	term := func(key string, apps ...string) model.AffinityTerm {
		return model.AffinityTerm{TopologyKey: key, Namespaces: []string{"default"},
			Selector: &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: apps}}}}
	}
	for name, c := range map[string]struct {
		change func(p *model.Problem, shared *model.PodClass)
		phased bool
	}{
		"none of topology": {func(*model.Problem, *model.PodClass) {}, true},
		"among themselves": {func(_ *model.Problem, shared *model.PodClass) {
			shared.AntiAffinity = []model.AffinityTerm{term(model.LabelHostname, "shared")}
		}, true},
		"away from a team's": {func(_ *model.Problem, shared *model.PodClass) {
			shared.AntiAffinity = []model.AffinityTerm{term(model.LabelHostname, "team-1")}
		}, false},
		"over a label that is open": {func(_ *model.Problem, shared *model.PodClass) {
			shared.AntiAffinity = []model.AffinityTerm{term("team", "shared")}
		}, false},
		"a team's, over zones, with volumes": {func(p *model.Problem, _ *model.PodClass) {
			p.Classes[0].Spread = []model.SpreadConstraint{{TopologyKey: model.LabelZone, MaxSkew: 1, Hard: true, Selector: term("", "team-0").Selector,
				HonorNodeAffinity: true, HonorTaints: true}}
			p.Classes[0].VolumeAlternatives = []model.Requirements{{{Key: model.LabelZone, Operator: model.In, Values: []string{"z1"}}}}
		}, false},
	} {
		p := teamsBesideShared(4, 3)
		c.change(p, &p.Classes[4])
		if got := planner.Phased(p); got != c.phased {
			t.Errorf("%s: phased %v, want %v", name, got, c.phased)
		}
		if v := verify.Check(p, planner.SolveInTurn(p)); len(v) > 0 {
			t.Errorf("%s: %v", name, v)
		}
	}
	p := teamsBesideShared(4, 0)
	p.Classes = p.Classes[:4]
	if n := planner.Parts(p); n != 4 {
		t.Errorf("teams are %d parts", n)
	}
	p.Classes[0].AntiAffinity = []model.AffinityTerm{term("team", "team-0")}
	if n := planner.Parts(p); n != 0 {
		t.Errorf("teams of whose label a term speaks are %d parts", n)
	}
}

// The bound of a plan in phases counts the pods of both.
func TestBoundOfPhasesCountsAllPods(t *testing.T) {
	p := teamsBesideShared(4, 40)
	plan, whole := planner.SolveInTurn(p), planner.SolveWhole(p)
	if plan.LowerBound < whole.LowerBound || plan.LowerBound > whole.Cost {
		t.Errorf("costs %s, at least %s; as a whole %s, at least %s", plan.Cost, plan.LowerBound, whole.Cost, whole.LowerBound)
	}
}

// Where not all can have a place, those have one that have the higher priority, whichever phase
// is theirs.
func TestPhasesGiveWayToPriority(t *testing.T) {
	for _, urgent := range []bool{false, true} {
		p := teamsBesideShared(4, 20)
		p.Pools[0].NodeLimit = 4
		shared := &p.Classes[len(p.Classes)-1]
		if urgent {
			shared.Priority = 10
		}
		plan := planner.SolveInTurn(p)
		waits := map[bool]int{}
		for _, u := range plan.Unschedulable {
			waits[u.Class == len(p.Classes)-1] += len(u.Pods)
		}
		if want := map[bool]map[bool]int{false: {true: 16}, true: {false: 4}}[urgent]; !reflect.DeepEqual(waits, want) {
			t.Errorf("shared pods urgent %v: waiting are (shared or not) %v, want %v", urgent, waits, want)
		}
		if v := verify.Check(p, plan); len(v) > 0 {
			t.Error(v)
		}
	}
}

// A plan that was made in phases is made again in the same phases.
func TestReplayRepeatsPlanInPhases(t *testing.T) {
	p := planner.TenantsWaiting(4)
	p.Pools = []model.Pool{{Name: "all", NodeLimit: -1, Requirements: model.Requirements{{Key: "team", Operator: model.Exists}}}}
	for i := range p.Classes {
		if p.Classes[i].Tolerations = nil; i%20 < 15 {
			p.Classes[i].NodeRequirements = model.Requirements{{Key: "team", Operator: model.In, Values: []string{fmt.Sprint(i / 20)}}}
		}
	}
	p.Policy = model.Policy{Budget: 50 * time.Millisecond, Seed: 3, Elapsed: stumbling(time.Second, 4)}
	cut := planner.SolveInTurn(p)
	replay := cut.Stats.Replay
	if replay == nil || len(replay.Parts) != 2 || len(replay.Parts[0].Parts) != 4 || !planner.Phased(p) {
		t.Fatalf("the plan was not made in phases, or not recorded: %+v", replay)
	}
	repeats(t, p, cut, planner.SolveInTurn)
}
