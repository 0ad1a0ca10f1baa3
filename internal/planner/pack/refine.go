package pack

import "math"

// refiner sharpens the fluid prices. In the fluid program an item's processor
// time and its memory may be bought from different bins; here an item is a
// liquid too, but goes to one kind of bin as a whole. The dual of that program
// has one price vector per kind, worth exactly the kind's cost, and an item is
// worth what it costs in the kind where it is cheapest:
//
//	maximise Σ count·min over kinds t of (w[t]·size)  subject to  w[t]·capacity[t] = cost[t]
//
// which is climbed by multiplicative steps on the share of the cost that each
// dimension of each kind bears: a dimension of which the items that choose the
// kind use more than of the others becomes dearer. Every point on the way gives
// prices that are feasible, so it may stop at any time.
type refiner struct {
	c     *core
	share []float64 // by kind and dimension, sums to 1 over the dimensions
	inv   []float64 // by kind and dimension, 1 / scaled capacity
	use   []float64
	w     []float64 // by kind and dimension, price per scaled unit
	value []float64 // by class
	from  []int32   // by class, where its feasible kinds begin in pairs
	pairs []int32
	cand  []float64
	bestW []float64
	bestV []float64
	total float64
	steps int64
}

func newRefiner(c *core) *refiner {
	n := len(c.kinds) * c.d
	r := &refiner{c: c, share: make([]float64, n), inv: make([]float64, n), use: make([]float64, n), w: make([]float64, n),
		value: make([]float64, len(c.classes)), cand: make([]float64, len(c.buyable)), bestW: make([]float64, n), bestV: make([]float64, len(c.classes))}
	for t := range c.kinds {
		for d, v := range c.kinds[t].cap {
			if v > 0 {
				r.inv[t*c.d+d] = c.scale[d] / float64(v)
			}
		}
	}
	for i := range c.classes {
		r.from = append(r.from, int32(len(r.pairs)))
		for _, t := range c.buyable {
			if k := &c.kinds[t]; c.takes(k, &c.classes[i]) && fits(c.classes[i].size, k.cap) {
				r.pairs = append(r.pairs, t)
			}
		}
	}
	r.from = append(r.from, int32(len(r.pairs)))
	return r
}

// start takes over prices w by kind and dimension; cost is by kind.
func (r *refiner) start(w, cost []float64) {
	d := r.c.d
	for _, t := range r.c.buyable {
		o, sum := int(t)*d, 0.0
		for k := range d {
			s := 0.0
			if r.inv[o+k] > 0 {
				s = w[o+k]/(r.inv[o+k]*(cost[t]+1e-9)) + 1e-4
			}
			r.share[o+k] = s
			sum += s
		}
		for k := range d {
			r.share[o+k] /= max(sum, 1e-12)
		}
	}
	r.total = -1
}

// climb takes n steps for the items in rem and leaves the best prices in bestW
// and bestV.
func (r *refiner) climb(rem []int, cost []float64, n int) {
	for it := range n {
		soft := 0.03 / (1 + 0.3*float64(it))
		if v := r.assign(rem, cost, soft); v > r.total {
			r.total = v
			copy(r.bestW, r.w)
			copy(r.bestV, r.value)
		}
		r.step(0.5 / (1 + 0.05*float64(it)))
	}
}

// assign computes the values of the items and how they use the kinds, where an
// item spreads over the kinds that cost nearly the same, soft apart. It returns
// the dual value.
func (r *refiner) assign(rem []int, cost []float64, soft float64) float64 {
	c, d := r.c, r.c.d
	for _, t := range c.buyable {
		for k := range d {
			o := int(t)*d + k
			r.w[o] = r.share[o] * cost[t] * r.inv[o]
			r.use[o] = 0
		}
	}
	total := 0.0
	for i := range c.classes {
		cl := &c.classes[i]
		if rem[i] == 0 && r.total >= 0 {
			continue // its value is of no interest before the next start
		}
		best := math.Inf(1)
		r.cand = r.cand[:0]
		for _, t := range r.pairs[r.from[i]:r.from[i+1]] {
			v, w := 0.0, r.w[int(t)*d:int(t)*d+d]
			for j, x := range cl.fsize[:len(w)] {
				v += w[j] * x
			}
			r.cand = append(r.cand, v)
			best = min(best, v)
		}
		if len(r.cand) == 0 {
			r.value[i] = 0 // only fixed bins hold it: nothing bounds its worth
			continue
		}
		r.value[i] = best
		if rem[i] == 0 {
			continue
		}
		total += best * float64(rem[i])
		r.spread(i, float64(rem[i]), best, soft)
	}
	r.steps += int64(len(r.pairs))
	return total
}

func (r *refiner) spread(i int, n, best, soft float64) {
	d, sum := r.c.d, 0.0
	limit := best * (1 + 5*soft)
	pairs := r.pairs[r.from[i]:r.from[i+1]]
	for q, v := range r.cand {
		if v <= limit {
			e := math.Exp((best - v) / (best*soft + 1e-12))
			r.cand[q] = e
			sum += e
		} else {
			r.cand[q] = 0
		}
	}
	for q, e := range r.cand {
		if e == 0 {
			continue
		}
		o := int(pairs[q]) * d
		for k, s := range r.c.classes[i].fsize {
			r.use[o+k] += n * e / sum * s * r.inv[o+k]
		}
	}
}

// step makes the dimensions that are used more than average dearer.
func (r *refiner) step(eta float64) {
	d := r.c.d
	for _, t := range r.c.buyable {
		o, mean := int(t)*d, 0.0
		for k := range d {
			mean += r.share[o+k] * r.use[o+k]
		}
		if mean <= 0 {
			continue
		}
		sum := 0.0
		for k := range d {
			g := min(2, r.use[o+k]/mean-1)
			r.share[o+k] = max(r.share[o+k]*math.Exp(eta*g), 1e-7)
			if r.inv[o+k] == 0 {
				r.share[o+k] = 0
			}
			sum += r.share[o+k]
		}
		for k := range d {
			r.share[o+k] /= sum
		}
	}
}
