package bound

import "math"

// A dimension bears at least this part of what the dimensions of a type bear
// together, if as much is used of it as of the scarcest; less if less is used,
// down to nothing for those of which half or less is.
const (
	leastShare = 0.2
	halfUsed   = 0.5
)

// Soften makes of the prices that prove bounds prices to fill bins by, for the
// items in rem. What is nearly as scarce as the scarcest dimension, but not
// quite, is worth nothing to a linear program, and a search that fills bins by its
// prices alone leaves a bad mix to the end: bins full of processor time first,
// whatever room for memory is wasted, and items long in memory last.
func (p *Pricer) Soften(rem []int) {
	r, d := p.refiner, p.C.Dims
	scaling := p.C.Scaling()
	over := r.demand(scaling)
	cheap := r.cheap(scaling, over)
	if len(cheap) == 0 {
		return
	}
	changed := false
	for m := range r.cost {
		o := m * d
		use := over
		if slice := r.use[o : o+d]; largestOf(slice, scaling) > 0 {
			use = slice
		}
		changed = level(p.Now.Capacity[o:o+d], r.best.w[o:o+d], r.fit.inv[o:o+d], use, cheap, largestOf(use, scaling)) || changed
	}
	if changed {
		r.appraise(p.Now.Capacity, p.Now.Value, rem)
	}
}

// demand is how much of every dimension is used, over all types.
func (r *refiner) demand(scaling []int) []float64 {
	d := r.c.Dims
	all := make([]float64, d)
	for m, cost := range r.cost {
		for _, k := range scaling {
			all[k] += cost * r.use[m*d+k]
		}
	}
	return all
}

func largestOf(list []float64, at []int) float64 {
	most := 0.0
	for _, k := range at {
		most = max(most, list[k])
	}
	return most
}

// leastOf is the least share of a dimension of which so much is used, compared to
// the scarcest.
func leastOf(use float64) float64 { return leastShare * max(0, (use-halfUsed)/(1-halfUsed)) }

// cheap are the dimensions that bear less than that in everything that is bought.
// One type may well have more memory than all items ask for when others make up
// for it.
func (r *refiner) cheap(scaling []int, over []float64) []int {
	d := r.c.Dims
	spent, sum := make([]float64, d), 0.0
	for m := range r.cost {
		bins := largestOf(r.use[m*d:m*d+d], scaling)
		for _, k := range scaling {
			if o := m*d + k; bins > 0 && r.fit.inv[o] > 0 {
				spent[k] += bins * r.best.w[o] / r.fit.inv[o]
				sum += bins * r.best.w[o] / r.fit.inv[o]
			}
		}
	}
	top := largestOf(over, scaling)
	var out []int
	for _, k := range scaling {
		if top > 0 && spent[k] < sum*leastOf(over[k]/top) {
			out = append(out, k)
		}
	}
	return out
}

// level sets the prices w of a type to the best ones, raised in the cheap
// dimensions where their use asks for it and scaled so that a bin costs the same,
// and tells whether any had to be raised.
func level(w, best, inv, use []float64, cheap []int, top float64) bool {
	sum := 0.0
	for k := range w {
		if w[k] = best[k]; inv[k] > 0 {
			sum += best[k] / inv[k]
		}
	}
	more := 0.0
	for _, k := range cheap {
		if inv[k] == 0 || top == 0 {
			continue
		}
		least := sum * leastOf(use[k]/top)
		if had := best[k] / inv[k]; had < least {
			more += least - had
			w[k] = least * inv[k]
		}
	}
	if more == 0 {
		return false
	}
	for k := range w {
		w[k] *= sum / (sum + more)
	}
	return true
}

// appraise computes what the items are worth at prices w.
func (r *refiner) appraise(w, value []float64, rem []int) {
	d := r.c.Dims
	for i := range r.c.Classes {
		pairs, size := r.pairsOf(i), r.partsOf(i)
		if rem[i] == 0 || len(pairs) == 0 {
			continue
		}
		best := math.Inf(1)
		for q := range pairs {
			p := &pairs[q]
			v := p.share * p.inv * r.cost[p.place]
			for _, x := range size {
				v += w[int(p.place)*d+int(x.dim)] * x.size
			}
			best = min(best, v)
		}
		value[i] = best
	}
	r.steps += int64(len(r.fit.pairs))
}
