package bound

import (
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
)

// refiner sharpens the fluid prices. In the fluid program an item's processor
// time and its memory may be bought from different bins; here an item is a
// liquid too, but goes to one type of bin as a whole, and a bin holds no more of
// a class than its whole items (or its cap, or their number) allow. The dual of
// that program has prices w per type and dimension and s per type and class, and
// an item is worth what it costs in the type where it is cheapest:
//
//	maximise Σ count·min over types t of (w[t]·size + s[t,class])
//	subject to  w[t]·capacity[t] + Σ most[t,class]·s[t,class] = cost[t]
//
// It is climbed by multiplicative steps on the share of the cost that each
// dimension and class of each type bears (exponentiated gradient, Kivinen and
// Warmuth 1997): what the items that choose the type use more than the rest
// becomes dearer. Every point on the way gives feasible prices, so it may stop
// at any time.
type refiner struct {
	c   *reduced.Problem
	fit fitting
	// cost is, by place on the shortlist, what a bin costs, limits included.
	cost []float64
	// share is, by place on the shortlist and dimension, the part of the cost that the
	// dimension bears. With the shares of the tied pairs those of a type sum to 1.
	share []float64
	// held is, by place on the shortlist, the sum of the shares of its pairs.
	held []float64
	// w, use and value follow from the last assign: the price of a scaled unit and
	// how many bins' worth of it is used, by place and dimension, and the worth of an
	// item by class, in micro-dollars an hour.
	w, use, value []float64
	// cand, by pair of one class, and sum, by place on the shortlist, are scratch.
	cand, sum []float64
	// best are the best prices since the last start or reset of its total.
	best bestPrices
	// moves are the steps since start, fresh says that none was taken since.
	moves int
	fresh bool
	// steps counts the work, in pairs looked at.
	steps int64
}

// bestPrices are prices with the dual value that they reach, negative for none.
type bestPrices struct {
	w, value []float64
	total    float64
}

// fitting says which items fit in which bins, and how many. It is fixed but for
// the share and use of each pair.
type fitting struct {
	list  *reduced.Shortlist
	inv   []float64 // by place on the shortlist and dimension, 1 / scaled capacity, or 0
	parts []part    // the sizes of all classes, without zeros
	first []int32   // by class, where its parts begin
	pairs []pair
	from  []int32 // by class, where its pairs begin
	tied  []int32 // the pairs that are tied
}

// partsOf is the size of class i.
func (r *refiner) partsOf(i int) []part { return r.fit.parts[r.fit.first[i]:r.fit.first[i+1]] }

// pairsOf are the pairs of class i.
func (r *refiner) pairsOf(i int) []pair { return r.fit.pairs[r.fit.from[i]:r.fit.from[i+1]] }

// part is how much of one dimension an item takes, in scaled units.
type part struct {
	dim  int32
	size float64
}

// pair is a class and a type that can hold it.
type pair struct {
	place int32   // its place on the shortlist
	tied  bool    // whether the most that a bin can hold leaves room in it
	inv   float64 // 1 / the most that a bin can hold
	share float64
	use   float64
}

func newRefiner(m *reduced.Shortlist) *refiner {
	c, kinds := m.Problem, len(m.Types)
	n := kinds * c.Dims
	floats := make([]float64, 5*n+3*kinds+2*len(c.Classes))
	next := func(n int) []float64 {
		list := floats[:n:n]
		floats = floats[n:]
		return list
	}
	return &refiner{c: c, share: next(n), use: next(n), w: next(n), best: bestPrices{w: next(n), value: next(len(c.Classes))},
		cost: next(kinds), sum: next(kinds), held: next(kinds), value: next(len(c.Classes)), fit: newFitting(m, next(n))}
}

// newFitting pairs the classes with the types; inv is room for its inverses.
func newFitting(m *reduced.Shortlist, inv []float64) fitting {
	c := m.Problem
	f := fitting{list: m, inv: inv}
	carried := make([]int, c.Signatures)
	for i := range c.Classes {
		carried[c.Classes[i].Signature]++
	}
	pairs := 0
	for place, t := range m.Types {
		for d, v := range c.Types[t].Capacity {
			if v > 0 {
				f.inv[place*c.Dims+d] = c.Scale[d] / float64(v)
			}
		}
		for sig := range c.Acceptances[c.Types[t].Acceptance].All {
			pairs += carried[sig]
		}
	}
	f.pairs = make([]pair, 0, pairs)
	f.first, f.from = make([]int32, 0, len(c.Classes)+1), make([]int32, 0, len(c.Classes)+1)
	for i := range c.Classes {
		f.addClass(c, i)
	}
	f.first = append(f.first, int32(len(f.parts)))
	f.from = append(f.from, int32(len(f.pairs)))
	for i := range f.pairs {
		if f.pairs[i].tied {
			f.tied = append(f.tied, int32(i))
		}
	}
	return f
}

