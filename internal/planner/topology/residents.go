package topology

import (
	"encoding/binary"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// noKind is the kind of pods that no anti-affinity over hosts selects, and which have none.
const noKind = -1

// resident is a number of pods of one kind on a place. Anti-affinity over hosts tells pods
// apart by kind: pods of one kind have the same terms, and the same terms select them.
// Where classes refuse each other, so that there is a counter for each, a place has few
// kinds, and whether a pod may enter is told by them alone.
type resident struct {
	kind int32
	// pods may be negative, for pods that are taken back before they were added.
	pods int32
}

// residents are the pods with a kind, by [Place.ID]. Places beyond its end have none.
type residents [][]resident

// add counts n more pods of a kind on a place; one without an ID has none.
func (r *residents) add(id int, kind int32, n int) {
	if id < 0 || kind == noKind {
		return
	}
	for id >= len(*r) {
		*r = append(*r, nil)
	}
	here := (*r)[id]
	for i := range here {
		if here[i].kind != kind {
			continue
		}
		if here[i].pods += int32(n); here[i].pods == 0 {
			here[i] = here[len(here)-1]
			(*r)[id] = here[:len(here)-1]
		}
		return
	}
	(*r)[id] = append(here, resident{kind, int32(n)})
}

// count is the number of pods on a place whose kind is in a set.
func (r residents) count(id int, kinds bitset.Set) int32 {
	if id < 0 || id >= len(r) || kinds == nil {
		return 0
	}
	n := int32(0)
	for _, here := range r[id] {
		if kinds.Has(int(here.kind)) {
			n += here.pods
		}
	}
	return n
}

// fork returns independent residents with the same numbers.
func (r residents) fork() residents {
	n := 0
	for _, here := range r {
		n += len(here)
	}
	out, cells := make(residents, len(r)), make([]resident, 0, n) // one piece of storage for all
	for i, here := range r {
		begin := len(cells)
		cells = append(cells, here...)
		out[i] = cells[begin:len(cells):len(cells)]
	}
	return out
}

// pairwise reports whether the counter is read by anti-affinity over hosts alone, which
// asks [residents] instead. It is valid once the terms of all classes have counters.
func (c *counter) pairwise() bool { return c.key == Host && !c.bySpread && !c.byAffinity }

// kinds numbers the kinds of the pods of a problem.
type kinds struct {
	t *Topology
	// byCounters finds a kind by the pairwise counters that count its pods.
	byCounters map[string]int32
	// carrying lists, by inverse pairwise counter, the kinds that it counts.
	carrying map[int32][]int32
	// repelled lists, by class, the inverse pairwise counters whose term selects its pods, but
	// for those whose twin counts them.
	repelled [][]int32
	// id is storage for the text that is looked up.
	id []byte
}

// countedAs is how pods of a class or shape count.
type countedAs struct {
	// tallied are the counters that have a tally of them: all that count them, but for
	// pairwise ones.
	tallied []int32
	kind    int32
}

// countedAs returns how pods count that the counters count. The list stays as it is.
func (k *kinds) countedAs(adds []int32) countedAs {
	out := countedAs{adds, k.kind(adds)}
	if out.kind == noKind {
		return out
	}
	out.tallied = nil
	for _, at := range adds {
		if !k.t.counters[at].pairwise() {
			out.tallied = append(out.tallied, at)
		}
	}
	return out
}

// kind returns the kind of pods that the counters count.
func (k *kinds) kind(adds []int32) int32 {
	k.id = k.id[:0]
	for _, at := range adds {
		if k.t.counters[at].pairwise() {
			k.id = binary.AppendUvarint(k.id, uint64(at))
		}
	}
	if len(k.id) == 0 {
		return noKind
	}
	if kind, known := k.byCounters[string(k.id)]; known {
		return kind
	}
	kind := int32(len(k.byCounters))
	k.byCounters[string(k.id)] = kind
	for _, at := range adds {
		switch c := &k.t.counters[at]; {
		case !c.pairwise():
		case c.inverse:
			k.carrying[at] = append(k.carrying[at], kind)
		default:
			if c.kinds == nil {
				c.kinds = bitset.New(k.most())
			}
			c.kinds.Add(int(kind))
		}
	}
	return kind
}

// most is how many kinds there may be.
func (k *kinds) most() int { return len(k.t.space.Problem.Classes) + len(k.t.space.Problem.Shapes) }

// bind gives rules their sets of kinds, when all kinds are known. Twins are inverse counters
// by those of the same terms that are not.
func (k *kinds) bind(twins map[int32]int32) {
	for class, levels := range k.t.rules {
		var repelling bitset.Set
		add := func(carriers []int32) {
			for _, kind := range carriers {
				if repelling == nil {
					repelling = bitset.New(k.most())
				}
				repelling.Add(int(kind))
			}
		}
		for _, at := range k.repelled[class] {
			add(k.carrying[at])
		}
		for _, at := range k.t.adds[class] {
			if twin, ok := twins[at]; ok {
				add(k.carrying[twin]) // none where it is not pairwise
			}
		}
		for l := range levels {
			levels[l].bindKinds(k.t, repelling)
		}
	}
}

// bindKinds sets what the kinds on a place tell of pods of the class. Repelling are the
// kinds whose own terms over hosts select them, nil for none.
func (r *Rules) bindKinds(t *Topology, repelling bitset.Set) {
	r.repelling, r.refused = repelling, repelling
	owned := false
	for i := range r.AntiAffinity {
		a := &r.AntiAffinity[i]
		if a.pairwise = t.counters[a.Counter].pairwise(); !a.pairwise {
			continue
		}
		r.alone = r.alone || a.Self
		kinds := t.counters[a.Counter].kinds
		switch {
		case kinds == nil:
		case r.refused == nil:
			r.refused = kinds
		default:
			if !owned {
				r.refused, owned = r.refused.Clone(), true
			}
			r.refused.Or(kinds)
		}
	}
}

// residentsRoom limits pods to places without pods that they refuse, or that refuse them,
// as far as pairwise counters tell.
func (c *Counts) residentsRoom(r *Rules, id int) int {
	if r.refused == nil || id < 0 {
		return NoLimit
	}
	if c.residents.count(id, r.refused) > 0 {
		return 0
	}
	if r.alone {
		return 1
	}
	return NoLimit
}
