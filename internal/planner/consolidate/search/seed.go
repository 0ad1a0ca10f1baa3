package search

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
)

// Constants of the seed.
const (
	// fewPurchases new nodes may as well be one: proposals with so few are compared
	// with buying without a proposal, which prefers one node to several of the same
	// price.
	fewPurchases = 8
	// overpriced and dear are the shares of the value of its pods above which the price
	// of a node makes it part of a set for a proposal.
	overpriced, dear = 1.02, 0.9
	// weightyShare is the share of the nodes' price from which eviction costs have a
	// say in which nodes go.
	weightyShare = 0.05
)

// seed makes the better of what removing bins one by one comes to, and of proposals
// for sets of nodes to be removed together.
func (s *Search) seed(sets ...[]int32) {
	sets = slices.DeleteFunc(sets, func(set []int32) bool { return len(set) < 2 })
	trials, gains := make([]Trial, len(sets)), make([]float64, len(sets))
	s.workers.share(len(sets), func(e *Evaluator, k int) {
		trials[k] = Trial{Remove: sets[k], Buy: true, Proposal: s.proposer.propose(e.State, sets[k])}
		gains[k] = e.WouldGain(&trials[k])
		if plain := (Trial{Remove: sets[k], Buy: true}); len(trials[k].Proposal.Purchases) <= fewPurchases {
			if gain := e.WouldGain(&plain); gain >= gains[k] {
				trials[k], gains[k] = plain, gain
			}
		}
	})
	s.singles(false)
	best, gain := -1, s.start-s.state().Objective()
	for k := range gains {
		if gains[k] > gain {
			best, gain = k, gains[k]
		}
	}
	if best < 0 {
		return
	}
	s.workers.undo()
	s.workers.each(func(e *Evaluator) { e.Attempt(&trials[best]) })
}

// overpricedSets are sets of candidates for proposals: the nodes which hardly any pods
// would make worth their price, and, where evictions weigh something, also those of
// which fewer would. A set is left out where the nodes that stay have room enough for
// its pods: removing nodes one by one does as well there.
func (s *Search) overpricedSets() [][]int32 {
	st := s.state()
	var sets [][]int32
	for _, share := range []float64{overpriced, dear} {
		set := s.worthLess(share)
		pods := 0.0
		leaving := make([]bool, len(s.p.Nodes))
		for _, n := range set {
			pods += s.p.ValueOfPods(&s.p.Nodes[n])
			leaving[n] = true
		}
		room := 0.0
		for i := range st.Index.All {
			if st.Bins.IsNode(i) && !leaving[i] {
				room += s.p.ValueOf(st.Bins.Free(i))
			}
		}
		if room < pods {
			sets = append(sets, set)
		}
		if !s.weighty(set) {
			break
		}
	}
	return sets
}

// worthLess are the candidates whose price is above a share of what their pods, or the
// room for as many as they hold, are worth.
func (s *Search) worthLess(share float64) []int32 {
	st := s.state()
	var out []int32
	for n := range s.p.Nodes {
		node := &s.p.Nodes[n]
		if !mayGo(st, int32(n)) || node.Spot && !s.p.Input.Terms.SpotToSpot {
			continue
		}
		allocatable := s.p.Project(s.p.Space.Dims.Vector(s.p.Planning.Nodes[n].Allocatable, nil))
		if float64(node.Price)-node.EvictionCost > share*max(s.p.ValueOfPods(node), s.p.ValueOf(allocatable)) {
			out = append(out, int32(n))
		}
	}
	return out
}

func mayGo(st *state.State, n int32) bool { return st.Eligible.Candidate(n) && st.MayRemove(n) }

// weighty reports whether eviction costs have a say in which of the bins go. Where
// they have none, proposals for all of them come near the best at once. Where they
// have, it takes a search to find which few pods to move for much room.
func (s *Search) weighty(bins []int32) bool {
	st := s.state()
	var price, evictionCost float64
	for _, i := range bins {
		if st.Bins.IsNode(i) {
			node := &s.p.Nodes[i]
			price, evictionCost = price+float64(node.Price), evictionCost+node.EvictionCost
		}
	}
	return evictionCost >= weightyShare*price && evictionCost > 0
}
