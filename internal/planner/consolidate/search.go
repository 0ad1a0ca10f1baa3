package consolidate

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// workers is how many boards are searched side by side. It is fixed, so that
// the answer does not depend on the machine that computes it.
const workers = 2

// batch is how many trials are evaluated before the best of them are made.
const batch = 64

// search looks for trials that gain. All boards are equal between rounds: in a
// round each worker evaluates its share of the trials and takes them back, and
// what is accepted is then made on every board in the same order.
type search struct {
	boards []*board
	meter  meter
	dice   *rand.Rand
	gains  []float64
	trials []trial
	// start is the objective that the search began with, budget its time.
	start  float64
	budget time.Duration
}

// enough reports whether the time is over and something has been found.
func (s *search) enough() bool {
	return s.meter.budget > 0 && s.meter.elapsed != nil && s.meter.over() && s.main().objective() < s.start-1
}

// meter says when to stop.
type meter struct {
	budget  time.Duration
	elapsed func() time.Duration
	steps   int64
}

// trialTime is about what one trial takes, to turn a budget into a number of
// trials where there is no clock.
const trialTime = 30 * time.Microsecond

func (m *meter) over() bool {
	if m.elapsed != nil {
		return m.elapsed() >= m.budget
	}
	return time.Duration(m.steps)*trialTime >= m.budget
}

func newSearch(main *board) *search {
	policy := &main.fleet.Problem.Policy
	s := &search{boards: []*board{main}, dice: rand.New(rand.NewPCG(policy.Seed, 0x9e3779b97f4a7c15))}
	s.meter = meter{budget: policy.Budget, elapsed: policy.Elapsed}
	for range workers - 1 {
		twin := newBoard(main.site)
		twin.follow(main)
		s.boards = append(s.boards, twin)
	}
	s.everywhere((*board).seal)
	s.start, s.budget = main.objective(), policy.Budget
	return s
}

// until lets the search go on until a share of its time is over.
func (s *search) until(share float64) {
	s.meter.budget = time.Duration(share * float64(s.budget))
}

// main is the board that everybody looks at between rounds.
func (s *search) main() *board { return s.boards[0] }

// run searches in stages: what stands alone first, then single replacements,
// then sets of nodes for as long as there is time and anything is found.
func (s *search) run() {
	for range 6 {
		before := s.main().objective()
		s.each(false)
		s.arrange()
		s.each(false)
		s.each(true)
		s.pairs()
		if s.meter.budget > 0 {
			s.roam()
		}
		s.arrange()
		if s.main().objective() >= before-1 || s.meter.budget > 0 && s.meter.over() {
			break
		}
	}
	s.each(false)
	s.each(true)
}

// arrange sorts the shelves anew, by what the bins hold now.
func (s *search) arrange() {
	s.everywhere(func(b *board) { b.shelf.fill(b) })
}

// everywhere does the same to every board, side by side.
func (s *search) everywhere(do func(b *board)) {
	s.sideBySide(func(w int) { do(s.boards[w]) })
}

// share does n things, each on one of the boards, side by side.
func (s *search) share(n int, do func(b *board, k int)) {
	s.sideBySide(func(w int) {
		for k := w; k < n; k += len(s.boards) {
			do(s.boards[w], k)
		}
	})
}

// sideBySide lets every worker do its part. Whoever asked for the moves may be
// prepared for a panic, in his own goroutine, so it is there that one goes on.
func (s *search) sideBySide(do func(w int)) {
	failures := make([]any, len(s.boards))
	part := func(w int) {
		defer func() {
			if p := recover(); p != nil {
				failures[w] = fmt.Sprintf("%v\n%s", p, debug.Stack())
			}
		}()
		do(w)
	}
	var wg sync.WaitGroup
	for w := 1; w < len(s.boards); w++ {
		wg.Go(func() { part(w) })
	}
	part(0)
	wg.Wait()
	for _, f := range failures {
		if f != nil {
			panic(f)
		}
	}
}

// each tries every open bin by itself, those that earn their price least first,
// until none gains any more.
func (s *search) each(buy bool) {
	for range 8 {
		s.trials = s.trials[:0]
		for _, i := range s.candidates() {
			s.trials = append(s.trials, trial{shut: []int32{i}, buy: buy})
		}
		if s.rounds() == 0 || s.enough() {
			return
		}
	}
}

