package binpack

import "math"

// bounder proves lower bounds from prices.
type bounder struct {
	c     *core
	menu  *menu
	count []int // by class, the items the bound speaks of
	ks    *knapsack
	top   []float64 // by kind on the menu, the most value one bin may hold
	worst []float64 // by kind on the menu, the least ratio of cost to top
	// lambda are the prices of capacity by which top was last found.
	lambda []float64
	y      []float64
	order  []int32
	list   []int32
	best   float64
}

func newBounder(m *menu, count []int) *bounder {
	c := m.c
	return &bounder{c: c, menu: m, count: count, ks: newKnapsack(c.d), top: make([]float64, len(c.kinds)), worst: make([]float64, len(c.kinds)),
		lambda: make([]float64, c.d), y: make([]float64, len(c.classes))}
}

// on is a bounder of the same items and the same best bound with another menu.
func (b *bounder) on(m *menu) *bounder {
	o := newBounder(m, b.count)
	o.best = b.best
	return o
}

// exactFixed is up to how many kinds of fixed bins get a knapsack each; beyond,
// the resource prices alone bound their value.
const exactFixed = 64

// prove raises b.best to the bound that the prices imply: value is the worth of
// an item by class, w the resource prices by kind that value came from (used
// where a knapsack would take too long), and mu the prices of the shared limits.
func (b *bounder) prove(value, w, mu []float64) {
	c := b.c
	for i := range c.classes {
		b.y[i] = max(0, value[i])
	}
	theta := math.Inf(1)
	b.order = b.order[:0]
	for _, t := range b.menu.kinds {
		b.top[t] = b.cheapUpper(t, w, b.full(t, mu))
		if c.kinds[t].max < 0 && b.top[t] > 0 {
			b.worst[t] = b.ratio(t, mu)
			theta = min(theta, b.worst[t])
			if b.worst[t] < 1 {
				b.order = append(b.order, t)
			}
		}
	}
	for _, t := range c.fixed {
		if len(c.fixed) <= exactFixed {
			b.top[t] = b.upper(t)
		} else {
			b.load(t)
			b.top[t] = b.ks.bound(w[b.menu.at(t):][:c.d])
		}
	}
	if math.IsInf(theta, 1) {
		theta = 1
	}
	b.best = max(b.best, b.total(theta, mu))
	if theta >= 1 {
		return
	}
	// Scaling everything because of one bin type is wasteful when that type
	// holds few of the classes: scale only these, the worst type first.
	sortBy(b.order, func(t int32) float64 { return b.worst[t] })
	for _, t := range b.order {
		b.top[t] = b.cheapUpper(t, w, b.full(t, mu))
		if r := b.ratio(t, mu); r < 1 {
			for _, i := range b.ks.class {
				b.y[i] *= r
			}
		}
	}
	b.best = max(b.best, b.total(1, mu))
}

func (b *bounder) load(t int32) {
	c := b.c
	classes := b.menu.admitted(t)
	if classes == nil {
		b.list = c.compatible(c.cols[c.kinds[t].col], b.list[:0])
		classes = b.list
	}
	b.ks.load(c, t, classes, b.count, b.y)
}

// worthwhile is the size of a problem, in pairs of a class and a kind, up to
// which the costlier bounds are worth their time.
const worthwhile = 4000

func (b *bounder) small() bool { return len(b.c.classes)*len(b.menu.kinds) <= worthwhile }

// exactPairs is up to how many such pairs every knapsack is solved even if that can
// hardly sharpen the bound. Where kinds stand for others it had better not: the
// prices by which a knapsack is solved say less of those.
const exactPairs = 1000

func (b *bounder) exact() bool {
	return b.menu.whole() && len(b.c.classes)*len(b.menu.kinds) <= exactPairs
}

// cheapUpper is at least the value of the best filling of kind t. When the
// resource prices w show already that it does not exceed full, that will do.
func (b *bounder) cheapUpper(t int32, w []float64, full float64) float64 {
	b.load(t)
	u := b.ks.bound(w[b.menu.at(t):][:b.c.d])
	copy(b.lambda, w[b.menu.at(t):])
	if u > full*(1+1e-7) || b.exact() {
		b.ks.solve()
		if v := b.ks.bound(b.ks.pi); v < u {
			u = v
			copy(b.lambda, b.ks.pi)
		}
	}
	return u
}

