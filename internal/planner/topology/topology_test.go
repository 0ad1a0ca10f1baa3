package topology

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// topologyOf has nodes in three zones, one node without a zone, and one class, whose
// pods are app=web, at one level.
func topologyOf(level Level) *Topology {
	class := model.PodClass{Pods: make([]model.PodRef, 1)}
	class.Namespace, class.Labels = "default", map[string]string{"app": "web"}
	class.Spread, class.Affinity, class.AntiAffinity = level.Spread, level.Affinity, level.AntiAffinity
	p := &model.Problem{Axes: model.NewAxes(), Classes: []model.PodClass{class}}
	for i := range 4 {
		n := model.Node{Name: fmt.Sprint("n", i), State: model.NodeReady, Labels: map[string]string{}}
		if i < 3 {
			n.Labels[model.LabelZone] = fmt.Sprint("z", i)
		}
		p.Nodes = append(p.Nodes, n)
	}
	s := feasible.New(p)
	level.Options = feasible.NewSet(len(s.Options))
	return Compile(s, [][]Level{{level}})
}

// start counts no pods yet.
func start(level Level) (*Counts, *Rules) {
	t := topologyOf(level)
	return t.NewCounts(nil), t.Rules(0, 0)
}

func node(n int) Place { return Place{ID: n, Node: n, Option: -1} }

func web() *model.Selector {
	return &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{"web"}}}}
}

// The minimum that is kept up to date is the one that counting again would give.
func TestMinimumMatchesRecount(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, rules := start(Level{Spread: []model.SpreadConstraint{{TopologyKey: model.LabelZone, MaxSkew: 1, Selector: web(), Hard: true}}})
		counts := [3]int{}
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			n := rapid.IntRange(0, 3).Draw(rt, "node")
			k := rapid.IntRange(1, 3).Draw(rt, "pods")
			if n < 3 && rapid.Bool().Draw(rt, "leave") {
				k = -min(k, counts[n])
			}
			w.Add(0, node(n), k)
			if n < 3 {
				counts[n] += k
			}
			if rapid.Bool().Draw(rt, "look") {
				if got, want := w.Minimum(&rules.Spread[0]), min(counts[0], counts[1], counts[2]); int(got) != want {
					rt.Fatalf("counts %v: got %d, want %d", counts, got, want)
				}
			}
		}
	})
}

func TestRoomOfSpread(t *testing.T) {
	w, rules := start(Level{Spread: []model.SpreadConstraint{{TopologyKey: model.LabelZone, MaxSkew: 2, Selector: web(), Hard: true}}})
	w.Add(0, node(0), 2)
	for n, want := range []int{0, 2, 2, 0} {
		if got := w.Room(rules, node(n), Everything); got != want {
			t.Errorf("node %d: got room for %d, want %d", n, got, want)
		}
	}
	if r := w.Refusal(rules, node(0)); r == nil || r.Reason != model.ReasonSpread || r.Have != "2 pods in z0, and 0 in z1, which counts although no NodePool can buy for the pod there" {
		t.Errorf("got %+v", r)
	}
}

func TestAffinitySeedPodThenOneDomain(t *testing.T) {
	w, rules := start(Level{Affinity: []model.AffinityTerm{{TopologyKey: model.LabelZone, Selector: web(), Namespaces: []string{"default"}}}})
	if got := w.Room(rules, node(1), Everything); got != 1 {
		t.Errorf("before the first pod: got room for %d, want 1", got)
	}
	w.Add(0, node(1), 1)
	for n, want := range []int{0, NoLimit, 0, 0} {
		if got := w.Room(rules, node(n), Everything); got != want {
			t.Errorf("node %d: got room for %d, want %d", n, got, want)
		}
	}
}

func TestAntiAffinityToSelfAdmitsOne(t *testing.T) {
	w, rules := start(Level{AntiAffinity: []model.AffinityTerm{{TopologyKey: model.LabelHostname, Selector: web(), Namespaces: []string{"default"}}}})
	if got := w.Room(rules, node(3), Everything); got != 1 {
		t.Errorf("got room for %d, want 1", got)
	}
	w.Add(0, node(3), 1)
	if got := w.Room(rules, node(3), Hosts); got != 0 {
		t.Errorf("got room for %d, want 0", got)
	}
	if got := w.Room(rules, node(3), Labels); got == 0 {
		t.Error("a rule about hosts must not answer for labels")
	}
}

// A domain that other pods' nodes add is eligible, and keeps the minimum down.
func TestFurtherDomainLowersMinimum(t *testing.T) {
	spread := model.SpreadConstraint{TopologyKey: model.LabelZone, MaxSkew: 1, Selector: web(), Hard: true}
	top := topologyOf(Level{Spread: []model.SpreadConstraint{spread}})
	rules, w := top.Rules(0, 0), top.NewCounts(nil)
	s := &rules.Spread[0]
	for n := range 3 {
		w.Add(0, node(n), 2)
	}
	const foreign = 3 // none of the three zones of the nodes
	if got := w.Minimum(s); got != 2 {
		t.Fatalf("minimum %d, want 2", got)
	}
	if got := w.Excess(s, node(0), foreign); got != 1 {
		t.Errorf("two pods next to an empty domain: excess %d, want 1", got)
	}
	w = top.NewCounts([]Domain{{Counter: s.Counter, Value: foreign}})
	for n := range 3 {
		w.Add(0, node(n), 2)
	}
	if got := w.Minimum(s); got != 0 {
		t.Errorf("minimum %d with an empty domain, want 0", got)
	}
	if got := w.Room(rules, node(0), Labels); got != 0 {
		t.Errorf("room for %d, want none", got)
	}
}

// A node counts for a pod's spread only if it has a domain for each of its
// spreads, as the scheduler has it.
func TestSpreadIgnoresNodesLackingAKey(t *testing.T) {
	rack := model.SpreadConstraint{TopologyKey: "rack", MaxSkew: 9, Selector: web(), Hard: true}
	zone := model.SpreadConstraint{TopologyKey: model.LabelZone, MaxSkew: 1, Selector: web(), Hard: true}
	for soft, want := range map[bool]int{false: 0, true: 3} {
		rack.Hard = !soft
		_, rules := start(Level{Spread: []model.SpreadConstraint{zone, rack}})
		if got := len(rules.Spread[0].Domains); got != want {
			t.Errorf("no node has a rack, soft %v: %d zones count, want %d", soft, got, want)
		}
	}
}
