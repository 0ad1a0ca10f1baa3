package placement

import (
	"encoding/binary"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// Domains is the topology of a state: how many pods are in which domain, and which
// label keys matter to which class.
type Domains struct {
	// Counts are the pods that run and those that the plan placed.
	Counts *topology.Counts
	// Order is the order in which classes are placed. It is replaced, never changed.
	Order *topology.Order
	in    *instance.Instance
	// known are the keys that classes have to decide under Order. Forks share it.
	known *keyCache
	// id is storage for [Domains.ID].
	id []byte
}

// keyCache remembers the keys of classes by level, once they are asked for.
type keyCache struct {
	keys [][]knownKeys
	tied map[[2]int][]int
}

type knownKeys struct {
	known bool
	keys  []int
}

func newDomains(in *instance.Instance, counts *topology.Counts, order *topology.Order) *Domains {
	d := &Domains{Counts: counts, Order: order, in: in}
	d.forget()
	return d
}

func (d *Domains) fork() *Domains {
	return &Domains{Counts: d.Counts.Fork(), Order: d.Order, in: d.in, known: d.known}
}

// forget begins a cache of its own, as another order of placing or another goroutine
// needs it.
func (d *Domains) forget() {
	k := &keyCache{keys: make([][]knownKeys, len(d.in.Classes)), tied: map[[2]int][]int{}}
	levels := 0
	for i := range d.in.Classes {
		levels += len(d.in.Classes[i].Levels)
	}
	all := make([]knownKeys, levels)
	for i := range d.in.Classes {
		n := len(d.in.Classes[i].Levels)
		k.keys[i], all = all[:n:n], all[n:]
	}
	d.known = k
}

// KnowAll finds the keys of all classes, so that several goroutines may ask for them.
func (d *Domains) KnowAll() {
	for i := range d.in.Classes {
		for l := range d.in.Classes[i].Levels {
			d.Keys(i, l)
		}
	}
}

// SetOrder replaces the order in which classes are placed, for pods that come from now
// on.
func (d *Domains) SetOrder(order *topology.Order) {
	d.Order = order
	d.forget()
}

// Keys lists the label keys whose domains matter for a class at a level (see
// [topology.Order.Keys]). Callers do not change the list.
func (d *Domains) Keys(class, level int) []int {
	k := &d.known.keys[class][level]
	if !k.known {
		*k = knownKeys{known: true, keys: d.Order.Keys(d.in.Classes[class].Levels[level].Rules)}
	}
	return k.keys
}

// Tied lists those of a class's keys of which a node has to have one value even if it
// is open: those that topology ties (see [topology.Order.FixedKeys]) and those that the
// cloud does not offer. Callers do not change the list, which ascends.
func (d *Domains) Tied(class, level int) []int {
	keys := d.Keys(class, level)
	tied, known := d.known.tied[[2]int{class, level}]
	if !known {
		tied = d.Order.FixedKeys(d.in.Classes[class].Levels[level].Rules)
		for _, k := range keys {
			if !d.in.Space.Labels.Offered(k) && !slices.Contains(tied, k) {
				tied = append(tied, k)
			}
		}
		slices.Sort(tied)
		d.known.tied[[2]int{class, level}] = tied
	}
	return tied
}

// Settled lists the keys in which every offering of a node must have the same value:
// those that the topology of its pods reads, and those whose value the buyer chooses
// and that matter to its pods.
func (d *Domains) Settled(pl *Place) []int {
	keys := d.in.MinValues.ChosenFor(pl.Pods)
	for _, pc := range pl.Pods {
		list := d.Keys(pc.Class, pc.Level)
		if pl.Open {
			list = d.Tied(pc.Class, pc.Level)
		}
		for _, k := range list {
			if !slices.Contains(keys, k) {
				keys = append(slices.Clip(keys), k)
			}
		}
	}
	return keys
}

// KeepAgreeing keeps of a set the options that have the values of the planned option
// in the given keys and count to the same spread constraints.
func (d *Domains) KeepAgreeing(pl *Place, keys []int, set bitset.Set) {
	planned := set.Has(pl.Option)
	for _, k := range keys {
		here := d.in.Topology.Domain(k, pl.Place)
		for o := range set.All {
			if d.in.Topology.Domain(k, topology.Place{ID: pl.ID, Node: -1, Option: o}) != here {
				set.Remove(o)
			}
		}
	}
	for _, pc := range pl.Pods {
		d.Order.KeepSeen(pc.Class, pl.Place, set, 0)
	}
	if planned {
		set.Add(pl.Option)
	}
}

// KeepAdmitting keeps of a set the options in whose domains a pod of a class may be on
// a node, and that have a domain of each of its keys if and only if the planned option
// has.
func (d *Domains) KeepAdmitting(c *instance.Class, level int, pl *Place, set bitset.Set) {
	d.Counts.KeepAdmitting(c.Levels[level].Rules, pl.ID, set)
	for _, k := range d.Keys(c.Index, level) {
		for o := range set.All {
			if (d.in.Space.Labels.OptionValue(k, o) < 0) != (d.in.Space.Labels.OptionValue(k, pl.Option) < 0) {
				set.Remove(o)
			}
		}
	}
}

// ID is equal for places that are in the same domains of the keys and count to the
// same spread constraints, for pods of the class. It is valid until the next call.
func (d *Domains) ID(class int, keys []int, p topology.Place) []byte {
	id := binary.AppendUvarint(d.id[:0], d.Order.Seen(class, p))
	for _, k := range keys {
		id = binary.AppendVarint(id, int64(d.in.Topology.Domain(k, p)))
	}
	d.id = id
	return id
}

// SpreadFloor sums the minima of spread constraints: when it rises, domains that were
// full may admit pods again.
func (d *Domains) SpreadFloor(r *topology.Rules) int64 {
	var sum int64
	for i := range r.Spread {
		sum += int64(d.Counts.Minimum(&r.Spread[i]))
	}
	return sum
}
