package decompose

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// fleets are two tenants with a NodePool each, two nodes and two pods on each node; pods of a
// third class wait for the first tenant.
func fleets() *model.DisruptionProblem {
	p := tenants()
	waiting := p.Classes[0]
	p.Nodes, p.Classes = nil, []model.PodClass{waiting}
	f := &model.DisruptionProblem{Problem: p}
	for i, pool := range p.Pools {
		f.Policies = append(f.Policies, model.DisruptionPolicy{Pool: pool.Name})
		c := model.MovableClass{PodClass: model.PodClass{
			PodShape: model.PodShape{Namespace: pool.Name, Labels: map[string]string{"app": "db"}},
			PodRules: model.PodRules{NodeRequirements: pool.Requirements},
		}}
		for k := range 2 {
			name := fmt.Sprint(pool.Name, "-", k)
			p.Nodes = append(p.Nodes, model.Node{
				Name: name, Claim: "claim-" + name, Pool: pool.Name, State: model.NodeReady, Price: model.Money(10 + i),
				Labels: map[string]string{"tenant": pool.Name}, Bound: []model.BoundPods{{Shape: i, Count: 2}},
			})
			f.Usages = append(f.Usages, model.NodeUsage{Policy: i, Pods: []model.ClassPods{{Class: i, Pods: []int{2 * k, 2*k + 1}}}})
			c.Pods = append(c.Pods, make([]model.PodRef, 2)...)
		}
		f.Movable = append(f.Movable, c)
		p.Shapes = append(p.Shapes, c.PodShape)
	}
	return f
}

// shareNodePool makes the NodePools of tenants one, which leaves the tenant to its nodes.
func shareNodePool(f *model.DisruptionProblem) {
	oneForAll(f.Problem)
	f.Policies = []model.DisruptionPolicy{{Pool: "all"}}
	for n := range f.Problem.Nodes {
		f.Problem.Nodes[n].Pool, f.Usages[n].Policy = "all", 0
	}
}

// names are the nodes of a problem.
func names(f *model.DisruptionProblem) []string {
	var out []string
	for _, n := range f.Problem.Nodes {
		out = append(out, n.Name)
	}
	return out
}

func TestNodesOfPartsAreRelatedByPoolsPodsAndBudgets(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *model.DisruptionProblem)
		parts  int
	}{
		"nothing": {func(*model.DisruptionProblem) {}, 2},
		"a PodDisruptionBudget of each": {func(f *model.DisruptionProblem) {
			f.Movable[0].Budgets, f.Movable[1].Budgets = []int{0}, []int{1}
		}, 2},
		"a PodDisruptionBudget of both": {func(f *model.DisruptionProblem) {
			f.Movable[0].Budgets, f.Movable[1].Budgets = []int{0, 1}, []int{1}
		}, 0},
		"a PodDisruptionBudget of DaemonSet pods of both": {func(f *model.DisruptionProblem) {
			f.Budgets = []model.PodBudget{{Allowed: 1}}
			f.Usages[0].DaemonPods, f.Usages[3].DaemonPods = []model.DaemonPod{{Budgets: []int{0}}}, []model.DaemonPod{{Budgets: []int{0}}}
		}, 0},
		"a PodDisruptionBudget of a DaemonSet pod of one and pods of the other": {func(f *model.DisruptionProblem) {
			f.Budgets = []model.PodBudget{{Allowed: 1}}
			f.Movable[0].Budgets, f.Usages[3].DaemonPods = []int{0}, []model.DaemonPod{{Budgets: []int{0}}}
		}, 0},
		"PodDisruptionBudgets of DaemonSet pods of both that allow nothing": {func(f *model.DisruptionProblem) {
			f.Budgets = []model.PodBudget{{}, {Allowed: 1, Blocking: true}}
			for n := range f.Usages {
				f.Usages[n].DaemonPods = []model.DaemonPod{{Budgets: []int{0}}, {Budgets: []int{1}}}
			}
		}, 2},
		"a pod on a node of the other": {func(f *model.DisruptionProblem) {
			f.Usages[3].Pods = append(f.Usages[3].Pods, model.ClassPods{Class: 0, Pods: []int{0}})
		}, 0},
		"a node of the other's NodePool": {func(f *model.DisruptionProblem) {
			f.Problem.Nodes[3].Pool = "t0" // its pods are the other's
		}, 0},
		"nodes of one NodePool that leaves the tenant to them": {shareNodePool, 2},
		"a node of it that lacks the label": {func(f *model.DisruptionProblem) {
			shareNodePool(f)
			delete(f.Problem.Nodes[3].Labels, "tenant")
		}, 0},
		"a limit of it": {func(f *model.DisruptionProblem) {
			shareNodePool(f)
			f.Problem.Pools[0].Limits = []model.Limit{{Axis: model.CPU, Value: 1 << 40}}
		}, 0},
		"policy Balanced": {func(f *model.DisruptionProblem) {
			shareNodePool(f)
			f.Policies[0].Consolidation = model.Balanced
		}, 0},
		"a fixed number of nodes": {func(f *model.DisruptionProblem) {
			shareNodePool(f)
			f.Policies[0].Static = true
		}, 0},
		"nodes of one NodePool that may buy nothing": {func(f *model.DisruptionProblem) {
			f.Problem.Nodes[0].Pool, f.Problem.Nodes[3].Pool = "gone", "gone"
		}, 0},
	} {
		f := fleets()
		c.change(f)
		if parts := SplitDisruption(f, 0); len(parts) != c.parts {
			t.Errorf("%s: got %d parts, want %d", name, len(parts), c.parts)
		}
	}
}