// addClass adds the parts and the pairs of class i, which come after those of the
// classes before it.
func (f *fitting) addClass(c *reduced.Problem, i int) {
	f.first = append(f.first, int32(len(f.parts)))
	for k, v := range c.Classes[i].Scaled {
		if v > 0 {
			f.parts = append(f.parts, part{int32(k), v})
		}
	}
	f.from = append(f.from, int32(len(f.pairs)))
	parts := f.parts[f.first[i]:]
	for place, t := range f.list.Types {
		k := &c.Types[t]
		if !c.Takes(k, &c.Classes[i]) {
			continue
		}
		if p, ok := newPair(&c.Classes[i], parts, int32(place), k); ok {
			f.pairs = append(f.pairs, p)
		}
	}
}

// newPair pairs a class, which has a size in the dimensions of its parts alone,
// with a type, and reports whether an item fits.
func newPair(cl *reduced.Class, parts []part, place int32, k *reduced.BinType) (pair, bool) {
	most := int64(min(cl.Count, cl.PerBin, reduced.MostPerBin))
	for _, p := range parts {
		if v := cl.Size[p.dim]; v*most > k.Capacity[p.dim] || v > math.MaxInt64>>31 {
			most = min(most, k.Capacity[p.dim]/v)
		}
	}
	if most == 0 {
		return pair{}, false
	}
	full := 0.0
	for _, p := range parts {
		full = max(full, float64(cl.Size[p.dim])*float64(most)/float64(k.Capacity[p.dim]))
	}
	return pair{place: place, tied: full < 0.999, inv: 1 / float64(most)}, true
}

// afford is how many steps, between least and most, about work operations allow.
func (r *refiner) afford(work, least, most int) int {
	return max(least, min(most, work/(len(r.fit.pairs)+1)))
}

// start takes over prices w by type and dimension; cost is by type.
func (r *refiner) start(w, cost []float64) {
	d := r.c.Dims
	for m, t := range r.fit.list.Types {
		o := m * d
		for k := range d {
			r.share[o+k] = 0
			if r.fit.inv[o+k] > 0 {
				r.share[o+k] = w[o+k]/(r.fit.inv[o+k]*(cost[t]+1e-9)) + 1e-4
			}
		}
	}
	for _, i := range r.fit.tied {
		r.fit.pairs[i].share = 1e-5
	}
	r.normalise()
	r.best.total, r.moves, r.fresh = -1, 0, true
}

// climb takes n steps for the items in rem, fewer when some in a row were no
// better than one before, and leaves the best prices in bestW and bestV. Unless
// whole, it leaves the shares of the classes as they are, which is faster.
func (r *refiner) climb(rem []int, cost []float64, n, patience int, whole bool) {
	for m, t := range r.fit.list.Types {
		r.cost[m] = cost[t]
	}
	idle := 0
	for range n {
		it := float64(r.moves)
		r.moves++
		idle++
		if v := r.assign(rem, 0.1/(1+0.1*it)); v > r.best.total {
			idle, r.best.total = 0, v
			copy(r.best.w, r.w)
			copy(r.best.value, r.value)
		}
		if idle == patience {
			return
		}
		r.step(1/(1+0.05*it), whole)
	}
}

// assign computes the values of the items and how they use the types, where an
// item spreads over the types that cost nearly the same, soft apart. It returns
// the dual value.
func (r *refiner) assign(rem []int, soft float64) float64 {
	c, d := r.c, r.c.Dims
	for m, cost := range r.cost {
		for o := m * d; o < m*d+d; o++ {
			r.w[o] = r.share[o] * cost * r.fit.inv[o]
			r.use[o] = 0
		}
	}
	total := 0.0
	for i := range c.Classes {
		if rem[i] == 0 && !r.fresh {
			continue // its value is of no interest before the next start
		}
		pairs, size := r.pairsOf(i), r.partsOf(i)
		best := math.Inf(1)
		r.cand = r.cand[:0]
		for q := range pairs {
			p := &pairs[q]
			w := r.w[int(p.place)*d : int(p.place)*d+d]
			v := p.share * p.inv * r.cost[p.place]
			p.use = 0
			for _, x := range size {
				v += w[x.dim] * x.size
			}
			r.cand = append(r.cand, v)
			best = min(best, v)
		}
		if len(pairs) == 0 {
			r.value[i] = 0 // only fixed bins hold it: nothing bounds its worth
			continue
		}
		r.value[i] = best
		if rem[i] > 0 {
			total += best * float64(rem[i])
			r.spread(pairs, size, float64(rem[i]), best, soft)
		}
	}
	r.fresh = false
	r.steps += int64(len(r.fit.pairs))
	return total
}