// candidates are the open bins that may be given up, those that earn their price
// least first.
func (s *search) candidates() []int32 {
	b := s.main()
	var out []int32
	merit := make([]float64, len(b.bins))
	for i := range b.bins {
		i := int32(i)
		if b.bins[i].shut || b.bins[i].frozen || b.node(i) && !b.candidate(i) {
			continue
		}
		out = append(out, i)
		merit[i] = b.gainPerWorth(i)
	}
	sortStable(out, func(x, y int32) bool { return merit[x] > merit[y] })
	return out
}

// gainPerWorth is what giving a bin up saves, for the worth of the room that its
// pods then need elsewhere.
func (b *board) gainPerWorth(i int32) float64 {
	worth := 1.0
	var gain float64
	if b.node(i) {
		l := &b.nodes[i]
		gain = float64(l.price) - l.toll
		for _, t := range l.tenants {
			worth += b.kinds[t.class].worth * float64(t.n)
		}
	} else {
		gain = float64(b.menu[b.bins[i].ware].price)
	}
	for _, g := range b.bins[i].guests {
		worth += b.kinds[g.class].worth * float64(g.n)
	}
	return gain / worth
}

// rounds makes the trials at hand, batch by batch, and returns how many gained.
func (s *search) rounds() int {
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

// round evaluates trials side by side and makes those that gain, the most
// profitable first, as far as they still gain then.
func (s *search) round(trials []trial) int {
	s.gains = slices.Grow(s.gains[:0], len(trials))[:len(trials)]
	s.share(len(trials), func(b *board, k int) { s.gains[k] = b.wouldGain(&trials[k]) })
	s.meter.steps += int64(len(trials))
	var good []int
	for k, gain := range s.gains {
		if gain > 0 {
			good = append(good, k)
		}
	}
	if len(good) == 0 {
		return 0
	}
	slices.SortStableFunc(good, func(x, y int) int {
		switch {
		case s.gains[x] > s.gains[y]:
			return -1
		case s.gains[x] < s.gains[y]:
			return 1
		}
		return x - y
	})
	made := 0
	s.everywhere(func(b *board) {
		for _, k := range good {
			if b.attempt(&trials[k]) > 0 && b == s.main() {
				made++
			}
		}
	})
	return made
}

// pairs tries neighbours in the order of merit together: two by one or by
// several, and small groups.
func (s *search) pairs() {
	for range 4 {
		list := s.candidates()
		s.trials = s.trials[:0]
		for _, size := range []int{2, 3, 5} {
			for at := 0; at+size <= len(list); at += max(1, size/2) {
				s.trials = append(s.trials, trial{shut: list[at : at+size], buy: true})
			}
		}
		if s.rounds() == 0 || s.enough() {
			return
		}
	}
}

// patience is after how many fruitless trials per candidate roaming ends.
const patience = 12

// roam tries sets of bins drawn at random, mostly among those that earn their
// price least, in the hope of better fits, until nothing is found for long.
func (s *search) roam() {
	list := s.candidates()
	idle := 0
	pool := make([]int32, 0, batch*16)
	for !s.meter.over() && len(list) > 0 && idle < patience*len(list)+10*batch {
		s.trials, pool = s.trials[:0], pool[:0]
		for range batch {
			from := len(pool)
			for range 1 + s.dice.IntN(6) {
				i := s.draw(list)
				if !slices.Contains(pool[from:], i) {
					pool = append(pool, i)
				}
			}
			mid := len(pool)
			for range s.dice.IntN(4) {
				i := s.draw(list)
				if !slices.Contains(pool[from:], i) {
					pool = append(pool, i)
				}
			}
			s.trials = append(s.trials, trial{shut: pool[from:mid:mid], lift: pool[mid:len(pool):len(pool)], buy: true, first: s.dice.IntN(3) == 0})
		}
		if s.round(s.trials) > 0 {
			idle = 0
			list = s.candidates()
		} else {
			idle += batch
		}
	}
}

// draw picks a candidate, earlier ones more often.
func (s *search) draw(list []int32) int32 {
	u := s.dice.Float64()
	return list[int(u*u*float64(len(list)))]
}