// A part has its own pods, nodes and NodePools, numbered from 0, and the share of the budget
// that its nodes have.
func TestPartOfDisruption(t *testing.T) {
	f := fleets()
	f.Problem.Policy.Budget = time.Second
	parts := SplitDisruption(f, 0)
	if len(parts) != 2 {
		t.Fatalf("%d parts", len(parts))
	}
	for i, waiting := range []int{1, 0} {
		own := parts[i].Problem
		p := own.Problem
		if len(p.Pools) != 1 || p.Pools[0].Name != fmt.Sprint("t", i) || len(p.Classes) != waiting || len(own.Movable) != 1 ||
			p.Policy.Budget != time.Second/2 {
			t.Errorf("part %d: NodePools %v, %d classes wait, %d are movable, budget %s", i, p.Pools, len(p.Classes), len(own.Movable), p.Policy.Budget)
		}
		if got, want := names(own), []string{fmt.Sprint("t", i, "-0"), fmt.Sprint("t", i, "-1")}; !slices.Equal(got, want) {
			t.Errorf("part %d: nodes %v, want %v", i, got, want)
		}
		for n, u := range own.Usages {
			if u.Policy != i || len(u.Pods) != 1 || u.Pods[0].Class != 0 || u.Pods[0].Pods[0] != 2*n {
				t.Errorf("part %d, node %d: %+v", i, n, u)
			}
		}
	}
	if f.Usages[2].Pods[0].Class != 1 {
		t.Error("the problem itself was changed")
	}
}

// A node of another part whose pods count is there for its pods alone.
func TestGuestNodesAreNotDisrupted(t *testing.T) {
	f := fleets()
	p := f.Problem
	p.Shapes = append(p.Shapes, model.PodShape{Namespace: "elsewhere", Labels: map[string]string{"app": "db"}})
	p.Nodes[0].Bound = append(p.Nodes[0].Bound, model.BoundPods{Shape: 2, Count: 1})
	f.Movable[1].Affinity = []model.AffinityTerm{{TopologyKey: model.LabelZone, Namespaces: []string{"elsewhere"}, Selector: &model.Selector{}}}
	own := SplitDisruption(f, 0)[1].Problem
	if got := names(own); !slices.Equal(got, []string{"t0-0", "t1-0", "t1-1"}) {
		t.Fatalf("nodes %v", got)
	}
	if u := own.Usages[0]; u.Policy != -1 || len(u.Pods) != 0 || u.Initialized || own.Problem.Nodes[0].Price != 0 {
		t.Errorf("the guest: %+v, price %s", u, own.Problem.Nodes[0].Price)
	}
}