// spread distributes n items of a size over the types whose cost is near best.
func (r *refiner) spread(pairs []pair, size []part, n, best, soft float64) {
	d, sum := r.c.Dims, 0.0
	limit := best * (1 + 5*soft)
	per := 1 / (5*soft*best + 1e-300)
	for q, v := range r.cand {
		e := 0.0
		if v <= limit {
			e = 1 - (v-best)*per
			e *= e
			e *= e
			sum += e
		}
		r.cand[q] = e
	}
	scale := 1 / sum
	for q, e := range r.cand {
		if e == 0 {
			continue
		}
		p, m := &pairs[q], n*e*scale
		p.use = m * p.inv
		o := int(p.place) * d
		for _, s := range size {
			r.use[o+int(s.dim)] += m * s.size * r.fit.inv[o+int(s.dim)]
		}
	}
}

// step makes what is used more than average dearer.
func (r *refiner) step(eta float64, whole bool) {
	d := r.c.Dims
	clear(r.sum) // the mean use of every type, weighted by share
	for t := range r.cost {
		for o := t * d; o < t*d+d; o++ {
			r.sum[t] += r.share[o] * r.use[o]
		}
	}
	if whole {
		for _, i := range r.fit.tied {
			p := &r.fit.pairs[i]
			r.sum[p.place] += p.share * p.use
		}
	}
	grow := func(share, use, mean float64) float64 {
		return max(share*math.Exp(eta*min(2, use/mean-1)), 1e-7)
	}
	for t := range r.cost {
		if r.sum[t] > 0 {
			for o := t * d; o < t*d+d; o++ {
				if r.fit.inv[o] > 0 {
					r.share[o] = grow(r.share[o], r.use[o], r.sum[t])
				}
			}
		}
	}
	if !whole {
		r.fitShares()
		return
	}
	for _, i := range r.fit.tied {
		if p := &r.fit.pairs[i]; r.sum[p.place] > 0 && (p.use > 0 || p.share > 1e-7) {
			p.share = grow(p.share, p.use, r.sum[p.place])
		}
	}
	r.normalise()
}

// normalise makes the shares of every type sum to 1.
func (r *refiner) normalise() {
	d := r.c.Dims
	clear(r.sum)
	clear(r.held)
	for _, i := range r.fit.tied {
		r.held[r.fit.pairs[i].place] += r.fit.pairs[i].share
	}
	for t := range r.cost {
		r.sum[t] = r.held[t]
		for o := t * d; o < t*d+d; o++ {
			r.sum[t] += r.share[o]
		}
		r.sum[t] = 1 / max(r.sum[t], 1e-300)
		for o := t * d; o < t*d+d; o++ {
			r.share[o] *= r.sum[t]
		}
		r.held[t] *= r.sum[t]
	}
	for _, i := range r.fit.tied {
		r.fit.pairs[i].share *= r.sum[r.fit.pairs[i].place]
	}
}

// fitShares makes the shares of the dimensions of every type sum to what those of the
// classes leave.
func (r *refiner) fitShares() {
	d := r.c.Dims
	for t := range r.cost {
		sum := 0.0
		for o := t * d; o < t*d+d; o++ {
			sum += r.share[o]
		}
		f := (1 - r.held[t]) / max(sum, 1e-300)
		for o := t * d; o < t*d+d; o++ {
			r.share[o] *= f
		}
	}
}

// clone is a refiner at the same point, whose work is counted from zero.
func (r *refiner) clone() *refiner {
	o := *r
	for _, list := range []*[]float64{&o.cost, &o.share, &o.use, &o.w, &o.value, &o.held, &o.sum, &o.best.w, &o.best.value} {
		*list = slices.Clone(*list)
	}
	o.fit.pairs, o.cand, o.steps = slices.Clone(r.fit.pairs), nil, 0
	return &o
}
