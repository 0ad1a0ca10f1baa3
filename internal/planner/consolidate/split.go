package consolidate

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// mostCompared is among how many nodes with pods of the wanted class the best one is
// chosen.
const mostCompared = 128

// ownNode, sameDomains and tyingNode weigh a node that belongs to the purchase anyway, one in whose
// domains the purchase is, and one that would tie two purchases together.
const ownNode, sameDomains, tyingNode = 1e6, 1e3, 1e-6

// splitter cuts a sub-plan into parts that can be made independently. It deals the pods
// of nodes to purchases such that as few nodes as possible share a purchase; what is
// then left of the nodes' pods goes to existing nodes. Pods with rules about other pods stay
// in their zone where they can: a part that moves them between zones can often not be made
// without the part that moves others back.
type splitter struct {
	p *compiled.Problem
	t *state.SubPlan
	// left is, for every node of t and every entry of its Pods, how many of them have
	// no purchase yet.
	left [][]int32
	// holders lists, per class, the nodes of t with such pods.
	holders map[int32][]int
	// parent is a union-find over the nodes of t and, behind them, its purchases:
	// what belongs together has the same root. The root of a set with a purchase is a
	// purchase.
	parent []int
	// free is the key of capacity types where pods may change theirs, -1 where they stay.
	free int
}

// split cuts a sub-plan into parts, in which pods stay on their capacity type where they can, or need not.
func split(p *compiled.Problem, t *state.SubPlan, capacityTypes bool) []state.SubPlan {
	s := &splitter{p: p, t: t, holders: map[int32][]int{}, free: -1}
	if !capacityTypes {
		s.free = slices.Index(p.Space.Labels.Keys(), model.LabelCapacityType)
	}
	for at, n := range t.Nodes {
		var left []int32
		for _, g := range p.Nodes[n].Pods {
			left = append(left, g.Count)
			s.holders[g.Class] = append(s.holders[g.Class], at)
		}
		s.left = append(s.left, left)
	}
	s.parent = make([]int, len(t.Nodes)+len(t.Purchases))
	for i := range s.parent {
		s.parent[i] = i
	}
	order := make([]int, len(t.Purchases))
	for i := range order {
		order[i] = i
	}
	price := func(at int) int64 { return int64(p.Options[t.Purchases[at].Option].Price) }
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(price(y), price(x)) })
	for _, at := range order {
		s.deal(at)
	}
	return s.parts()
}

func (s *splitter) root(i int) int {
	for s.parent[i] != i {
		s.parent[i] = s.parent[s.parent[i]]
		i = s.parent[i]
	}
	return i
}

// deal finds the nodes whose pods go to a purchase, and joins them with it: those that
// have most of what it still holds, beginning with its most valuable class.
func (s *splitter) deal(purchase int) {
	need := slices.Clone(s.t.Purchases[purchase].Pods)
	self := len(s.t.Nodes) + purchase
	value := func(r state.Relocated) float64 { return s.p.Classes[r.Class].Value * float64(r.Count) }
	for {
		largest := -1
		for i := range need {
			if need[i].Count > 0 && (largest < 0 || value(need[i]) > value(need[largest])) {
				largest = i
			}
		}
		if largest < 0 {
			return
		}
		best := s.bestNode(need, need[largest].Class, self)
		if best < 0 {
			return // cannot be: every pod comes from some node
		}
		for i := range need {
			need[i].Count -= s.take(best, need[i].Class, need[i].Count)
		}
		s.parent[s.root(best)] = s.root(self)
	}
}

// bestNode is the node of t with pods of a class whose pods fit best what is needed,
// -1 when there is none.
func (s *splitter) bestNode(need []state.Relocated, class int32, self int) int {
	best, most := -1, 0.0
	seen := 0
	for _, at := range s.holders[class] {
		if s.has(at, class) == 0 {
			continue
		}
		value := 1.0
		for i := range need {
			value += s.p.Classes[need[i].Class].Value * float64(min(need[i].Count, s.has(at, need[i].Class)))
		}
		option := s.p.Options[s.t.Purchases[self-len(s.t.Nodes)].Option].Option
		if s.stays(class, s.t.Nodes[at], topology.Place{ID: -1, Node: -1, Option: option}) {
			value *= sameDomains
		}
		switch root := s.root(at); {
		case root == s.root(self):
			value *= ownNode
		case root != at || root >= len(s.t.Nodes):
			value *= tyingNode
		}
		if best < 0 || value > most {
			best, most = at, value
		}
		if seen++; seen >= mostCompared {
			break
		}
	}
	return best
}

