package planner

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// builder grows one plan: every step it takes is allowed at the moment it is
// taken, so the order of its steps is an order in which a scheduler could let
// the pods in.
type builder struct {
	inst  *instance.Instance
	space *feasible.Space
	// order and counts are the state of topology in this plan.
	order   *topology.Order
	counts  *topology.Counts
	ledger  *feasible.Ledger
	classes []instance.Class
	nodes   []*Place
	bins    []*Place
	variant variant
	ruling  ruling
	// rehearsal plans are only compared, so that nobody asks for their bound.
	rehearsal bool
	// sequence is the order in which classes are placed.
	sequence []int
	// left is, per class, how many pods still need a place; turns counts how often all
	// classes have had theirs.
	left  []int
	turns int
	// steps counts units of work.
	steps int64
	// reduced are the options worth buying. With pooled, pods that need a new
	// machine become demands for the packer; otherwise machines are opened here.
	reduced feasible.Set
	pooled  bool
	demands []demand
	// wanted is, when machines are to be chosen for what runs out rather than
	// for their price, what all pods together take; nil otherwise.
	wanted []float64
	// shelves remember how options were divided, scratch is for domains.
	shelves shelves
	scratch []byte
	// brim caches variedFull.
	brim map[int]feasible.Set
	// ahead is the bound that is proven beside the packing, if any.
	ahead *ahead
	// keys remembers keysOf, by class and level; tied does so with tiedOf.
	keys [][]classKeys
	tied map[[2]int][]int
	// late, if any, tells when to stop looking for better company; see company.
	late func() bool
	// whim, if any, lets a class begin with another domain than the cheapest at times.
	whim *rand.Rand
	// guest is the class for whose pods the next machine keeps room, if any.
	guest *instance.Class
	// share says for how many of those who wait a machine keeps room: for all if it is
	// zero, for half of them if it is one, for a quarter, and so on.
	share int
	// honours are the classes whose preferences a plain plan honours all the same.
	honours map[int]bool
}

// slot is a source of room for a class: all nodes, all open machines or all
// options that share the class's topology domains.
type slot struct {
	kind   slotKind
	cost   float64
	rep    topology.Place
	queue  queue
	option feasible.Set
	// open says that machines of the options need not be in one domain.
	open bool
	dead bool
}

type slotKind int

const (
	onNodes slotKind = iota
	onBins
	onNew
)

// run places as many as it can of the remaining pods of a class, giving up one
// preference after the other.
func (b *builder) run(c *instance.Class) {
	for l := range c.Levels {
		if b.left[c.Index] == 0 {
			return
		}
		if b.variant.plain && !b.honours[c.Index] && l < len(c.Levels)-1 {
			continue
		}
		b.runLevel(c, l)
	}
}

func (b *builder) runLevel(c *instance.Class, l int) {
	if b.variant.joint {
		b.joinAll(c, l)
		return
	}
	keys := b.keysOf(c.Index, l)
	if b.fill(c, l, b.heldSlots(c, l, keys, nodesOnly)) {
		return
	}
	for tier := range b.space.Tiers {
		slots := b.newSlots(c, l, tier, keys)
		if held := b.heldSlots(c, l, keys, tier); len(held) > 0 {
			// Rather a new machine than one without room for those who have to follow.
			at := slices.IndexFunc(held, func(s slot) bool { return s.kind == onBins && !s.queue[0].roomy })
			if at < 0 {
				at = len(held)
			}
			slots = slices.Concat(held[:at], slots, held[at:])
		}
		if b.fill(c, l, slots) {
			return
		}
	}
}

// sold are the options of a weight on which machines for a class may be bought.
func (b *builder) sold(c *instance.Class, l, tier int) feasible.Set {
	set := b.allowed(b.inTier(c.Levels[l].Options, tier))
	if b.pooled && !c.Colocated && b.inst.MinValues.Any() {
		set = set.Clone()
		set.And(b.variedFull(c.Levels[l].Static))
	}
	return set
}

// fill takes room from the slots in order for as long as topology lets the
// class in, and reports whether no pod is left.
func (b *builder) fill(c *instance.Class, l int, slots []slot) bool {
	rules := c.Levels[l].Rules
	if foreign := b.inst.Topology.OtherSpreads(rules, b.keysOf(c.Index, l)); len(foreign) > 0 && len(slots) > 1 {
		return b.fillEvenly(c, l, slots, foreign)
	}
	for at := 0; at < len(slots) && b.left[c.Index] > 0; {
		b.steps++
		s := &slots[at]
		room := 0
		if !s.dead {
			room = b.counts.Room(rules, s.rep, topology.Labels)
		}
		if room == 0 {
			at++
			continue
		}
		before := b.floor(rules)
		n := b.takeFrom(c, l, s, min(room, b.left[c.Index]))
		if n == 0 {
			s.dead = true
			continue
		}
		b.left[c.Index] -= n
		if len(rules.Affinity) > 0 || b.floor(rules) != before {
			at = 0
		}
	}
	return b.left[c.Index] == 0
}

