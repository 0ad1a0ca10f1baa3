package planner

import (
	"cmp"
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// order sorts the valid classes: higher priority first, then those that must
// meet on machines, so that others may join them there, those that others wait
// for, those that can only go to nodes that exist, the more constrained,
// and the larger.
func order(b *builder) []int {
	markBound(b.world, b.classes)
	markTogether(b.world, b.classes)
	markDepth(b.world, b.classes)
	boundFirst := func(x, y *class) int {
		if b.variant.large {
			return 0
		}
		return cmp.Compare(y.bound, x.bound)
	}
	joint, picky, equal := b.variant.joint, b.variant.picky, b.variant.equal
	bySize := bySize
	if b.variant.dear {
		bySize = b.byPrice()
	}
	var suiting []int
	if picky {
		suiting = b.suiting()
	}
	var out []int
	for i := range b.classes {
		if b.classes[i].invalid == "" {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(x, y int) int {
		a, b := &b.classes[x], &b.classes[y]
		if c := cmp.Compare(b.priority, a.priority); c != 0 && !equal {
			return c
		}
		if picky {
			if c := cmp.Compare(suiting[x], suiting[y]); c != 0 {
				return c
			}
		}
		if joint {
			return bySize(a, b)
		}
		if c := cmp.Compare(a.loose(), b.loose()); c != 0 {
			return c
		}
		if c := cmp.Compare(a.depth, b.depth); c != 0 {
			return c
		}
		if c := cmp.Compare(a.freedom, b.freedom); c != 0 {
			return c
		}
		if c := boundFirst(a, b); c != 0 {
			return c
		}
		return bySize(a, b)
	})
	return out
}

// suiting counts, by class, the nodes that it may go to.
func (b *builder) suiting() []int {
	out := make([]int, len(b.classes))
	for i := range b.classes {
		for _, pl := range b.nodes {
			if l := b.classes[i].levels; len(l) > 0 && l[len(l)-1].nodes.Has(pl.Node) {
				out[i]++
			}
		}
	}
	return out
}

// byPrice puts the class first of which a pod costs more where it costs least on a
// machine full of such pods: room that there is saves most if it goes to such pods. Those
// for whom no machine is sold come first.
func (b *builder) byPrice() func(x, y *class) int {
	price := make([]float64, len(b.classes))
	for i := range b.classes {
		price[i] = math.Inf(1)
		if l := b.classes[i].levels; len(l) > 0 {
			for o := range l[len(l)-1].options.All {
				if b.reduced.Has(o) {
					price[i] = min(price[i], b.fluidCost(&b.classes[i], o))
				}
			}
		}
	}
	return func(x, y *class) int { return cmp.Or(cmp.Compare(price[y.index], price[x.index]), bySize(x, y)) }
}

// bySize puts the larger class first.
func bySize(a, b *class) int {
	return cmp.Or(cmp.Compare(b.own[0], a.own[0]), cmp.Compare(b.own[1], a.own[1]), cmp.Compare(a.index, b.index))
}

// loose is 0 for a class that must meet others on a machine, else 1.
func (c *class) loose() int {
	if c.together {
		return 0
	}
	return 1
}

// markBound ranks classes by their topology rules: those with per-machine
// rules come first, since others may join them on a machine later, then those
// with rules on label domains.
func markBound(w *topology.World, classes []class) {
	for i := range classes {
		for l := range classes[i].topo.Levels {
			switch r := &classes[i].topo.Levels[l].Rules; {
			case w.PerHost(r):
				classes[i].bound = 2
			case len(r.Spread)+len(r.Affinity)+len(r.Empty) > 0:
				classes[i].bound = max(classes[i].bound, 1)
			}
		}
	}
}

// markTogether finds the classes that per-machine affinity ties to others:
// those that have such a term and those that it selects.
func markTogether(w *topology.World, classes []class) {
	tied := map[int]bool{}
	for i := range classes {
		for l := range classes[i].topo.Levels {
			for _, a := range classes[i].topo.Levels[l].Rules.Affinity {
				if a.Key == topology.Host {
					classes[i].together = true
					tied[a.Counter] = true
				}
			}
		}
	}
	for i := range classes {
		for _, c := range w.Adds(i) {
			classes[i].together = classes[i].together || tied[c]
		}
	}
}

// maxDepth bounds how far chains of affinity are followed; a circle has no end.
const maxDepth = 16

// markDepth puts classes after those that they want to be near, and lends the
// latter the priority of those that wait for them.
func markDepth(w *topology.World, classes []class) {
	wanted := map[int][]int{} // counter -> classes that want to be near its pods
	for i := range classes {
		if len(classes[i].topo.Levels) > 0 {
			for _, a := range classes[i].topo.Levels[0].Rules.Affinity {
				wanted[a.Counter] = append(wanted[a.Counter], i)
			}
		}
	}
	if len(wanted) == 0 {
		return
	}
	for range maxDepth {
		changed := false
		for i := range classes {
			for _, c := range w.Adds(i) {
				for _, waiting := range wanted[c] {
					if waiting == i {
						continue
					}
					if d := classes[i].depth + 1; d > classes[waiting].depth && d <= maxDepth {
						classes[waiting].depth, changed = d, true
					}
					if p := classes[waiting].priority; p > classes[i].priority {
						classes[i].priority, changed = p, true
					}
				}
			}
		}
		if !changed {
			return
		}
	}
}
