package planner

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/topo"
)

// guide plans anew with those who wait served first, together with the pods that they
// have to be near.
func (m *mender) guide(stranded []int) {
	ways := []variant{{alone: true, large: true, joint: true}, {alone: true, few: true}}
	tried := map[int]bool{}
	for len(stranded) > 0 && len(tried) < mostGuided && !m.blank.late() {
		first := stranded[0]
		stranded = stranded[1:]
		if tried[first] {
			continue
		}
		tried[first] = true
		better := false
		for _, way := range ways {
			if m.blank.late() {
				break
			}
			f := m.blank.fork()
			f.variant = way
			order := append([]int{first}, slices.DeleteFunc(slices.Clone(m.blank.sequence), func(i int) bool { return i == first })...)
			f.admit(order, func(i int) bool { return i == first || m.best.left[i] > 0 })
			better = m.take(f) || better
		}
		if better {
			stranded = m.best.stranded()
		}
	}
}

// around plans anew round the pods of some classes and of those whom they have to be
// near, which stay where they are. Whoever was placed before these to make that possible
// may have a cheaper place.
func (m *mender) around(classes []int) {
	stays := map[int]bool{}
	for _, class := range classes {
		stays[class] = true
		for _, i := range m.blank.sequence {
			stays[i] = stays[i] || m.blank.attracts(i, class)
		}
	}
	spots := m.best.spots()
	for i := range spots {
		spots[i].pods = slices.DeleteFunc(spots[i].pods, func(pc podCount) bool { return !stays[pc.class] })
	}
	spots = slices.DeleteFunc(spots, func(s spot) bool { return len(s.pods) == 0 })
	for _, way := range []variant{{}, {few: true}, {large: true}, {large: true, few: true}} {
		if m.blank.late() {
			return
		}
		f := m.blank.fork()
		f.retrace(copied(spots))
		f.variant = way
		f.sequence = order(f)
		if f.planPooled(&m.quick).entangled {
			continue
		}
		m.offers.b = f
		f.trim(m.offers)
		m.take(f)
	}
}

// copied lists spots anew, for those who take pods off.
func copied(spots []spot) []spot {
	out := slices.Clone(spots)
	for i := range out {
		out[i].pods = slices.Clone(out[i].pods)
	}
	return out
}

// mostShare is the least share of those who wait for a machine for which it keeps room,
// as a power of a half.
const mostShare = 3

// detour is how much a plan from which to go on may cost more than the best one, as
// one part in so many.
const detour = 10

// mostGuided bounds for how many classes pods are guided, mostPlaces how many places
// are tried for those whom others have to be near.
const (
	mostGuided = 6
	mostPlaces = 32
)

// near reports whether pods of a class have to be near others.
func (b *builder) near(class int) bool {
	return len(b.classes[class].topo.Levels) > 0 && len(b.hardRules(class).Affinity) > 0
}

// hardRules are those that hold for a class when all preferences are given up.
func (b *builder) hardRules(class int) *topo.Rules {
	levels := b.classes[class].topo.Levels
	return &levels[len(levels)-1].Rules
}

// search empties places at random, a few at a time, and fills them again.
func (m *mender) search(policy *model.Policy) {
	if m.blank.late() {
		return
	}
	m.now = m.blank.fork()
	m.now.retrace(m.best.spots())
	m.settle(m.now, m.now.sequence)
	m.take(m.now)
	for _, way := range []variant{{alone: true}, {alone: true, few: true}, {alone: true, large: true, joint: true, single: true}} {
		if m.blank.late() {
			return
		}
		f := m.blank.fork() // from the beginning, in ways that are not tried for every problem
		f.variant, f.share = way, mostShare
		m.settle(f, f.sequence)
		m.take(f)
	}
	tries := max(leastTries, int(policy.Budget/mendTime)/(1+len(m.blank.left)/mendClasses))
	for i, vain := 0, 0; i < tries && vain < patience; i++ {
		if m.best.unplaced() == 0 && m.best.cost() == 0 || policy.Elapsed != nil && policy.Elapsed() >= policy.Budget*7/8 {
			return
		}
		f := m.blank.fork()
		f.retrace(m.ruin())
		f.variant, f.whim = m.way(), m.dice
		if m.dice.IntN(2) == 0 {
			f.share = 1 + m.dice.IntN(mostShare)
		}
		vain++
		if m.settle(f, m.order(f)) && m.take(f) {
			vain = 0
		}
	}
}

// settle places those who have no place, in an order, and exchanges machines for the
// cheapest ones that hold their pods. It reports whether the plan is sound.
func (m *mender) settle(f *builder, order []int) bool {
	if f.whim != nil && !f.variant.alone {
		if f.planPooled(&m.quick).entangled {
			return false
		}
	} else {
		all := f.whim != nil && m.dice.IntN(3) == 0
		f.admit(order, func(i int) bool { return all || m.best.left[i] > 0 })
	}
	m.offers.b = f
	f.trim(m.offers)
	return true
}

// take makes a plan the one to start from if it is no worse than that one, and reports
// whether it is better than all before.
func (m *mender) take(f *builder) bool {
	if m.watched && len(f.conflict()) > 0 {
		return false
	}
	near := f.unplaced() == m.best.unplaced() && f.cost() < m.best.cost()+m.best.cost()/detour
	if m.now == nil || !m.now.better(f) || near && m.dice.IntN(2) == 0 {
		m.now = f
	}
	more := f.unplaced() < m.best.unplaced() // who has no place yet may have to give up preferences
	if !f.better(m.best) || !more && (f.space.Tiers > 1 || f.givenUp() > m.best.givenUp()) {
		return false
	}
	m.best, m.now = f, f
	return true
}

