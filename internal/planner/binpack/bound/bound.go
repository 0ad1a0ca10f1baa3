package bound

import (
	"math"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
)

// Bounder proves lower bounds from prices.
type Bounder struct {
	c     *reduced.Problem
	List  *reduced.Shortlist
	count []int // by class, the items the bound speaks of
	ks    *knapsack
	top   []float64 // by type on the shortlist, the most value one bin may hold
	worst []float64 // by type on the shortlist, the least ratio of cost to top
	// lambda are the prices of capacity by which top was last found.
	lambda  []float64
	y       []float64
	order   []int32
	scratch []int32
	Best    float64
	// raised is a bound in whole micro-dollars, without rounding errors.
	raised int64
}

// Raise takes up a bound that is known from elsewhere, in micro-dollars.
func (b *Bounder) Raise(least int64) {
	b.raised, b.Best = max(b.raised, least), max(b.Best, float64(least))
}

// NewBounder proves bounds on packing count items, by class; count is not copied.
func NewBounder(m *reduced.Shortlist, count []int) *Bounder {
	c := m.Problem
	return &Bounder{c: c, List: m, count: count, ks: newKnapsack(c.Dims),
		top: make([]float64, len(c.Types)), worst: make([]float64, len(c.Types)),
		lambda: make([]float64, c.Dims), y: make([]float64, len(c.Classes))}
}

// On is a bounder of the same items and the same best bound with another menu.
func (b *Bounder) On(m *reduced.Shortlist) *Bounder {
	o := NewBounder(m, b.count)
	o.Best, o.raised = b.Best, b.raised
	return o
}

// exactFixed is up to how many types of fixed bins get a knapsack each; beyond,
// the resource prices alone bound their value.
const exactFixed = 64

// prove raises b.best to the bound that the prices imply: value is the worth of
// an item by class, w the resource prices by type that value came from (used
// where a knapsack would take too long), and mu the prices of the shared limits.
func (b *Bounder) prove(value, w, mu []float64) {
	c := b.c
	for i := range c.Classes {
		b.y[i] = max(0, value[i])
	}
	theta := math.Inf(1)
	b.order = b.order[:0]
	for _, t := range b.List.Types {
		b.top[t] = b.cheapUpper(t, w, b.full(t, mu))
		if c.Types[t].Max < 0 && b.top[t] > 0 {
			b.worst[t] = b.ratio(t, mu)
			theta = min(theta, b.worst[t])
			if b.worst[t] < 1 {
				b.order = append(b.order, t)
			}
		}
	}
	for _, t := range c.Fixed {
		if len(c.Fixed) <= exactFixed {
			b.top[t] = b.upper(t)
		} else {
			b.load(t)
			b.top[t] = b.ks.bound(w[b.List.At(t):][:c.Dims])
		}
	}
	if math.IsInf(theta, 1) {
		theta = 1
	}
	b.Best = max(b.Best, b.total(theta, mu))
	if theta >= 1 {
		return
	}
	// Scaling everything because of one bin type is wasteful when that type
	// holds few of the classes: scale only these, the worst type first.
	reduced.SortBy(b.order, func(t int32) float64 { return b.worst[t] })
	for _, t := range b.order {
		b.top[t] = b.cheapUpper(t, w, b.full(t, mu))
		if r := b.ratio(t, mu); r < 1 {
			for _, i := range b.ks.class {
				b.y[i] *= r
			}
		}
	}
	b.Best = max(b.Best, b.total(1, mu))
}

func (b *Bounder) load(t int32) {
	c := b.c
	classes := b.List.Admitted(t)
	if classes == nil {
		b.scratch = c.Compatible(c.Acceptances[c.Types[t].Acceptance], b.scratch[:0])
		classes = b.scratch
	}
	b.ks.load(c, t, classes, b.count, b.y)
}

// worthwhile is the size of a problem, in pairs of a class and a type, up to
// which the costlier bounds are worth their time.
const worthwhile = 4000

func (b *Bounder) small() bool { return len(b.c.Classes)*len(b.List.Types) <= worthwhile }

// exactPairs is up to how many such pairs every knapsack is solved even if that can
// hardly sharpen the bound. Where types stand for others it had better not: the
// prices by which a knapsack is solved say less of those.
const exactPairs = 1000

func (b *Bounder) exact() bool {
	return b.List.Whole() && len(b.c.Classes)*len(b.List.Types) <= exactPairs
}

// cheapUpper is at least the value of the best filling of type t. When the
// resource prices w show already that it does not exceed full, that will do.
func (b *Bounder) cheapUpper(t int32, w []float64, full float64) float64 {
	b.load(t)
	u := b.ks.bound(w[b.List.At(t):][:b.c.Dims])
	copy(b.lambda, w[b.List.At(t):])
	if u > full*(1+1e-7) || b.exact() {
		b.ks.solve()
		if v := b.ks.bound(b.ks.pi); v < u {
			u = v
			copy(b.lambda, b.ks.pi)
		}
	}
	return u
}

