package bound

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// prices are what a unit of each resource is worth: lambda per dimension, by
// group of classes, in micro-dollars per scaled unit; mu per unit of each shared
// limit; and nu per bin of each type with a Max.
type prices struct {
	d      int
	group  []int // class -> group of classes priced together
	lambda []float64
	mu     []float64
	nu     []float64
}

// value is what an item of class i is worth.
func (p *prices) value(c *reduced.Problem, i int) float64 {
	v, g := 0.0, p.group[i]
	for d, l := range p.lambda[g*p.d : g*p.d+p.d] {
		v += l * c.Classes[i].Scaled[d]
	}
	return v
}

// maxGroups bounds the rows of the fluid program; smaller groups are priced with
// the one they resemble most.
const maxGroups = 16

// fluid prices the resources for a set of items by the fluid relaxation: the
// items of every group, which fit the same types of bins, are liquids, one per
// dimension, and a bin supplies its capacity of each dimension to any one group
// that it can hold. The columns of that linear program (type, group per
// dimension) are generated exactly, since the best group for each dimension is
// the dearest one.
type fluid struct {
	c      *reduced.Problem
	list   *reduced.Shortlist
	prices prices
	lp     *lp
	rows   int       // demand rows: groups * d
	taken  [][]int32 // by type, the groups it can hold
	limits []int32   // types with a Max that have a row
	idx    []int32
	val    []float64
}

func newFluid(m *reduced.Shortlist) *fluid {
	c := m.Problem
	f := &fluid{c: c, list: m}
	f.prices = prices{d: c.Dims, group: make([]int, len(c.Classes)), mu: make([]float64, len(c.Shared)), nu: make([]float64, len(c.Types))}
	f.taken = make([][]int32, len(c.Types))
	f.groupClasses()
	return f
}

// cluster is a set of classes that fit the same types.
type cluster struct {
	kinds   bitset.Set
	classes []int
	demand  float64
}

// groupClasses makes the groups: classes that fit the same types belong
// together. When there are too many, small groups join one that fits more
// types, or failing that a last one of all sorts; either way an item may only
// seem to fit more bins than it does, which keeps a bound a bound.
func (f *fluid) groupClasses() {
	c := f.c
	var all []*cluster
	at := map[string]*cluster{}
	kinds := bitset.New(len(c.Types))
	var key []byte
	for i := range c.Classes {
		cl := &c.Classes[i]
		clear(kinds)
		for _, t := range f.list.Types {
			if k := &c.Types[t]; c.CanHold(k, cl) {
				kinds.Add(int(t))
			}
		}
		key = key[:0]
		for _, w := range kinds {
			key = binary.LittleEndian.AppendUint64(key, w)
		}
		g := at[string(key)]
		if g == nil {
			g = &cluster{kinds: slices.Clone(kinds)}
			at[string(key)] = g
			all = append(all, g)
		}
		g.classes = append(g.classes, i)
		for _, s := range cl.Scaled {
			g.demand += s * float64(cl.Count)
		}
	}

	groups := mergeClusters(all)
	for g, cl := range groups {
		for _, i := range cl.classes {
			f.prices.group[i] = g
		}
		for t := range cl.kinds.All {
			f.taken[t] = append(f.taken[t], int32(g))
		}
		for _, t := range c.Fixed { // a fixed bin is priced, not bought
			f.taken[t] = append(f.taken[t], int32(g))
		}
	}
	f.rows = max(1, len(groups)) * c.Dims
	f.prices.lambda = make([]float64, f.rows)
}

func mergeClusters(all []*cluster) []*cluster {
	reduced.SortBy(all, func(g *cluster) float64 { return -g.demand })
	groups := all[:min(len(all), maxGroups)]
	for _, g := range all[len(groups):] {
		into, extra := groups[len(groups)-1], math.MaxInt
		for _, o := range groups {
			if n := o.kinds.Count(); n < extra && g.kinds.SubsetOf(o.kinds) {
				into, extra = o, n
			}
		}
		for w := range into.kinds {
			into.kinds[w] |= g.kinds[w]
		}
		into.classes = append(into.classes, g.classes...)
	}
	return groups
}