// fillEvenly is fill for pods that others' spread constraints count: among
// slots of one kind they go, one by one, where the fewest such pods are, so
// that those others stay free to go anywhere.
func (b *builder) fillEvenly(c *instance.Class, l int, slots []slot, foreign []int) bool {
	rules := c.Levels[l].Rules
	for b.left[c.Index] > 0 {
		var best *slot
		var least int64
		for i := range slots {
			b.steps++
			s := &slots[i]
			if s.dead || best != nil && s.kind > best.kind || b.counts.Room(rules, s.rep, topology.Labels) == 0 {
				continue
			}
			if crowd := b.counts.Sum(foreign, s.rep); best == nil || crowd < least {
				best, least = s, crowd
			}
		}
		if best == nil {
			return false
		}
		n := b.takeFrom(c, l, best, 1)
		best.dead = n == 0
		b.left[c.Index] -= n
	}
	return true
}

// floor sums the minima of the spread constraints: when it rises, domains that
// were full may be open again.
func (b *builder) floor(r *topology.Rules) int64 {
	var sum int64
	for i := range r.Spread {
		sum += int64(b.counts.Minimum(&r.Spread[i]))
	}
	return sum
}

// takeFrom places up to want pods in a slot and returns how many.
func (b *builder) takeFrom(c *instance.Class, l int, s *slot, want int) int {
	if s.kind == onNew && b.pooled && !b.decidedHere(c, l) {
		return b.demandFrom(c, l, s, want)
	}
	if s.kind == onNew {
		return b.open(c, l, s, want)
	}
	if b.joins(c) && !b.variant.joint { // room that is there comes before machines that grow
		for _, cand := range s.queue {
			if n := b.takeRoom(c, l, want, cand.pl, false); n > 0 {
				return n
			}
		}
	}
	for len(s.queue) > 0 {
		if n := b.takeRoom(c, l, want, s.queue[0].pl, true); n > 0 {
			return n
		}
		s.queue.drop()
	}
	return 0
}

// takeRoom puts up to want pods on a place and returns how many. With grow, a machine
// is exchanged for a larger one for pods that must join others.
func (b *builder) takeRoom(c *instance.Class, l, want int, pl *Place, grow bool) int {
	n := min(want, b.counts.Room(c.Levels[l].Rules, pl.Place, topology.Hosts))
	if n == 0 {
		return 0
	}
	if room := b.roomOn(c, l, n, pl); room > 0 || !grow || pl.Node >= 0 || !b.joins(c) {
		n = room
	} else {
		n = b.upgrade(c, l, n, pl)
	}
	if n > 0 {
		b.put(c, l, n, pl)
		if pl.Node < 0 {
			pl.Options.And(c.Levels[l].Options)
		}
	}
	return n
}

// roomOn returns how many of the wanted pods a node or open machine holds as it is. A
// machine that has too few values in one domain becomes open for a pod.
func (b *builder) roomOn(c *instance.Class, l, want int, pl *Place) int {
	n := min(want, b.capacity(c, pl, pl.Free))
	if pl.Node >= 0 {
		return n
	}
	if !c.Levels[l].Options.Has(pl.Option) {
		n = 0
	}
	if n == 0 || len(b.inst.MinValues.Of(b.space.Options[pl.Option].Pool)) == 0 {
		return n
	}
	room := b.variedRoom(c, l, n, pl)
	if room == 0 && b.opens(c, l, pl) {
		pl.Open = true
		if room = min(1, b.variedRoom(c, l, n, pl)); room == 0 {
			pl.Open = false
		}
	}
	return room
}

// variedRoom is how many of n pods of a class a machine holds with enough values left
// for its pool.
func (b *builder) variedRoom(c *instance.Class, l, n int, pl *Place) int {
	pool, set := b.space.Options[pl.Option].Pool, b.sharedOptions(c, l, pl)
	if !set.Has(pl.Option) {
		return 0
	}
	return sort.Search(n, func(n int) bool { return !b.inst.MinValues.Met(pool, set, b.load(c, n+1, pl)) })
}

