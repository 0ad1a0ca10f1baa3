package construct

import (
	"github.com/nodeautoprovision/nap/internal/planner/binpack/bound"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
)

// filling is a way to fill a bin.
type filling struct {
	items []reduced.Content
	ratio float64 // value per dollar
	era   int     // of the prices by which it was made
}

// possible tells whether there are enough items left for the filling.
func (f *filling) possible(rem []int) bool {
	for _, it := range f.items {
		if int(it.Count) > rem[it.Class] {
			return false
		}
	}
	return true
}

// fillings fills bins by the prices in use, and keeps what it works out for them
// until they change.
type fillings struct {
	c      *reduced.Problem
	pricer *bound.Pricer
	fill   *Filler
	rng    reduced.RNG
	// views are, by type, how the type sees the classes; nil where not filled yet.
	views []*View
	// live are, by acceptance, the classes of which some items were left when prices
	// last changed. It always holds every class that has items left.
	live [][]int32
	// all is scratch for the classes that a type admits.
	all []int32
}

func newFillings(p *bound.Pricer, rng reduced.RNG) fillings {
	return fillings{
		c: p.C, pricer: p, fill: NewFiller(p.C), rng: rng, views: make([]*View, len(p.C.Types)), live: make([][]int32, len(p.C.Acceptances)),
	}
}

// prune forgets the classes of which nothing is left.
func (s *fillings) prune(rem []int) {
	for i := range s.live {
		s.live[i] = s.live[i][:0]
		for _, class := range s.pricer.List.Classes[i] {
			if rem[class] > 0 {
				s.live[i] = append(s.live[i], class)
			}
		}
	}
}

// viewOf is how type t sees the items at the prices of now.
func (s *fillings) viewOf(t int32) *View {
	if s.views[t] == nil {
		s.views[t] = NewView(s.c)
	}
	s.views[t].Era = int32(s.pricer.Era)
	return s.views[t]
}

// refill fills a bin of type t with what is left, round an item of class seed if
// that is not negative.
func (s *fillings) refill(rem []int, t int32, fl *filling, seed int32, r Rule) {
	f, now := s.fill, &s.pricer.Now
	f.Bin.Begin(t)
	if seed >= 0 {
		f.Bin.Put(seed, 1)
	}
	f.Fill(s.viewOf(t), s.live[s.c.Types[t].Acceptance], rem, s.pricer.At(t), now.Value, r, &s.rng)
	fl.era, fl.items = s.pricer.Era, f.Bin.AppendContents(fl.items[:0])
	fl.ratio = (f.Bin.WorthOf(now.Value) + 1e-9) / (now.Cost[t] + 1e-9)
}

// addAny fills up a bin that has the items, which may be none, with whatever is
// left that it admits. It leaves the contents in the filler's bin.
func (s *fillings) addAny(rem []int, t int32, items []reduced.Content, prices []float64, r Rule) {
	s.fill.Bin.Begin(t)
	s.fill.Bin.PutAll(items)
	s.all = s.c.Compatible(s.c.Acceptances[s.c.Types[t].Acceptance], s.all[:0])
	s.fill.Fill(nil, s.all, rem, prices, s.pricer.Now.Value, r, &s.rng)
}

// hopeful is up to how many times as much a filling may be worth when it is made
// again as the last one of the same type was at the same prices.
const hopeful = 1.15

// pick returns the type whose filling in made, round an item of class seed if that
// is not negative, has the most value per dollar, or -1. As long as prices stay,
// what is left only shrinks, and a filling hardly gets better: a type is filled
// again only when it may come out best.
func (s *fillings) pick(p *reduced.Packing, kinds []int32, made []filling, seed int32, r Rule) int32 {
	for {
		best, hope := int32(-1), 0.0
		for _, t := range kinds {
			if p.Limits.Room(t) == 0 {
				continue
			}
			fl := &made[t]
			if fl.era != s.pricer.Era {
				s.refill(p.Remaining, t, fl, seed, r)
			}
			ratio := fl.ratio
			if !fl.possible(p.Remaining) {
				ratio *= hopeful
			}
			if len(fl.items) > 0 && ratio > hope {
				best, hope = t, ratio
			}
		}
		if best < 0 || made[best].possible(p.Remaining) {
			return best
		}
		s.refill(p.Remaining, best, &made[best], seed, r)
	}
}
