package planner

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// finish turns what the builder placed into a plan, without reasons for what
// it could not place.
func (b *builder) finish() *model.Plan {
	p := b.space.Problem
	plan := &model.Plan{Rejected: b.space.Rejected, Stats: model.Stats{Engine: "nap", Steps: b.steps}}
	deal := newDealer(p)
	for _, pl := range b.nodes {
		if len(pl.pods) > 0 {
			plan.Placements = append(plan.Placements, model.Placement{Node: pl.Node, Pods: deal.pods(pl)})
		}
	}
	slices.SortStableFunc(b.bins, compareMachines)
	a := newAlternatives(b)
	for _, pl := range b.bins {
		node := a.newNode(pl)
		node.Pods = deal.pods(pl)
		plan.NewNodes = append(plan.NewNodes, node)
		plan.Cost += node.Best().Price
	}
	for i := range b.classes {
		if n := len(p.Classes[i].Pods) - deal.next[i]; n > 0 {
			plan.Unschedulable = append(plan.Unschedulable, model.Unschedulable{Class: i, Pods: deal.take(i, n)})
		}
	}
	plan.Relaxed = b.relaxed()
	return plan
}

// compareMachines orders machines by what they are, then by what they hold.
func compareMachines(a, b *place) int {
	return cmp.Or(cmp.Compare(a.Option, b.Option), slices.CompareFunc(a.pods, b.pods, func(x, y podCount) int {
		return cmp.Or(cmp.Compare(x.class, y.class), cmp.Compare(x.level, y.level), cmp.Compare(y.count, x.count))
	}))
}

// dealer hands out the pods of classes in their order.
type dealer struct {
	next []int
	// numbers is 0, 1, 2, ... for all lists of pods to share.
	numbers []int
}

func newDealer(p *model.Problem) *dealer {
	longest := 0
	for i := range p.Classes {
		longest = max(longest, len(p.Classes[i].Pods))
	}
	d := &dealer{next: make([]int, len(p.Classes)), numbers: make([]int, longest)}
	for i := range d.numbers {
		d.numbers[i] = i
	}
	return d
}

func (d *dealer) take(class, n int) []int {
	from := d.next[class]
	d.next[class] += n
	return d.numbers[from : from+n : from+n]
}

// pods lists a place's pods by class.
func (d *dealer) pods(pl *place) []model.ClassPods {
	byClass := slices.Clone(pl.pods)
	slices.SortStableFunc(byClass, func(a, b podCount) int { return a.class - b.class })
	out := make([]model.ClassPods, 0, len(byClass))
	for i := 0; i < len(byClass); {
		class, n := byClass[i].class, 0
		for ; i < len(byClass) && byClass[i].class == class; i++ {
			n += byClass[i].count
		}
		out = append(out, model.ClassPods{Class: class, Pods: d.take(class, n)})
	}
	return out
}

// relaxed adds up the preferences that were given up, by class.
func (b *builder) relaxed() []model.Relaxation {
	given := make([][]int, len(b.classes))
	for i := range b.classes {
		if n := len(b.classes[i].levels); n > 1 {
			given[i] = make([]int, n)
		}
	}
	for _, list := range [][]*place{b.nodes, b.bins} {
		for _, pl := range list {
			for _, pc := range pl.pods {
				for l := 1; l <= pc.level; l++ {
					given[pc.class][l] += pc.count
				}
			}
		}
	}
	var out []model.Relaxation
	for i := range given {
		for l, n := range given[i] {
			if n > 0 {
				out = append(out, model.Relaxation{Class: i, Pods: n, Preference: b.classes[i].levels[l].given})
			}
		}
	}
	return out
}
