package planner

import (
	"cmp"
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/instance"
)

// order sorts the valid classes: higher priority first, then those that must
// meet on machines, so that others may join them there, those that others wait
// for, those that can only go to nodes that exist, the more constrained,
// and the larger.
func order(b *builder) []int {
	boundFirst := func(x, y *instance.Class) int {
		if b.variant.large {
			return 0
		}
		return cmp.Compare(y.Bound, x.Bound)
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
		if b.classes[i].Invalid == "" {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(x, y int) int {
		a, b := &b.classes[x], &b.classes[y]
		if c := cmp.Compare(b.Priority, a.Priority); c != 0 && !equal {
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
		if c := cmp.Compare(loose(a), loose(b)); c != 0 {
			return c
		}
		if c := cmp.Compare(a.Depth, b.Depth); c != 0 {
			return c
		}
		if c := a.Buyable != b.Buyable; c {
			if b.Buyable {
				return -1
			}
			return 1
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
			if l := b.classes[i].Levels; len(l) > 0 && l[len(l)-1].Nodes.Has(pl.Node) {
				out[i]++
			}
		}
	}
	return out
}

// byPrice puts the class first of which a pod costs more where it costs least on a
// machine full of such pods: room that there is saves most if it goes to such pods. Those
// for whom no machine is sold come first.
func (b *builder) byPrice() func(x, y *instance.Class) int {
	price := make([]float64, len(b.classes))
	for i := range b.classes {
		price[i] = math.Inf(1)
		if l := b.classes[i].Levels; len(l) > 0 {
			for o := range l[len(l)-1].Options.All {
				if b.reduced.Has(o) {
					price[i] = min(price[i], b.fluidCost(&b.classes[i], o))
				}
			}
		}
	}
	return func(x, y *instance.Class) int {
		return cmp.Or(cmp.Compare(price[y.Index], price[x.Index]), bySize(x, y))
	}
}

// bySize puts the larger class first.
func bySize(a, b *instance.Class) int {
	return cmp.Or(cmp.Compare(b.Own[0], a.Own[0]), cmp.Compare(b.Own[1], a.Own[1]), cmp.Compare(a.Index, b.Index))
}

// loose is 0 for a class that must meet others on a machine, else 1.
func loose(c *instance.Class) int {
	if c.Colocated {
		return 0
	}
	return 1
}
