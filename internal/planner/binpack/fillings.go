package binpack

// filling is a way to fill a bin.
type filling struct {
	items []content
	ratio float64 // value per dollar
	era   int     // of the prices by which it was made
}

// possible tells whether there are enough items left for the filling.
func (f *filling) possible(rem []int) bool {
	for _, it := range f.items {
		if int(it.n) > rem[it.class] {
			return false
		}
	}
	return true
}

// fillings fills bins by the prices in use, and keeps what it works out for them
// until they change.
type fillings struct {
	c      *core
	prices *pricer
	fill   *filler
	rng    random
	// views are, by type, how the type sees the classes; nil where not filled yet.
	views []*view
	// live are, by acceptance, the classes of which some items were left when prices
	// last changed. It always holds every class that has items left.
	live [][]int32
	// all is scratch for the classes that a type admits.
	all []int32
}

func newFillings(p *pricer, rng random) fillings {
	return fillings{c: p.c, prices: p, fill: newFiller(p.c), rng: rng, views: make([]*view, len(p.c.kinds)), live: make([][]int32, len(p.c.cols))}
}

// prune forgets the classes of which nothing is left.
func (s *fillings) prune(rem []int) {
	for i := range s.live {
		s.live[i] = s.live[i][:0]
		for _, class := range s.prices.menu.classes[i] {
			if rem[class] > 0 {
				s.live[i] = append(s.live[i], class)
			}
		}
	}
}

// viewOf is how type t sees the items at the prices of now.
func (s *fillings) viewOf(t int32) *view {
	if s.views[t] == nil {
		s.views[t] = newView(s.c)
	}
	s.views[t].era = int32(s.prices.era)
	return s.views[t]
}

// refill fills a bin of type t with what is left, round an item of class seed if
// that is not negative.
func (s *fillings) refill(rem []int, t int32, fl *filling, seed int32, r rule) {
	f, now := s.fill, &s.prices.now
	f.bin.begin(t)
	if seed >= 0 {
		f.bin.put(seed, 1)
	}
	f.fill(s.viewOf(t), s.live[s.c.kinds[t].col], rem, s.prices.at(t), now.value, r, &s.rng)
	fl.era, fl.items = s.prices.era, f.bin.appendContents(fl.items[:0])
	fl.ratio = (f.bin.worthOf(now.value) + 1e-9) / (now.cost[t] + 1e-9)
}

// addAny fills up a bin that has the items, which may be none, with whatever is
// left that it admits. It leaves the contents in the filler's bin.
func (s *fillings) addAny(rem []int, t int32, items []content, prices []float64, r rule) {
	s.fill.bin.begin(t)
	s.fill.bin.putAll(items)
	s.all = s.c.compatible(s.c.cols[s.c.kinds[t].col], s.all[:0])
	s.fill.fill(nil, s.all, rem, prices, s.prices.now.value, r, &s.rng)
}

// hopeful is up to how many times as much a filling may be worth when it is made
// anew as the last one of the same type was at the same prices.
const hopeful = 1.15

// pick returns the type whose filling in made, round an item of class seed if that
// is not negative, has the most value per dollar, or -1. As long as prices stay,
// what is left only shrinks, and a filling hardly gets better: a type is filled
// again only when it may come out best.
func (s *fillings) pick(p *packing, kinds []int32, made []filling, seed int32, r rule) int32 {
	for {
		best, hope := int32(-1), 0.0
		for _, t := range kinds {
			if p.lim.room(t) == 0 {
				continue
			}
			fl := &made[t]
			if fl.era != s.prices.era {
				s.refill(p.rem, t, fl, seed, r)
			}
			ratio := fl.ratio
			if !fl.possible(p.rem) {
				ratio *= hopeful
			}
			if len(fl.items) > 0 && ratio > hope {
				best, hope = t, ratio
			}
		}
		if best < 0 || made[best].possible(p.rem) {
			return best
		}
		s.refill(p.rem, best, &made[best], seed, r)
	}
}
