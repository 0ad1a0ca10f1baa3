package topology

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// Order is the order in which a plan places the classes, and what follows from it: a
// class has to decide the domains of its pods only where a class that is placed later
// reads the counters. An Order does not change; its methods that alter it return
// another one.
type Order struct {
	t *Topology
	// hardOnly leaves preferences out of what earlier classes have to regard.
	hardOnly bool
	// position is each class's place in the sequence; 0 for classes that are not in it.
	position []int
	// lastReader is, by counter, the position of the last class that reads it: -1 when
	// none does, or len(position) when it matters at every time.
	lastReader []int
	// lastAdder is, by counter, the position of the last class that adds to it, or 0.
	lastAdder []int
}

// NewOrder returns the order in which classes are placed as the sequence lists them. A
// counter that only spread constraints of earlier classes read does not matter to later
// classes. Affinity and anti-affinity hold in both directions and always matter. With
// hardOnly, terms that only preferences add matter to no class but their own.
func (t *Topology) NewOrder(sequence []int, hardOnly bool) *Order {
	o := &Order{
		t: t, hardOnly: hardOnly,
		position: make([]int, len(t.rules)), lastReader: make([]int, len(t.counters)), lastAdder: make([]int, len(t.counters)),
	}
	always := len(o.position)
	for c := range o.lastReader {
		o.lastReader[c] = -1
		if t.counters[c].inverse {
			o.lastReader[c] = always
		}
	}
	for at, class := range sequence {
		o.position[class] = at
		for _, c := range t.adds[class] {
			o.lastAdder[c] = at
		}
		levels := t.rules[class]
		if hardOnly {
			levels = levels[max(0, len(levels)-1):]
		}
		for l := range levels {
			r := &levels[l]
			for i := range r.Spread {
				o.lastReader[r.Spread[i].Counter] = max(o.lastReader[r.Spread[i].Counter], at)
			}
			for i := range r.Affinity {
				o.lastReader[r.Affinity[i].Counter] = always
			}
			for i := range r.AntiAffinity {
				o.lastReader[r.AntiAffinity[i].Counter] = always
			}
		}
	}
	return o
}

// Repeated returns the order for classes that are placed in any order, a few pods of
// each at a time: what any class reads matters to all that add to it.
func (o *Order) Repeated() *Order {
	out := *o
	out.lastReader = slices.Clone(o.lastReader)
	for c := range out.lastReader {
		if out.lastReader[c] >= 0 {
			out.lastReader[c] = len(out.position)
		}
	}
	return &out
}

// Reading returns the order in which the rules' spread constraints are read again after
// all classes, so that they matter to all pods that come from now on.
func (o *Order) Reading(r *Rules) *Order {
	out := *o
	out.lastReader = slices.Clone(o.lastReader)
	for i := range r.Spread {
		out.lastReader[r.Spread[i].Counter] = len(out.position)
	}
	return &out
}

// ReadsEarly reports whether a spread constraint over labels is read for the last time
// before all classes that add to its counter have been placed: those that come later
// may not have decided their domains.
func (o *Order) ReadsEarly(r *Rules) bool {
	return slices.ContainsFunc(r.Spread, func(s Spread) bool {
		return s.Key != Host && o.lastAdder[s.Counter] > o.lastReader[s.Counter]
	})
}

// HardOnly reports whether preferences are left out; see [Topology.NewOrder].
func (o *Order) HardOnly() bool { return o.hardOnly }

// Position is the class's place in the sequence.
func (o *Order) Position(class int) int { return o.position[class] }

// later reports whether a class that is placed later than this one reads a counter.
func (o *Order) later(class, counter int) bool { return o.lastReader[counter] > o.position[class] }

// Keys lists the label keys of which a pod's domain has to be decided when it is placed,
// ascending: those that its rules read, and those of counters that it adds to and that a
// later class reads. [Host] is left out.
func (o *Order) Keys(r *Rules) []int {
	var keys []int
	for i := range r.Spread {
		keys = withLabel(keys, r.Spread[i].Key)
	}
	for i := range r.Affinity {
		keys = withLabel(keys, r.Affinity[i].Key)
	}
	for _, list := range [2][]AntiAffinity{r.AntiAffinity, r.Inverse} {
		for i := range list {
			keys = withLabel(keys, list[i].Key)
		}
	}
	for _, c := range o.t.adds[r.Class] {
		if o.later(r.Class, int(c)) {
			keys = withLabel(keys, o.t.counters[c].key)
		}
	}
	slices.Sort(keys)
	return keys
}

// FixedKeys lists those of [Order.Keys] of which a new node with the pod must have one
// value. The others may stay undecided: pods which this one repels then go to none of
// the node's possible domains, and pods that have to be near it go to the node itself.
// Spread constraints compare counts, so their domains must be known.
func (o *Order) FixedKeys(r *Rules) []int {
	var keys []int
	for i := range r.Spread {
		keys = withLabel(keys, r.Spread[i].Key)
	}
	for _, at := range o.t.adds[r.Class] {
		c := &o.t.counters[at]
		if o.later(r.Class, int(at)) && (c.bySpread || c.byAffinity && (c.byAntiAffinity || c.inverse)) {
			keys = withLabel(keys, c.key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Filtered reports whether some counter that counts pods of a class matters later and
// does not count on all places, so that [Order.Seen] may tell places apart.
func (o *Order) Filtered(class int) bool {
	return slices.ContainsFunc(o.t.adds[class], func(c int32) bool { return o.filters(class, int(c)) })
}

// Seen tells which of the filtered counters would count pods of a class on a place.
// Places that differ in it differ to topology. Counters of hosts are left out: pods that
// they limit are on the place itself, if anywhere, and therefore counted.
func (o *Order) Seen(class int, p Place) uint64 {
	var seen uint64
	for i, c := range o.t.adds[class] {
		if o.filters(class, int(c)) && o.t.counters[c].sees(p) {
			seen |= 1 << (i & 63)
		}
	}
	return seen
}

// KeepSeen keeps in a set of options those for which [Order.Seen] is what it is for the
// place. The set is the part of a whole set that begins with the given word.
func (o *Order) KeepSeen(class int, p Place, set bitset.Set, word int) {
	for _, at := range o.t.adds[class] {
		if !o.filters(class, int(at)) {
			continue
		}
		c := &o.t.counters[at]
		if options := c.options[word : word+len(set)]; c.sees(p) {
			set.And(options)
		} else {
			set.AndNot(options)
		}
	}
}

// filters reports whether a counter that counts pods of a class tells places apart for
// a class that is placed later.
func (o *Order) filters(class, counter int) bool {
	c := &o.t.counters[counter]
	return c.nodes != nil && c.key != Host && o.later(class, counter)
}