// joins reports whether open machines are exchanged for larger ones to hold pods
// of the class.
func (b *builder) joins(c *instance.Class) bool {
	return b.variant.joint || c.Colocated && (b.share == 0 || b.near(c.Index))
}

// sharedOptions are the options of a machine that its pods and one more of a
// class agree on, labels that topology settles included.
func (b *builder) sharedOptions(c *instance.Class, l int, pl *Place) feasible.Set {
	joined := *pl
	joined.Pods = append(slices.Clip(pl.Pods), instance.PodCount{Class: c.Index, Level: l, Count: 1})
	keys := b.settled(&joined)
	set := pl.Options.Clone()
	set.And(c.Levels[l].Options)
	b.keepAgreeing(&joined, keys, set)
	if pl.Open {
		b.keepAdmitting(c, l, pl, set)
	}
	return b.inst.MinValues.Fixed(set, joined.Pods, pl.Option)
}

// load is what a machine to be bought holds with n more pods of a class.
func (b *builder) load(c *instance.Class, n int, pl *Place) []int64 {
	load := b.sharedNeed(c, pl)
	if load == nil {
		load = make([]int64, b.space.Dims)
	}
	for d := range load {
		load[d] += b.space.Options[pl.Option].Net[d] - pl.Free[d] + c.Own[d]*int64(n)
	}
	return load
}

// decidedHere reports whether machines for the class are opened by the builder
// rather than left to the packer, which knows nothing of pods that must meet, of
// disks that they share, or of minValues within one domain.
func (b *builder) decidedHere(c *instance.Class, l int) bool {
	return c.Colocated || len(c.Shared) > 0 ||
		b.inst.MinValues.Any() && len(b.keysOf(c.Index, l)) > 0
}

// nodesOnly, in place of a weight, leaves open machines out.
const nodesOnly = -1

// heldSlots groups the nodes and open machines that can take a pod of the
// class by their topology domains: initialized nodes first, then best fit. Of open
// machines only those of NodePools of at least the weight count: before a pod goes
// to one of a lighter NodePool, the heavier one has its say.
func (b *builder) heldSlots(c *instance.Class, l int, keys []int, tier int) []slot {
	if len(b.nodes)+len(b.bins) == 0 {
		return nil
	}
	var out []slot
	room, _ := b.waiting(c)
	index := map[string]int{}
	add := func(kind slotKind, pl *Place) {
		if b.capacity(c, pl, pl.Free) == 0 && !(kind == onBins && b.joins(c)) || b.counts.Room(c.Levels[l].Rules, pl.Place, topology.Hosts) == 0 {
			return
		}
		id := b.domains(c.Index, kind, keys, pl.Place)
		roomy := room == nil || count(c.Own, room, pl.Free) > 0
		if !roomy {
			id = append(id, 'f')
		}
		if pl.Open { // it may be elsewhere
			id = binary.AppendVarint(append(id, 'o'), int64(pl.ID))
		}
		i, ok := index[string(id)]
		if !ok {
			i = len(out)
			index[string(id)] = i
			out = append(out, slot{kind: kind, rep: pl.Place})
		}
		out[i].queue = append(out[i].queue, candidate{pl, pl.Ready, roomy, slack(c, pl.Free)})
	}
	for _, pl := range b.nodes {
		if c.Levels[l].Nodes.Has(pl.Node) {
			add(onNodes, pl)
		}
	}
	for _, pl := range b.bins {
		if b.space.PoolOf(pl.Option).Tier > tier {
			continue
		}
		if c.Levels[l].Options.Has(pl.Option) || b.joins(c) && pl.Options.Intersects(c.Levels[l].Options) {
			add(onBins, pl)
		}
	}
	for i := range out {
		if inOrder := b.joins(c) && (!b.variant.joint || out[i].kind == onBins); inOrder || b.guest != nil {
			slices.SortFunc(out[i].queue, better)
		} else {
			out[i].queue.order()
		}
	}
	slices.SortStableFunc(out, func(a, b slot) int {
		if a.kind != b.kind {
			return int(a.kind) - int(b.kind)
		}
		return better(a.queue[0], b.queue[0])
	})
	return out
}

// domains is equal for places of one kind in the same domains of the keys. It
// is valid until the next call.
func (b *builder) domains(class int, kind slotKind, keys []int, p topology.Place) []byte {
	id := append(b.scratch[:0], byte(kind))
	id = binary.AppendUvarint(id, b.order.Seen(class, p))
	for _, k := range keys {
		id = binary.AppendVarint(id, int64(b.inst.Topology.Domain(k, p)))
	}
	b.scratch = id
	return id
}