// price solves the fluid program for what is left of the items, the shared
// limits and the maxima, and leaves the result in f.prices.
func (f *fluid) price(rem []int, lim *reduced.Limits) {
	c := f.c
	f.limits = f.limits[:0]
	for t := range c.Types {
		if lim.Max[t] >= 0 && lim.Max[t] > 0 && !c.Types[t].Fixed && len(f.limits) < 64 {
			f.limits = append(f.limits, int32(t))
		}
	}
	m := f.rows + len(c.Shared) + len(f.limits)
	b := make([]float64, m)
	limit := make([]bool, m)
	cost := make([]float64, m)
	for i := range c.Classes {
		if rem[i] == 0 {
			continue
		}
		g := f.prices.group[i] * c.Dims
		for d, s := range c.Classes[i].Scaled {
			b[g+d] += s * float64(rem[i])
		}
	}
	dearest := 1.0
	for i := range c.Types {
		dearest = max(dearest, float64(c.Types[i].Cost))
	}
	for r := range f.rows {
		if b[r] > 0 { // what no item demands is worth nothing
			cost[r] = dearest * 1e3
		}
	}
	for s := range c.Shared {
		limit[f.rows+s], b[f.rows+s] = true, -float64(lim.Shared[s])
	}
	for i, t := range f.limits {
		limit[f.rows+len(c.Shared)+i], b[f.rows+len(c.Shared)+i] = true, -float64(lim.Max[t])
	}
	f.lp = NewLP(b, limit, cost)
	for range 60 {
		if f.generate(lim) == 0 {
			break
		}
		f.lp.Solve(40 * m)
	}
	f.store()
}

// generate adds, for every bin type whose supply is worth more than its cost,
// the best column, and returns how many it added.
func (f *fluid) generate(lim *reduced.Limits) int {
	c, n := f.c, 0
	rowOf := map[int32]int32{}
	for i, t := range f.limits {
		rowOf[t] = int32(f.rows + len(c.Shared) + i)
	}
	for _, t := range f.list.Types {
		if lim.Max[t] == 0 {
			continue
		}
		k := &c.Types[t]
		f.idx, f.val = f.idx[:0], f.val[:0]
		worth := 0.0
		for d := range c.Dims {
			best, at := 0.0, -1
			for _, g := range f.taken[t] {
				if v := f.lp.Y[int(g)*c.Dims+d]; v > best {
					best, at = v, int(g)*c.Dims+d
				}
			}
			if s := float64(k.Capacity[d]) / c.Scale[d]; at >= 0 && s > 0 {
				f.idx, f.val = append(f.idx, int32(at)), append(f.val, s)
				worth += best * s
			}
		}
		for s, u := range k.Use {
			if u > 0 {
				f.idx, f.val = append(f.idx, int32(f.rows+s)), append(f.val, -float64(u))
				worth -= f.lp.Y[f.rows+s] * float64(u)
			}
		}
		if r, ok := rowOf[t]; ok {
			f.idx, f.val = append(f.idx, r), append(f.val, -1)
			worth -= f.lp.Y[r]
		}
		if worth > float64(k.Cost)*(1+1e-6)+1e-6 {
			f.lp.Add(float64(k.Cost), f.idx, f.val)
			n++
		}
	}
	return n
}

func (f *fluid) store() {
	c := f.c
	for i := range f.prices.lambda {
		f.prices.lambda[i] = max(0, f.lp.Y[i])
	}
	for s := range c.Shared {
		f.prices.mu[s] = max(0, f.lp.Y[f.rows+s])
	}
	clear(f.prices.nu)
	for i, t := range f.limits {
		f.prices.nu[t] = max(0, f.lp.Y[f.rows+len(c.Shared)+i])
	}
}

// fullCost is what a bin of type t costs with the price of the limits that it takes
// from.
func (p *prices) fullCost(c *reduced.Problem, t int32) float64 {
	k := &c.Types[t]
	v := float64(k.Cost) + p.nu[t]
	for s, u := range k.Use {
		v += p.mu[s] * float64(u)
	}
	return math.Max(v, 0)
}