// ratio is the least ratio of cost to value of a filling among type t, whose
// value cheapUpper has just found, and the types that it stands for. These hold
// no more items, so that by the same prices lambda their fillings are worth less
// by at least what the missing capacity costs.
func (b *Bounder) ratio(t int32, mu []float64) float64 {
	c := b.c
	r := b.full(t, mu) / max(b.top[t], math.SmallestNonzeroFloat64)
	for _, o := range b.List.CoveredBy(t) {
		v := b.top[t] * (1 + 1e-12)
		for d, l := range b.lambda {
			v -= max(0, l) * float64(c.Types[t].Capacity[d]-c.Types[o].Capacity[d]) / c.Scale[d]
		}
		if v > 0 {
			r = min(r, b.full(o, mu)/v)
		}
	}
	return r
}

// upper is at least the value of the best filling of type t.
func (b *Bounder) upper(t int32) float64 {
	b.load(t)
	b.ks.solve()
	return b.ks.bound(b.ks.pi)
}

func (b *Bounder) full(t int32, mu []float64) float64 {
	k := &b.c.Types[t]
	v := float64(k.Cost)
	for s, u := range k.Use {
		v += mu[s] * float64(u)
	}
	return v
}

// total is the dual value of the prices scaled by theta.
func (b *Bounder) total(theta float64, mu []float64) float64 {
	c, sum := b.c, 0.0
	for i, y := range b.y {
		sum += theta * y * float64(b.count[i])
	}
	plus := sum
	for s, m := range mu {
		sum -= m * float64(c.Shared[s])
	}
	for t := range c.Types {
		k := &c.Types[t]
		if k.Max < 0 {
			continue
		}
		if v := theta*b.top[t] - b.full(int32(t), mu); v > 0 {
			sum -= v * float64(k.Max)
		}
	}
	return sum - 1e-9*plus
}

// Floor is the proven bound in whole micro-dollars. The optimum is an integer,
// so it may go up to the next one, short of what rounding errors may have added.
func (b *Bounder) Floor() int64 {
	v := math.Ceil(b.Best - 1e-3 - 1e-9*math.Abs(b.Best))
	lb := max(int64(max(0, v)), b.apart(), b.raised)
	if g := b.grain(); g > 1 {
		lb = (lb + g - 1) / g * g
	}
	return lb
}

// grain divides the cost of every packing: it is the greatest common divisor of
// the costs of all types.
func (b *Bounder) grain() int64 {
	g := int64(0)
	for _, t := range b.c.Buyable {
		for x := b.c.Types[t].Cost; x != 0; {
			g, x = x, g%x
		}
	}
	return g
}

// apart is the bound from items that cannot share a bin: those of one class
// beyond its cap, and those of classes that share a conflict. Each needs a bin,
// and that costs at least the cheapest that holds it.
func (b *Bounder) apart() int64 {
	c := b.c
	sums := make([]int64, c.ConflictIDs)
	best := int64(0)
	loose := len(c.Classes)*len(c.Buyable) > worthwhile
	var widest [][]int64
	if loose {
		widest = b.widest()
	}
	for i := range c.Classes {
		cl := &c.Classes[i]
		if b.count[i] == 0 || b.anyHolds(c.Fixed, cl) {
			continue
		}
		cheapest, most := c.CheapestFor(cl), 1
		if loose {
			most = max(most, reduced.MostOf(cl, widest[cl.Signature]))
		} else {
			for _, t := range c.Buyable {
				if k := &c.Types[t]; c.CanHold(k, cl) {
					most = max(most, reduced.MostOf(cl, k.Capacity))
				}
			}
		}
		need := int64((b.count[i] + most - 1) / most)
		if cheapest <= 0 || need > math.MaxInt64/4/cheapest {
			continue
		}
		best = max(best, need*cheapest)
		for _, id := range cl.Conflicts {
			if sums[id] < math.MaxInt64/2 {
				sums[id] += need * cheapest
			}
			best = max(best, sums[id])
		}
	}
	return best
}

// widest is, by signature, the most that any type which takes it has of every
// dimension.
func (b *Bounder) widest() [][]int64 {
	c := b.c
	out := make([][]int64, c.Signatures)
	flat := make([]int64, c.Signatures*c.Dims)
	for s := range out {
		out[s], flat = flat[:c.Dims:c.Dims], flat[c.Dims:]
	}
	for _, t := range c.Buyable {
		for s := range c.Acceptances[c.Types[t].Acceptance].All {
			for d, v := range c.Types[t].Capacity {
				out[s][d] = max(out[s][d], v)
			}
		}
	}
	return out
}

func (b *Bounder) anyHolds(kinds []int32, cl *reduced.Class) bool {
	c := b.c
	for _, t := range kinds {
		if k := &c.Types[t]; c.CanHold(k, cl) {
			return true
		}
	}
	return false
}