func TestAroundIsThePartOfACommand(t *testing.T) {
	f := fleets()
	for _, c := range []struct {
		nodes, pools []string
		want         string
	}{
		{[]string{"t1-0"}, nil, "[t1-0 t1-1]"},
		{[]string{"claim-t0-1"}, nil, "[t0-0 t0-1]"},
		{nil, []string{"t1"}, "[t1-0 t1-1]"},
		{[]string{"t1-0"}, []string{"t0"}, "[t0-0 t0-1 t1-0 t1-1]"},
		{[]string{"gone"}, nil, "[]"},
	} {
		if got := fmt.Sprint(names(Around(f, 0, c.nodes, c.pools))); got != c.want {
			t.Errorf("around nodes %v and NodePools %v: got %s, want %s", c.nodes, c.pools, got, c.want)
		}
	}
	if Around(f, 1<<20, []string{"t1-0"}, nil) != f {
		t.Error("a small problem is looked at in part")
	}
}

// bySaving makes the command that saves more first, and none of a node that stays, 0 for none.
type bySaving struct{ stays int }

func (bySaving) Before(a, b *model.Command) bool { return a.Saving > b.Saving }

func (s bySaving) Admit(c *model.Command) []model.KeptNode {
	if s.stays > 0 && c.Nodes[0] == s.stays {
		return []model.KeptNode{{Node: s.stays}}
	}
	return nil
}

// Commands of parts are told by index in the whole, the better one first, each part's in order.
func TestMergedCommandsAreOfTheWhole(t *testing.T) {
	f := fleets()
	parts := SplitDisruption(f, 0)
	command := func(saving model.Money, node int) model.Command {
		return model.Command{
			Nodes: []int{node}, Saving: saving, Evictions: 2,
			New:        []model.NewNode{{Pool: 0, Pods: []model.ClassPods{{Class: 0, Pods: []int{1}}}}},
			Placements: []model.Placement{{Node: 1 - node, Pods: []model.ClassPods{{Class: 0, Pods: []int{0}}}}},
		}
	}
	answers := []*model.Commands{
		{Commands: []model.Command{command(2, 0)}, Evictions: 2, LowerBound: 5, Tried: 1, Kept: []model.KeptNode{{Node: 1}}},
		{Commands: []model.Command{command(1, 1), command(3, 0)}, Evictions: 4, LowerBound: 6, Tried: 2,
			Rejected: map[model.Reason]int64{model.ReasonLimit: 2}, Scores: []model.BalancedScore{{Policy: 1, Nodes: []int{1}}}},
	}
	out := MergeCommands(f, parts, answers, bySaving{})
	var order []int
	for _, c := range out.Commands {
		order = append(order, c.Nodes[0])
	}
	if !slices.Equal(order, []int{0, 3, 2}) {
		t.Errorf("commands for nodes %v", order)
	}
	last := out.Commands[2]
	if last.New[0].Pool != 1 || last.New[0].Pods[0].Class != 1 || last.Placements[0].Node != 3 || last.Placements[0].Pods[0].Class != 1 {
		t.Errorf("the last command: %+v", last)
	}
	few := MergeCommands(f, parts, answers, bySaving{stays: 2})
	if len(few.Commands) != 2 || few.After != 39 || few.Evictions != 4 || len(few.Kept) != 2 || few.Kept[1].Node != 2 {
		t.Errorf("where the last command is not made: %+v", few)
	}
	if out.Before != 42 || out.After != 36 || out.LowerBound != 11 || out.Evictions != 6 || out.Tried != 3 || out.Kept[0].Node != 1 ||
		out.Scores[0].Nodes[0] != 3 || out.Rejected[model.ReasonLimit] != 2 {
		t.Errorf("got %+v", out)
	}
}