// has is how many pods of a class on a node of t have no purchase yet.
func (s *splitter) has(at int, class int32) int32 {
	var n int32
	for i, g := range s.p.Nodes[s.t.Nodes[at]].Pods {
		if g.Class == class {
			n += s.left[at][i]
		}
	}
	return n
}

// take takes up to want of them and returns how many.
func (s *splitter) take(at int, class, want int32) int32 {
	var got int32
	for i, g := range s.p.Nodes[s.t.Nodes[at]].Pods {
		if g.Class == class {
			n := min(want-got, s.left[at][i])
			s.left[at][i] -= n
			got += n
		}
	}
	return got
}

// parts gathers what belongs together, and deals the assignments to what is left of
// the nodes' pods: places where fewer preferences hold to pods that have fewer now.
func (s *splitter) parts() []state.SubPlan {
	index := map[int]int{}
	var out []state.SubPlan
	of := func(i int) *state.SubPlan {
		root := s.root(i)
		at, ok := index[root]
		if !ok {
			at = len(out)
			index[root] = at
			out = append(out, state.SubPlan{})
		}
		return &out[at]
	}
	places := map[int32][]state.Assignment{}
	for _, a := range s.t.Assignments {
		places[a.Class] = append(places[a.Class], a)
	}
	for _, list := range places {
		slices.SortStableFunc(list, func(x, y state.Assignment) int { return int(y.Level) - int(x.Level) })
	}
	type group struct{ at, i int }
	var groups []group
	for at, n := range s.t.Nodes {
		part := of(at)
		part.Nodes = append(part.Nodes, n)
		for i := range s.p.Nodes[n].Pods {
			groups = append(groups, group{at, i})
		}
	}
	pods := func(g group) *compiled.PodGroup { return &s.p.Nodes[s.t.Nodes[g.at]].Pods[g.i] }
	slices.SortStableFunc(groups, func(x, y group) int { return int(pods(y).Level) - int(pods(x).Level) })
	for _, staying := range [2]bool{true, false} {
		for _, g := range groups {
			class, part := pods(g).Class, of(g.at)
			for i := range places[class] {
				place := &places[class][i]
				n := min(s.left[g.at][g.i], place.Count)
				if n == 0 || staying && !s.staysIn(class, s.t.Nodes[g.at], place.Bin) {
					continue
				}
				part.Assignments = append(part.Assignments,
					state.Assignment{Bin: place.Bin, Relocated: state.Relocated{Class: place.Class, Count: n, Level: place.Level}})
				s.left[g.at][g.i] -= n
				place.Count -= n
			}
			places[class] = slices.DeleteFunc(places[class], func(a state.Assignment) bool { return a.Count == 0 })
		}
	}
	for at := range s.t.Purchases {
		part := of(len(s.t.Nodes) + at)
		part.Purchases = append(part.Purchases, s.t.Purchases[at])
	}
	return out
}

// staysIn is stays for a bin; false for one that is no node.
func (s *splitter) staysIn(class, node, bin int32) bool {
	return int(bin) < len(s.p.Nodes) && s.stays(class, node, topology.Place{ID: int(bin), Node: int(bin), Option: -1})
}

// stays reports whether pods of a class that go from a node to a place stay in their domains: those of
// labels which their rules about other pods name. It is true for pods without such rules.
func (s *splitter) stays(class, node int32, to topology.Place) bool {
	rules := s.p.Classes[class].Levels[0].Rules
	if s.p.Classes[class].Plain || rules == nil {
		return true
	}
	from, t := topology.Place{ID: int(node), Node: int(node), Option: -1}, s.p.Prepared.Topology
	same := func(key int) bool {
		return key == topology.Host || key == s.free || t.Domain(key, from) == t.Domain(key, to)
	}
	for i := range rules.Spread {
		if !same(rules.Spread[i].Key) {
			return false
		}
	}
	for i := range rules.Affinity {
		if !same(rules.Affinity[i].Key) {
			return false
		}
	}
	for i := range rules.AntiAffinity {
		if !same(rules.AntiAffinity[i].Key) {
			return false
		}
	}
	return true
}
