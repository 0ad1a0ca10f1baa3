package search

import (
	"cmp"
	"slices"
)

// Constants of the descent.
const (
	// batch is how many trials are evaluated before the best of them are made.
	batch = 64
	// mostRounds, mostPasses and mostPairPasses bound the repetitions of the whole
	// descent, of trying every bin, and of trying neighbours. They end earlier when
	// nothing gains.
	mostRounds, mostPasses, mostPairPasses = 6, 8, 4
	// patience is after how many fruitless trials per candidate random sets end.
	patience = 12
	// mostRemoved and mostLifted bound the sizes of random sets.
	mostRemoved, mostLifted = 6, 3
)

// groupSizes are the sizes of the groups of neighbours that are tried together.
func groupSizes() []int { return []int{2, 3, 5} }

// descend improves the states in stages: removals without a replacement, single
// replacements, groups of neighbours, then random sets for as long as there is time
// and anything is found.
func (s *Search) descend() {
	for range mostRounds {
		before := s.state().Objective()
		s.singles(false)
		s.workers.arrange()
		s.singles(false)
		s.singles(true)
		s.groups()
		if s.meter.Limited() {
			s.randomSets()
		}
		s.workers.arrange()
		if s.state().Objective() >= before-1 || s.meter.Limited() && s.meter.Over() {
			break
		}
	}
	s.singles(false)
	s.singles(true)
}

// singles tries to remove every candidate by itself, until none gains any more.
func (s *Search) singles(buy bool) {
	for range mostPasses {
		s.trials = s.trials[:0]
		for _, i := range s.candidates() {
			s.trials = append(s.trials, Trial{Remove: []int32{i}, Buy: buy})
		}
		if s.rounds() == 0 || s.enough() {
			return
		}
	}
}

// candidates are the bins that may be removed, by descending gain for the value of
// their pods.
func (s *Search) candidates() []int32 {
	st := s.state()
	return st.Ranked(st.Eligible.Candidate, st.Gain)
}

// rounds makes the trials at hand, batch by batch, and returns how many gained.
func (s *Search) rounds() int {
	made := 0
	all := s.trials
	for part := range slices.Chunk(all, batch) {
		made += s.round(part)
		if s.enough() {
			break
		}
	}
	return made
}

// round evaluates trials in parallel and makes those that gain on every state, the
// most profitable first, as far as they still gain then. It returns how many did.
func (s *Search) round(trials []Trial) int {
	s.gains = slices.Grow(s.gains[:0], len(trials))[:len(trials)]
	s.workers.share(len(trials), func(e *Evaluator, k int) { s.gains[k] = e.WouldGain(&trials[k]) })
	s.meter.Spend(trialSteps * int64(len(trials)))
	var good []int
	for k, gain := range s.gains {
		if gain > 0 {
			good = append(good, k)
		}
	}
	if len(good) == 0 {
		return 0
	}
	slices.SortStableFunc(good, func(x, y int) int { return cmp.Or(cmp.Compare(s.gains[y], s.gains[x]), x-y) })
	made := 0
	s.workers.each(func(e *Evaluator) {
		for _, k := range good {
			if e.Attempt(&trials[k]) > 0 && e == s.workers.main() {
				made++
			}
		}
	})
	return made
}

// groups tries neighbours in the order of candidates together: several for one or for
// several.
func (s *Search) groups() {
	for range mostPairPasses {
		list := s.candidates()
		s.trials = s.trials[:0]
		for _, size := range groupSizes() {
			for at := 0; at+size <= len(list); at += max(1, size/2) {
				s.trials = append(s.trials, Trial{Remove: list[at : at+size], Buy: true})
			}
		}
		if s.rounds() == 0 || s.enough() {
			return
		}
	}
}

// randomSets tries sets of bins drawn at random, mostly among those whose removal
// gains most, in the hope of better fits: large neighbourhood search with random
// destruction. It ends when nothing was found for long.
func (s *Search) randomSets() {
	list := s.candidates()
	idle := 0
	pool := make([]int32, 0, batch*16)
	for !s.meter.Over() && len(list) > 0 && idle < patience*len(list)+10*batch {
		s.trials, pool = s.trials[:0], pool[:0]
		for range batch {
			from := len(pool)
			pool = s.draw(pool, from, list, 1+s.rng.IntN(mostRemoved))
			mid := len(pool)
			pool = s.draw(pool, from, list, s.rng.IntN(mostLifted+1))
			s.trials = append(s.trials, Trial{
				Remove: pool[from:mid:mid], Lift: pool[mid:len(pool):len(pool)], Buy: true, BuyFirst: s.rng.IntN(3) == 0,
			})
		}
		if s.round(s.trials) > 0 {
			idle = 0
			list = s.candidates()
		} else {
			idle += batch
		}
	}
}

// draw appends up to n candidates to the set that begins at from, earlier ones more
// often.
func (s *Search) draw(pool []int32, from int, list []int32, n int) []int32 {
	for range n {
		u := s.rng.Float64()
		if i := list[int(u*u*float64(len(list)))]; !slices.Contains(pool[from:], i) {
			pool = append(pool, i)
		}
	}
	return pool
}