// givenUp counts the preferences that pods have given up.
func (b *builder) givenUp() int {
	n := 0
	for _, list := range [2][]*place{b.nodes, b.bins} {
		for _, pl := range list {
			for _, pc := range pl.pods {
				n += pc.level * pc.count
			}
		}
	}
	return n
}

// ruin draws what to keep of the plan: all but some places, and at times without the
// pods of some class, or nothing at all.
func (m *mender) ruin() []spot {
	spots := m.now.spots()
	draw := m.dice.IntN(20)
	if draw == 0 {
		return nil
	}
	for range 1 + m.dice.IntN(3) {
		if len(spots) > 0 {
			i := m.dice.IntN(len(spots))
			spots = slices.Delete(spots, i, i+1)
		}
	}
	if draw < 8 {
		class := m.now.sequence[m.dice.IntN(len(m.now.sequence))]
		for i := range spots {
			spots[i].pods = slices.DeleteFunc(spots[i].pods, func(pc podCount) bool { return pc.class == class })
		}
	}
	return spots
}

// way draws how to place pods.
func (m *mender) way() variant {
	coin := m.dice.IntN(2) == 0
	switch m.dice.IntN(3) {
	case 0:
		return variant{alone: true, large: true, joint: true, single: coin}
	case 1:
		return variant{alone: true, few: coin, single: m.dice.IntN(3) == 0}
	default:
		return variant{few: coin}
	}
}

// order draws in which order classes come: as usual, the large ones first, or any.
// Those who wait in the best plan come first.
func (m *mender) order(f *builder) []int {
	order := slices.Clone(f.sequence)
	switch m.dice.IntN(3) {
	case 0:
		m.dice.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	case 1:
		slices.SortStableFunc(order, func(x, y int) int { return bySize(&f.classes[x], &f.classes[y]) })
	}
	if m.dice.IntN(3) > 0 {
		waits := func(i int) int { return min(1, m.now.left[i]) }
		slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(waits(y), waits(x)) })
	}
	return order
}

// admit places all who have no place, in the given order of classes. Those of some
// classes who have to be near others come together with these.
func (b *builder) admit(order []int, together func(class int) bool) {
	for _, i := range order {
		if b.left[i] == 0 {
			continue
		}
		if !together(i) || !b.near(i) {
			b.runOut(&b.classes[i])
			continue
		}
		if !b.founding(i) {
			b.runOut(&b.classes[i])
		}
		for b.left[i] > 0 && b.company(i) {
			b.runOut(&b.classes[i])
		}
		if b.left[i] > 0 {
			b.runOut(&b.classes[i]) // the first of a group alone, before others come
		}
	}
	b.runAll()
}

// founding reports whether the next pod of a class decides where all that are like it
// have to be.
func (b *builder) founding(class int) bool {
	return !slices.ContainsFunc(b.hardRules(class).Affinity, func(a topo.Affinity) bool {
		return !a.Self || b.world.Total(a.Counter) > 0
	})
}

// company places one pod which those of a class have to be near, where the most of them
// can follow, lets them, and reports whether there is such a place.
func (b *builder) company(class int) bool {
	var best *builder
	for _, i := range b.sequence {
		if b.left[i] == 0 || !b.attracts(i, class) || i == class && !b.founding(class) {
			continue
		}
		c := &b.classes[i]
		for l := range c.levels {
			for at := range mostPlaces {
				if b.late != nil && b.late() {
					break
				}
				f := b.fork()
				f.whim = nil
				tried, placed := f.placeAt(c, l, at, class)
				if !tried {
					break
				}
				if !placed {
					continue
				}
				f.run(&f.classes[class])
				if f.left[class] < b.left[class] && (best == nil || f.left[class] < best.left[class] || f.left[class] == best.left[class] && f.cost() < best.cost()) {
					best = f
				}
			}
		}
	}
	if best != nil {
		b.become(best)
	}
	return best != nil
}

// attracts reports whether pods of a class have to be near those of another.
func (b *builder) attracts(other, class int) bool {
	return slices.ContainsFunc(b.hardRules(class).Affinity, func(a topo.Affinity) bool {
		return slices.Contains(b.world.Adds(other), a.Counter)
	})
}

// placeAt puts one pod of a class on the n-th of the places that it may be tried on:
// nodes, open machines, and a new one with room for a guest in each domain of either.
// It reports whether there are so many, and whether the pod is there.
func (b *builder) placeAt(c *class, l, n, guest int) (tried, placed bool) {
	b.guest = &b.classes[guest]
	defer func() { b.guest = nil }()
	keys := slices.Clone(b.keysOf(c.index, l))
	for _, k := range b.keysOf(guest, len(b.guest.levels)-1) {
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for tier := nodesOnly; tier < b.space.Tiers; tier++ {
		slots := b.heldSlots(c, l, keys, tier)
		if tier > nodesOnly {
			slots = append(slots, b.newSlots(c, l, tier, keys)...)
		}
		for i := range slots {
			s := &slots[i]
			size := max(1, len(s.queue))
			if n >= size {
				n -= size
				continue
			}
			if s.kind != onNew {
				s.queue = s.queue[n : n+1]
			}
			if b.world.Room(c.index, &c.topo.Levels[l].Rules, s.rep, topo.Labels) == 0 || b.takeFrom(c, l, s, 1) == 0 {
				return true, false
			}
			b.left[c.index]--
			return true, true
		}
	}
	return false, false
}

// become makes b what its fork has become.
func (b *builder) become(f *builder) {
	b.world, b.ledger, b.left, b.nodes, b.bins, b.steps = f.world, f.ledger, f.left, f.nodes, f.bins, f.steps
}
