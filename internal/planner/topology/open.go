package topology

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// Tied lists those of a class's keys (see [World.Keys]) of which a machine has to have
// one value. Of the others it may be bought in several domains: whom its pods repel
// goes to none of them, and whoever has to be near its pods goes to this very machine.
// Spreads count, so that they must know where the pods are.
func (w *World) Tied(class int, r *Rules) []int {
	var keys []int
	for i := range r.Spread {
		keys = withLabel(keys, r.Spread[i].Key)
	}
	for _, c := range w.adds[class] {
		if w.lastReader[c] > w.position[class] && (w.watched[c] || w.counters[c].attracts && (w.counters[c].repels || w.terms[c].carriers)) {
			keys = withLabel(keys, w.counters[c].Key)
		}
	}
	slices.Sort(keys)
	return keys
}

// KeepAdmitting keeps of a set of options those as which a machine, given by its ID,
// would admit a pod of the class now, as far as affinity and anti-affinity over labels
// go.
func (w *World) KeepAdmitting(class int, r *Rules, id int, set feasible.Set) {
	for o := range set.All {
		p := Place{ID: id, Node: -1, Option: o}
		admits := w.affinityRoom(r, p, Labels) > 0
		for _, list := range [2][]int{r.Empty, w.repelled[class]} {
			for _, c := range list {
				admits = admits && w.emptyRoom(class, c, p, Labels) > 0
			}
		}
		if !admits {
			set.Remove(o)
		}
	}
}

// AddAcross records n more pods of a class on a machine that may be bought as any of
// the options.
func (w *World) AddAcross(class int, p Place, n int, options feasible.Set) {
	var domains []int32
	for _, c := range w.adds[class] {
		counter := w.counters[c]
		if domains = domains[:0]; counter.Key != Host {
			for o := range options.All {
				if d := w.space.OptionValue(counter.Key, o); !slices.Contains(domains, d) {
					domains = append(domains, d)
				}
			}
		}
		switch {
		case len(domains) < 2:
			w.add(counter, p, n)
		case counter.attracts:
			counter.Total += n // somewhere
			if counter.aboard == nil {
				counter.aboard = map[int]int32{}
			}
			counter.aboard[p.ID] += int32(n)
		default:
			for _, d := range domains {
				w.addIn(counter, d, n)
			}
		}
	}
}

// AddHost records n more pods of a class, as far as counters of hosts go.
func (w *World) AddHost(class int, p Place, n int) {
	for _, c := range w.adds[class] {
		if counter := w.counters[c]; counter.Key == Host {
			w.add(counter, p, n)
		}
	}
}
