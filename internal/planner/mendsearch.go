package planner

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
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
		spots[i].pods = slices.DeleteFunc(spots[i].pods, func(pc instance.PodCount) bool { return !stays[pc.Class] })
	}
	spots = slices.DeleteFunc(spots, func(s spot) bool { return len(s.pods) == 0 })
	for _, way := range []variant{{}, {few: true}, {large: true}, {large: true, dear: true}} {
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

// mostGuided bounds for how many classes pods are guided.
const mostGuided = 6

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
	for i, vain := 0, 0; i < tries && (vain < patience || len(m.best.stranded()) > 0); i++ {
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
	for _, list := range [2][]*Place{b.nodes, b.bins} {
		for _, pl := range list {
			for _, pc := range pl.Pods {
				n += pc.Level * pc.Count
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
	drop := func(i int) { spots = slices.Delete(spots, i, i+1) }
	more := m.dice.IntN(3)
	if at := m.suiting(spots); len(at) > 0 && m.dice.IntN(2) == 0 {
		drop(at[m.dice.IntN(len(at))])
	} else {
		more++
	}
	for range min(more, len(spots)) {
		drop(m.dice.IntN(len(spots)))
	}
	if draw < 8 {
		class := m.now.sequence[m.dice.IntN(len(m.now.sequence))]
		for i := range spots {
			spots[i].pods = slices.DeleteFunc(spots[i].pods, func(pc instance.PodCount) bool { return pc.Class == class })
		}
	}
	return spots
}

// suiting draws a class with pods that wait and lists the spots that would hold one of
// them if nobody else were there.
func (m *mender) suiting(spots []spot) []int {
	waiting := m.now.stranded()
	if len(waiting) == 0 {
		return nil
	}
	class := waiting[m.dice.IntN(len(waiting))]
	var out []int
	for i, s := range spots {
		if m.now.suits(class, s.pl) {
			out = append(out, i)
		}
	}
	return out
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
