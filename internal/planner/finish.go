package planner

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
)

// finish turns what the builder placed into a plan, without reasons for what
// it could not place.
func (b *builder) finish() *model.Plan {
	p := b.space.Problem
	plan := &model.Plan{Rejected: b.space.Rejected, Stats: model.Stats{Engine: "nap", Steps: b.steps}}
	deal := newDealer(p)
	for _, pl := range b.nodes {
		if len(pl.Pods) > 0 {
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
func compareMachines(a, b *Place) int {
	return cmp.Or(cmp.Compare(a.Option, b.Option), slices.CompareFunc(a.Pods, b.Pods, func(x, y instance.PodCount) int {
		return cmp.Or(cmp.Compare(x.Class, y.Class), cmp.Compare(x.Level, y.Level), cmp.Compare(y.Count, x.Count))
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
func (d *dealer) pods(pl *Place) []model.ClassPods {
	byClass := slices.Clone(pl.Pods)
	slices.SortStableFunc(byClass, func(a, b instance.PodCount) int { return a.Class - b.Class })
	out := make([]model.ClassPods, 0, len(byClass))
	for i := 0; i < len(byClass); {
		class, n := byClass[i].Class, 0
		for ; i < len(byClass) && byClass[i].Class == class; i++ {
			n += byClass[i].Count
		}
		out = append(out, model.ClassPods{Class: class, Pods: d.take(class, n)})
	}
	return out
}

// relaxed adds up the preferences that were given up, by class.
func (b *builder) relaxed() []model.Relaxation {
	given := make([][]int, len(b.classes))
	for i := range b.classes {
		if n := len(b.classes[i].Levels); n > 1 {
			given[i] = make([]int, n)
		}
	}
	for _, list := range [][]*Place{b.nodes, b.bins} {
		for _, pl := range list {
			for _, pc := range pl.Pods {
				for l := 1; l <= pc.Level; l++ {
					given[pc.Class][l] += pc.Count
				}
			}
		}
	}
	var out []model.Relaxation
	for i := range given {
		for l, n := range given[i] {
			if n > 0 {
				out = append(out, model.Relaxation{Class: i, Pods: n, Preference: b.classes[i].Levels[l].GivenUp})
			}
		}
	}
	return out
}
