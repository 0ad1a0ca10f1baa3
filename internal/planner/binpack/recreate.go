package binpack

import (
	"math"
	"math/bits"
)

// recreate packs rem into bins that cost less than target together.
func (s *search) recreate(target float64) bool {
	spent := 0.0
	for {
		left := 0.0
		clear(s.load)
		empty := true
		for _, i := range s.pool {
			if n := s.rem[i]; n > 0 {
				empty = false
				left += s.value[i] * float64(n)
				for d, v := range s.c.classes[i].size {
					s.load[d] = addTimes(s.load[d], v, n)
				}
			}
		}
		if empty {
			return spent < target*(1-1e-9)
		}
		if spent+left >= target*(1-1e-9) {
			return false
		}
		if t := s.whole(target - spent); t >= 0 {
			s.fill.begin(t)
			for _, i := range s.pool {
				if s.rem[i] > 0 {
					s.fill.put(i, s.rem[i])
				}
			}
			s.close(t)
			return true
		}
		t := s.best(target - spent)
		if t < 0 {
			return false
		}
		s.fill.begin(t)
		for _, it := range s.try {
			s.fill.put(it.class, int(it.n))
		}
		s.close(t)
		spent += s.cost[t]
	}
}

// addTimes is sum + v*n, at most the largest number there is; none is negative.
func addTimes(sum, v int64, n int) int64 {
	high, low := bits.Mul64(uint64(v), uint64(n))
	if high > 0 || low > uint64(math.MaxInt64-sum) {
		return math.MaxInt64
	}
	return sum + int64(low)
}

// whole returns the cheapest kind that holds all of rem and costs less than
// limit, or -1.
func (s *search) whole(limit float64) int32 {
	c := s.c
	for _, t := range c.buyable {
		if s.cost[t] >= limit*(1-1e-9) || !fits(s.load, c.kinds[t].cap) || s.p.lim.room(c, t) == 0 {
			continue
		}
		if s.holdsAll(t) {
			return t
		}
	}
	return -1
}

func (s *search) holdsAll(t int32) bool {
	sigs := s.c.cols[s.c.kinds[t].col].sigs
	s.fill.begin(t)
	for _, i := range s.pool {
		cl := &s.c.classes[i]
		n := s.rem[i]
		if n == 0 {
			continue
		}
		if !sigs.Has(cl.sig) || n > cl.perBin || n > mostPerBin || s.fill.blocked(i) {
			return false
		}
		for _, id := range cl.conf {
			s.fill.owner[id] = i + 1
		}
		if len(cl.conf) > 0 {
			s.fill.touched = append(s.fill.touched, i) // so that begin forgets it
		}
	}
	return true
}

// best fills a few kinds of bins and leaves the filling with the most value per
// dollar in try. It returns its kind, or -1.
func (s *search) best(limit float64) int32 {
	c, f := s.c, s.fill
	ratio, kind := 0.0, int32(-1)
	for a := range 3 {
		var t int32
		switch a {
		case 0:
			t = c.listed[s.p.patterns[s.chosen[s.rng.below(len(s.chosen))]].kind]
		case 1:
			t = s.tight[s.rng.below(min(6, len(s.tight)))]
		default:
			t = s.tight[s.rng.below(len(s.tight))]
		}
		if s.cost[t] >= limit || s.p.lim.room(c, t) == 0 {
			continue
		}
		big := s.rng.below(bigs)
		r := rule{big: float64(big) / (bigs - 1), noise: 0.2}
		f.begin(t)
		f.fill(s.viewOf(t, big), s.mine(t), s.rem, s.w[c.at(t):][:c.d], s.value, r, &s.rng)
		if len(f.touched) == 0 {
			continue
		}
		f.polish(s.mine(t), s.rem, s.value, 2)
		if v := f.worthOf(s.value) / s.cost[t] * (1 + 0.01*s.rng.float()); v > ratio {
			ratio, kind = v, t
			s.try = s.try[:0]
			for _, i := range f.touched {
				s.try = append(s.try, content{i, f.got[i]})
			}
		}
	}
	return kind
}

// bigs is how many rules the search chooses from.
const bigs = 5

// mostViews is how many opinions of a kind on a class the search keeps at most.
const mostViews = 150_000

// viewOf is how kind t sees the items by the rule of that number, if there is
// room to remember it.
func (s *search) viewOf(t int32, big int) *view {
	if len(s.c.menu)*bigs*len(s.c.classes) > mostViews {
		return nil
	}
	v := &s.views[int(t)*bigs+big]
	if *v == nil {
		*v = s.fill.newView()
		(*v).era = 1
	}
	return *v
}

// mine is the pooled classes that kind t may hold.
func (s *search) mine(t int32) []int32 {
	sigs := s.c.cols[s.c.kinds[t].col].sigs
	for _, i := range s.pool {
		if !sigs.Has(s.c.classes[i].sig) {
			return s.filtered(sigs)
		}
	}
	return s.pool
}

// filtered is the pooled classes whose signature is in sigs.
func (s *search) filtered(sigs Bitset) []int32 {
	s.some = s.some[:0]
	for _, i := range s.pool {
		if sigs.Has(s.c.classes[i].sig) {
			s.some = append(s.some, i)
		}
	}
	return s.some
}