// ratio is the least ratio of cost to value of a filling among kind t, whose
// value cheapUpper has just found, and the kinds that it stands for. These hold
// no more items, so that by the same prices lambda their fillings are worth less
// by at least what the missing capacity costs.
func (b *bounder) ratio(t int32, mu []float64) float64 {
	c := b.c
	r := b.full(t, mu) / max(b.top[t], math.SmallestNonzeroFloat64)
	for _, o := range b.menu.coveredBy(t) {
		v := b.top[t] * (1 + 1e-12)
		for d, l := range b.lambda {
			v -= max(0, l) * float64(c.kinds[t].cap[d]-c.kinds[o].cap[d]) / c.scale[d]
		}
		if v > 0 {
			r = min(r, b.full(o, mu)/v)
		}
	}
	return r
}

// upper is at least the value of the best filling of kind t.
func (b *bounder) upper(t int32) float64 {
	b.load(t)
	b.ks.solve()
	return b.ks.bound(b.ks.pi)
}

func (b *bounder) full(t int32, mu []float64) float64 {
	k := &b.c.kinds[t]
	v := float64(k.cost)
	for s, u := range k.use {
		v += mu[s] * float64(u)
	}
	return v
}

// total is the dual value of the prices scaled by theta.
func (b *bounder) total(theta float64, mu []float64) float64 {
	c, sum := b.c, 0.0
	for i, y := range b.y {
		sum += theta * y * float64(b.count[i])
	}
	plus := sum
	for s, m := range mu {
		sum -= m * float64(c.shared[s])
	}
	for t := range c.kinds {
		k := &c.kinds[t]
		if k.max < 0 {
			continue
		}
		if v := theta*b.top[t] - b.full(int32(t), mu); v > 0 {
			sum -= v * float64(k.max)
		}
	}
	return sum - 1e-9*plus
}

// floor is the proven bound in whole micro-dollars. The optimum is an integer,
// so it may go up to the next one, short of what rounding errors may have added.
func (b *bounder) floor() int64 {
	v := math.Ceil(b.best - 1e-3 - 1e-9*math.Abs(b.best))
	lb := max(int64(max(0, v)), b.apart())
	if g := b.grain(); g > 1 {
		lb = (lb + g - 1) / g * g
	}
	return lb
}

// grain divides the cost of every packing: it is the greatest common divisor of
// the costs of all kinds.
func (b *bounder) grain() int64 {
	g := int64(0)
	for _, t := range b.c.buyable {
		for x := b.c.kinds[t].cost; x != 0; {
			g, x = x, g%x
		}
	}
	return g
}

// apart is the bound from items that cannot share a bin: those of one class
// beyond its cap, and those of classes that share a conflict. Each needs a bin,
// and that costs at least the cheapest that holds it.
func (b *bounder) apart() int64 {
	c := b.c
	sums := make([]int64, c.nconf)
	best := int64(0)
	loose := len(c.classes)*len(c.buyable) > worthwhile
	var widest [][]int64
	if loose {
		widest = b.widest()
	}
	for i := range c.classes {
		cl := &c.classes[i]
		if b.count[i] == 0 || b.anyHolds(c.fixed, cl) {
			continue
		}
		cheapest, most := c.cheapestFor(cl), 1
		if loose {
			most = max(most, mostOf(cl, widest[cl.sig]))
		} else {
			for _, t := range c.buyable {
				if k := &c.kinds[t]; c.canHold(k, cl) {
					most = max(most, mostOf(cl, k.cap))
				}
			}
		}
		need := int64((b.count[i] + most - 1) / most)
		if cheapest <= 0 || need > math.MaxInt64/4/cheapest {
			continue
		}
		best = max(best, need*cheapest)
		for _, id := range cl.conf {
			if sums[id] < math.MaxInt64/2 {
				sums[id] += need * cheapest
			}
			best = max(best, sums[id])
		}
	}
	return best
}

// widest is, by signature, the most that any kind which takes it has of every
// dimension.
func (b *bounder) widest() [][]int64 {
	c := b.c
	out := make([][]int64, c.nsig)
	flat := make([]int64, c.nsig*c.d)
	for s := range out {
		out[s], flat = flat[:c.d:c.d], flat[c.d:]
	}
	for _, t := range c.buyable {
		c.cols[c.kinds[t].col].Each(func(s int) {
			for d, v := range c.kinds[t].cap {
				out[s][d] = max(out[s][d], v)
			}
		})
	}
	return out
}

func (b *bounder) anyHolds(kinds []int32, cl *class) bool {
	c := b.c
	for _, t := range kinds {
		if k := &c.kinds[t]; c.canHold(k, cl) {
			return true
		}
	}
	return false
}
