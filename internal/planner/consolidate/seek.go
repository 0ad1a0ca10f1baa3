package consolidate

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// seek finds what the fleet should become now.
//
// Budgets bound what may happen at once, not what the fleet should become in the
// end. So the search first asks what would be best if they allowed everything. If
// they do, that is the answer, and otherwise it is the goal: the nodes that it
// gives back take in no pods any more, which would only move again, and as many of
// them as budgets allow now are given back in the best way. All others are kept: that
// they have much room today is because the pods of nodes that go later are not there
// yet.
func (s *search) seek() *parcel {
	b := s.main()
	s.everywhere(func(b *board) { b.unbounded = true })
	s.sow(b.hopeless()...)
	if b.weighty(s.candidates()) {
		s.until(0.4)
		s.run()
	}
	goal := b.target()
	s.everywhere(func(b *board) { b.unbounded = false })
	now, later := b.ration(goal.nodes)
	switch {
	case len(later) == 0:
		s.until(1)
		s.run()
	case len(goal.nodes) > patientFor*len(now):
		s.freely()
	default:
		s.rewind()
		if b.rate > 0 {
			b.keep(goal.nodes)
		}
		s.until(0.8)
		s.sow(now)
		s.run()
	}
	return b.target()
}

// patientFor is in how many answers a goal must be reached to be worth seeking.
const patientFor = 32

// freely looks for whatever pays at once, within budgets.
func (s *search) freely() {
	for n := range s.main().nodes {
		s.main().nodes[n].later, s.main().nodes[n].kept = nil, nil
	}
	s.rewind()
	s.until(1)
	s.run()
}

// postpones reports whether some nodes are to go later.
func (s *search) postpones() bool {
	return slices.ContainsFunc(s.main().nodes, func(l lodging) bool { return l.later != nil })
}

// rewind takes everything back on all boards.
func (s *search) rewind() {
	s.everywhere(func(b *board) {
		b.undo(0)
		b.shelf.fill(b)
	})
}

// ration says which of the nodes that are to go may go now, those that save most
// for their evictions first, and notes on the others what they wait for. The
// board's own nodes that are shut do not count.
func (b *board) ration(nodes []int32) (now, later []int32) {
	score := map[int32]float64{}
	for _, n := range nodes {
		l := &b.nodes[n]
		score[n] = (float64(l.price) - l.toll - b.worthOfTenants(l)) / (1 + float64(l.evictions))
	}
	order := slices.Clone(nodes)
	slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(score[y], score[x]) })
	for _, n := range nodes {
		b.bins[n].shut = false
		b.account(n, -1)
	}
	m := &maker{board: b}
	for _, n := range order {
		if b.mayShut(n) {
			b.account(n, 1)
			now = append(now, n)
			continue
		}
		later = append(later, n)
		b.nodes[n].later = m.budgetOf(n)
	}
	for _, n := range now {
		b.account(n, -1)
	}
	for _, n := range nodes {
		b.bins[n].shut = true
		b.account(n, 1)
	}
	slices.Sort(now)
	return now, later
}

// keep notes on all candidates but those that are to go what they are kept for.
func (b *board) keep(leaving []int32) {
	for n := range b.nodes {
		if _, goes := slices.BinarySearch(leaving, int32(n)); !goes && b.candidate(int32(n)) {
			b.nodes[n].kept = stay(n, model.ReasonReceivesPods, "%s is to take in pods of nodes that are given back later, when budgets allow it.", b.name(n))
		}
	}
}

// unworthy are the candidates that cost more than so much of what their pods, or
// the room for as many as they hold, would cost on new machines.
func (b *board) unworthy(share float64) []int32 {
	var out []int32
	for n := range b.nodes {
		l := &b.nodes[n]
		if b.bins[n].shut || !b.candidate(int32(n)) || !b.mayShut(int32(n)) || l.spot && !b.fleet.Terms.SpotToSpot {
			continue
		}
		worth := max(b.worthOfTenants(l), b.worthOf(b.project(b.space.Vector(b.problem.Nodes[n].Allocatable, nil))))
		if float64(l.price)-l.toll > share*worth {
			out = append(out, int32(n))
		}
	}
	return out
}

// hopeless are sets of candidates for designs: what hardly anything would make
// worth its price, and, where evictions weigh something, less than that. Where the
// nodes that stay have room enough for the pods of a set, giving nodes up one by
// one does as well.
func (b *board) hopeless() [][]int32 {
	var sets [][]int32
	for _, share := range []float64{1.02, 0.9} {
		set := b.unworthy(share)
		pods := 0.0
		leaving := make([]bool, len(b.nodes))
		for _, n := range set {
			pods += b.worthOfTenants(&b.nodes[n])
			leaving[n] = true
		}
		room := 0.0
		for _, i := range b.shelf.bins {
			if i >= 0 && b.node(i) && !leaving[i] {
				room += b.worthOf(b.room(i))
			}
		}
		if room < pods {
			sets = append(sets, set)
		}
		if !b.weighty(set) {
			break
		}
	}
	return sets
}

// weighty reports whether what evictions cost has a say in which of the bins go.
// Where it has none, designs for all of them come near the best at once; where it
// has, it takes a search to find which few pods to move for much room.
func (b *board) weighty(bins []int32) bool {
	var price, toll float64
	for _, i := range bins {
		if b.node(i) {
			l := &b.nodes[i]
			price, toll = price+float64(l.price), toll+l.toll
		}
	}
	return toll >= 0.05*price && toll > 0
}

func (b *board) worthOfTenants(l *lodging) float64 {
	sum := 0.0
	for _, t := range l.tenants {
		sum += b.kinds[t.class].worth * float64(t.n)
	}
	return sum
}

// candidate reports whether a node may be given back by consolidation, now.
func (s *site) candidate(n int32) bool {
	l := &s.nodes[n]
	return l.stay == nil && l.later == nil && l.kept == nil
}

// few machines may as well be one: designs of so many are compared with buying
// without a design, which prefers one machine to several of the same price.
const few = 8

// sow makes the best of what giving bins up one by one comes to, and of designs
// for sets of nodes to be given up together.
func (s *search) sow(sets ...[]int32) {
	sets = slices.DeleteFunc(sets, func(set []int32) bool { return len(set) < 2 })
	trials, gains := make([]trial, len(sets)), make([]float64, len(sets))
	s.share(len(sets), func(b *board, k int) {
		trials[k] = trial{shut: sets[k], buy: true, design: b.design(sets[k])}
		gains[k] = b.wouldGain(&trials[k])
		if plain := (trial{shut: sets[k], buy: true}); len(trials[k].design.machines) <= few {
			if gain := b.wouldGain(&plain); gain >= gains[k] {
				trials[k], gains[k] = plain, gain
			}
		}
	})
	s.each(false)
	best, gain := -1, s.start-s.main().objective()
	for k := range gains {
		if gains[k] > gain {
			best, gain = k, gains[k]
		}
	}
	if best < 0 {
		return
	}
	s.rewind()
	s.everywhere(func(b *board) { b.attempt(&trials[best]) })
}
