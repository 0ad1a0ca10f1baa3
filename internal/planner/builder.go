package planner

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// builder grows one plan: every step it takes is allowed at the moment it is
// taken, so the order of its steps is an order in which a scheduler could let
// the pods in.
type builder struct {
	space   *feasible.Space
	world   *topology.World
	ledger  *feasible.Ledger
	classes []class
	nodes   []*place
	bins    []*place
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
	// minimums are the pools' minValues; brim caches variedFull.
	minimums map[int][]minimum
	brim     map[int]feasible.Set
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
	guest *class
	// share says for how many of those who wait a machine keeps room: for all if it is
	// zero, for half of them if it is one, for a quarter, and so on.
	share int
	// picked are the labels whose value the pool or the buyer picks.
	picked []pickedKey
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
func (b *builder) run(c *class) {
	for l := range c.levels {
		if b.left[c.index] == 0 {
			return
		}
		if b.variant.plain && !b.honours[c.index] && l < len(c.levels)-1 {
			continue
		}
		b.runLevel(c, l)
	}
}

func (b *builder) runLevel(c *class, l int) {
	if b.variant.joint {
		b.joinAll(c, l)
		return
	}
	keys := b.keysOf(c.index, l)
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
func (b *builder) sold(c *class, l, tier int) feasible.Set {
	set := b.allowed(b.inTier(c.levels[l].options, tier))
	if b.pooled && !c.together && len(b.minimums) > 0 {
		set = set.Clone()
		set.And(b.variedFull(c.levels[l].static))
	}
	return set
}

// fill takes room from the slots in order for as long as topology lets the
// class in, and reports whether no pod is left.
func (b *builder) fill(c *class, l int, slots []slot) bool {
	rules := &c.topo.Levels[l].Rules
	if foreign := b.world.Foreign(c.index, rules, b.keysOf(c.index, l)); len(foreign) > 0 && len(slots) > 1 {
		return b.fillEvenly(c, l, slots, foreign)
	}
	for at := 0; at < len(slots) && b.left[c.index] > 0; {
		b.steps++
		s := &slots[at]
		room := 0
		if !s.dead {
			room = b.world.Room(c.index, rules, s.rep, topology.Labels)
		}
		if room == 0 {
			at++
			continue
		}
		before := b.floor(rules)
		n := b.takeFrom(c, l, s, min(room, b.left[c.index]))
		if n == 0 {
			s.dead = true
			continue
		}
		b.left[c.index] -= n
		if len(rules.Affinity) > 0 || b.floor(rules) != before {
			at = 0
		}
	}
	return b.left[c.index] == 0
}

// fillEvenly is fill for pods that others' spread constraints count: among
// slots of one kind they go, one by one, where the fewest such pods are, so
// that those others stay free to go anywhere.
func (b *builder) fillEvenly(c *class, l int, slots []slot, foreign []int) bool {
	rules := &c.topo.Levels[l].Rules
	for b.left[c.index] > 0 {
		var best *slot
		var least int64
		for i := range slots {
			b.steps++
			s := &slots[i]
			if s.dead || best != nil && s.kind > best.kind || b.world.Room(c.index, rules, s.rep, topology.Labels) == 0 {
				continue
			}
			if crowd := b.world.Crowd(foreign, s.rep); best == nil || crowd < least {
				best, least = s, crowd
			}
		}
		if best == nil {
			return false
		}
		n := b.takeFrom(c, l, best, 1)
		best.dead = n == 0
		b.left[c.index] -= n
	}
	return true
}

// floor sums the minima of the spread constraints: when it rises, domains that
// were full may be open again.
func (b *builder) floor(r *topology.Rules) int64 {
	var sum int64
	for i := range r.Spread {
		sum += int64(b.world.Minimum(&r.Spread[i]))
	}
	return sum
}

// takeFrom places up to want pods in a slot and returns how many.
func (b *builder) takeFrom(c *class, l int, s *slot, want int) int {
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
func (b *builder) takeRoom(c *class, l, want int, pl *place, grow bool) int {
	n := min(want, b.world.Room(c.index, &c.topo.Levels[l].Rules, pl.Place, topology.Hosts))
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
			pl.options.And(c.levels[l].options)
		}
	}
	return n
}

// roomOn returns how many of the wanted pods a node or open machine holds as it is. A
// machine that has too few values in one domain becomes open for a pod.
func (b *builder) roomOn(c *class, l, want int, pl *place) int {
	n := min(want, b.capacity(c, pl, pl.free))
	if pl.Node >= 0 {
		return n
	}
	if !c.levels[l].options.Has(pl.Option) {
		n = 0
	}
	if n == 0 || len(b.minimums[b.space.Options[pl.Option].Pool]) == 0 {
		return n
	}
	room := b.variedRoom(c, l, n, pl)
	if room == 0 && b.opens(c, l, pl) {
		pl.open = true
		if room = min(1, b.variedRoom(c, l, n, pl)); room == 0 {
			pl.open = false
		}
	}
	return room
}

// variedRoom is how many of n pods of a class a machine holds with enough values left
// for its pool.
func (b *builder) variedRoom(c *class, l, n int, pl *place) int {
	pool, set := b.space.Options[pl.Option].Pool, b.sharedOptions(c, l, pl)
	if !set.Has(pl.Option) {
		return 0
	}
	return sort.Search(n, func(n int) bool { return !b.varied(pool, set, b.load(c, n+1, pl)) })
}

// joins reports whether open machines are exchanged for larger ones to hold pods
// of the class.
func (b *builder) joins(c *class) bool {
	return b.variant.joint || c.together && (b.share == 0 || b.near(c.index))
}

// sharedOptions are the options of a machine that its pods and one more of a
// class agree on, labels that topology settles included.
func (b *builder) sharedOptions(c *class, l int, pl *place) feasible.Set {
	joined := *pl
	joined.pods = append(slices.Clip(pl.pods), podCount{c.index, l, 1})
	keys := b.settled(&joined)
	set := pl.options.Clone()
	set.And(c.levels[l].options)
	b.keepAgreeing(&joined, keys, set)
	if pl.open {
		b.keepAdmitting(c, l, pl, set)
	}
	return b.fixed(set, joined.pods, pl.Option)
}

// load is what a machine to be bought holds with n more pods of a class.
func (b *builder) load(c *class, n int, pl *place) []int64 {
	load := b.sharedNeed(c, pl)
	if load == nil {
		load = make([]int64, b.space.Dims)
	}
	for d := range load {
		load[d] += b.space.Options[pl.Option].Net[d] - pl.free[d] + c.own[d]*int64(n)
	}
	return load
}

// decidedHere reports whether machines for the class are opened by the builder
// rather than left to the packer, which knows nothing of pods that must meet, of
// disks that they share, or of minValues within one domain.
func (b *builder) decidedHere(c *class, l int) bool {
	return c.together || len(c.shared) > 0 ||
		len(b.minimums) > 0 && len(b.keysOf(c.index, l)) > 0
}

// nodesOnly, in place of a weight, leaves open machines out.
const nodesOnly = -1

// heldSlots groups the nodes and open machines that can take a pod of the
// class by their topology domains: initialized nodes first, then best fit. Of open
// machines only those of NodePools of at least the weight count: before a pod goes
// to one of a lighter NodePool, the heavier one has its say.
func (b *builder) heldSlots(c *class, l int, keys []int, tier int) []slot {
	if len(b.nodes)+len(b.bins) == 0 {
		return nil
	}
	var out []slot
	room, _ := b.waiting(c)
	index := map[string]int{}
	add := func(kind slotKind, pl *place) {
		if b.capacity(c, pl, pl.free) == 0 && !(kind == onBins && b.joins(c)) || b.world.Room(c.index, &c.topo.Levels[l].Rules, pl.Place, topology.Hosts) == 0 {
			return
		}
		id := b.domains(c.index, kind, keys, pl.Place)
		roomy := room == nil || count(c.own, room, pl.free) > 0
		if !roomy {
			id = append(id, 'f')
		}
		if pl.open { // it may be elsewhere
			id = binary.AppendVarint(append(id, 'o'), int64(pl.ID))
		}
		i, ok := index[string(id)]
		if !ok {
			i = len(out)
			index[string(id)] = i
			out = append(out, slot{kind: kind, rep: pl.Place})
		}
		out[i].queue = append(out[i].queue, candidate{pl, pl.ready, roomy, slack(c, pl.free)})
	}
	for _, pl := range b.nodes {
		if c.levels[l].nodes.Has(pl.Node) {
			add(onNodes, pl)
		}
	}
	for _, pl := range b.bins {
		if b.space.PoolOf(pl.Option).Tier > tier {
			continue
		}
		if c.levels[l].options.Has(pl.Option) || b.joins(c) && pl.options.Intersects(c.levels[l].options) {
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
	id = binary.AppendUvarint(id, b.world.Seen(class, p))
	for _, k := range keys {
		id = binary.AppendVarint(id, int64(b.world.Domain(k, p)))
	}
	b.scratch = id
	return id
}
