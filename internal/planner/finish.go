package planner

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topo"
)

// finish turns what the builder placed into a plan.
func (b *builder) finish() *model.Plan {
	p := b.space.Problem
	plan := &model.Plan{Rejected: b.space.Rejected, Stats: model.Stats{Engine: "nap", Steps: b.steps}}
	next := make([]int, len(p.Classes))
	longest := 0
	for i := range p.Classes {
		longest = max(longest, len(p.Classes[i].Pods))
	}
	numbers := make([]int, longest)
	for i := range numbers {
		numbers[i] = i
	}
	take := func(class, n int) []int {
		from := next[class]
		next[class] += n
		return numbers[from : from+n : from+n]
	}
	pods := func(pl *place) []model.ClassPods {
		perClass := map[int]int{}
		var order []int
		for _, pc := range pl.pods {
			if _, seen := perClass[pc.class]; !seen {
				order = append(order, pc.class)
			}
			perClass[pc.class] += pc.count
		}
		slices.Sort(order)
		out := make([]model.ClassPods, len(order))
		for i, c := range order {
			out[i] = model.ClassPods{Class: c, Pods: take(c, perClass[c])}
		}
		return out
	}
	for _, pl := range b.nodes {
		if len(pl.pods) > 0 {
			plan.Placements = append(plan.Placements, model.Placement{Node: pl.Node, Pods: pods(pl)})
		}
	}
	for _, pl := range b.bins {
		node := b.newNode(pl)
		node.Pods = pods(pl)
		plan.NewNodes = append(plan.NewNodes, node)
		plan.Cost += node.Best().Price
	}
	for i := range b.classes {
		if n := len(p.Classes[i].Pods) - next[i]; n > 0 {
			plan.Unschedulable = append(plan.Unschedulable, model.Unschedulable{Class: i, Pods: take(i, n)})
		}
	}
	plan.Relaxed = b.relaxed()
	return plan
}

// relaxed adds up the preferences that were given up, by class.
func (b *builder) relaxed() []model.Relaxation {
	perLevel := make(map[[2]int]int)
	for _, list := range [][]*place{b.nodes, b.bins} {
		for _, pl := range list {
			for _, pc := range pl.pods {
				for l := 1; l <= pc.level; l++ {
					perLevel[[2]int{pc.class, l}] += pc.count
				}
			}
		}
	}
	var out []model.Relaxation
	for i := range b.classes {
		for l := 1; l < len(b.classes[i].levels); l++ {
			if n := perLevel[[2]int{i, l}]; n > 0 {
				out = append(out, model.Relaxation{Class: i, Pods: n, Preference: b.classes[i].levels[l].given})
			}
		}
	}
	return out
}

// newNode picks the offerings for a machine: all of its pool that hold its
// pods, the cheapest that the ledger admits first.
func (b *builder) newNode(pl *place) model.NewNode {
	s := b.space
	chosen := &s.Options[pl.Option]
	used := make([]int64, s.Dims)
	for d := range used {
		used[d] = chosen.Net[d] - pl.free[d]
	}
	pins := b.pins(pl)
	var fits []int
	for o := range pl.options.All {
		if o == pl.Option || s.Available.Has(o) && feasible.Fits(used, s.Options[o].Net) && b.sameDomains(pins, o, pl.Option) &&
			!b.portClash(pl, o) {
			fits = append(fits, o)
		}
	}
	slices.SortStableFunc(fits, func(x, y int) int {
		ox, oy := &s.Options[x], &s.Options[y]
		return cmp.Or(cmp.Compare(ox.Price, oy.Price), cmp.Compare(x, y))
	})
	b.ledger.Take(pl.Option, -1)
	best := slices.IndexFunc(fits, b.ledger.Admits)
	b.ledger.Take(fits[best], 1)
	pl.Option = fits[best]
	fits = slices.Insert(slices.Delete(fits, best, best+1), 0, pl.Option)
	node := model.NewNode{Pool: chosen.Pool, Requirements: b.requirements(pl, pins)}
	axes := len(s.Problem.Axes)
	node.Requests = model.Resources(used[:axes:axes])
	node.Daemons = model.Resources(s.DaemonSets[s.Options[pl.Option].Daemons].Requests[:axes:axes])
	for _, o := range fits {
		node.Offerings = append(node.Offerings, model.OfferingRef{InstanceType: s.Options[o].Type, Offering: s.Options[o].Offering, Price: s.Options[o].Price})
	}
	return node
}

func (b *builder) portClash(pl *place, option int) bool {
	daemons := &b.space.DaemonSets[b.space.Options[option].Daemons]
	if len(daemons.Ports) == 0 || option == pl.Option {
		return false
	}
	for _, pc := range pl.pods {
		if feasible.PortsClash(b.classes[pc.class].spec.HostPorts, daemons.Ports) {
			return true
		}
	}
	return false
}

// pins are the label keys whose value the pods' topology rules depend on.
func (b *builder) pins(pl *place) []int {
	var keys []int
	for _, pc := range pl.pods {
		keys = append(keys, b.world.Keys(pc.class, &b.classes[pc.class].topo.Levels[pc.level].Rules)...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (b *builder) sameDomains(keys []int, x, y int) bool {
	for _, k := range keys {
		if b.world.Domain(k, topo.Place{Node: -1, Option: x}) != b.world.Domain(k, topo.Place{Node: -1, Option: y}) {
			return false
		}
	}
	return true
}

// requirements narrows the pool's: labels that topology pins to the planned
// value.
func (b *builder) requirements(pl *place, pins []int) model.Requirements {
	var out model.Requirements
	for _, k := range pins {
		if v, ok := b.space.ValueName(k, b.space.OptionValue(k, pl.Option)); ok {
			out = append(out, model.Requirement{Key: b.space.Keys()[k], Operator: model.In, Values: []string{v}})
		}
	}
	return out
}
