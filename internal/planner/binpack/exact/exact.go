package exact

import (
	"math"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
)

// mostPairs is up to how many pairs of a state and a filling a problem is solved, and
// mostSteps bounds the work for types of which there are only so many: 1 to 3 ms.
const (
	mostPairs = 1 << 18
	mostSteps = 1 << 20
)

// Least is what the bins cost at least that hold all items of a problem, and a packing of
// that cost with the fewest bins. It looks at no shared limit: where there is one, the cost
// is a bound all the same, but the packing is nil if limits forbid it. It is nil, too, where
// types have a Max. Least reports false, without much work, for problems that are too large
// and for items which no bins hold.
func Least(c *reduced.Problem, m *meter.Meter) (cost int64, packing *reduced.Packing, solved bool) {
	t := newTable(c)
	if t == nil {
		return 0, nil, false
	}
	limited, solved := t.fill()
	m.Spend(t.work)
	cost = t.states[len(t.states)-1].cost
	switch {
	case !solved || cost == never:
		return 0, nil, false
	case len(limited) > 0:
		return cost, nil, true
	}
	return cost, t.packing(), true
}

// fill finds the costs of all states. It returns the limited types, and false if there is too
// much to do.
func (t *table) fill() (limited []limited, solved bool) {
	t.price()
	t.solve()
	limited, few := t.limited()
	return limited, few && t.addLimited(limited)
}

// never is what items cost that no bins hold.
const never = math.MaxInt64

// table has a state for each way to take so many items of each class.
type table struct {
	c *reduced.Problem
	// bought are the types without a Max, cheapest first.
	bought []int32
	// stride is, by class, how far apart states are that differ by one item of it.
	stride []int
	states []state
	// work is how many steps were made, as meters count them.
	work int64
	// counts and size are those of one state, while it is looked at.
	counts []int
	size   []int64
}

// state is what is known of some items.
type state struct {
	// bin is the place in bought of the cheapest type that holds them together; at the
	// length of bought none does. It is valid after price.
	bin int32
	// cost is that of the cheapest packing: without limited types after solve, with those
	// that were added later on.
	cost int64
	// bins are those of the cheapest packing without limited types, and filling is the state
	// of the items of its last bin. They are valid after solve.
	bins, filling int32
}

// newTable is the empty table of a problem, or nil if it is too large.
func newTable(c *reduced.Problem) *table {
	if len(c.Classes) == 0 {
		return nil
	}
	states, work := 1, 1
	t := &table{c: c, counts: make([]int, len(c.Classes)), size: make([]int64, c.Dims)}
	for i := range c.Classes {
		n := c.Classes[i].Count
		if n >= mostPairs {
			return nil
		}
		t.stride = append(t.stride, states)
		states *= n + 1
		work *= (n + 1) * (n + 2) / 2
		if work > mostPairs || work <= 0 {
			return nil
		}
	}
	t.states = make([]state, states)
	for _, k := range c.Buyable {
		if c.Types[k].Max < 0 {
			t.bought = append(t.bought, k)
		}
	}
	return t
}

// next makes counts those of the next state.
func (t *table) next() {
	for i := range t.counts {
		if t.counts[i]++; t.counts[i] <= t.c.Classes[i].Count {
			return
		}
		t.counts[i] = 0
	}
}

// price finds the cheapest type for every filling. What does not hold some of the items
// does not hold all.
func (t *table) price() {
	none := int32(len(t.bought))
	for at := 1; at < len(t.states); at++ {
		t.next()
		first := int32(0)
		for i, n := range t.counts {
			if n > 0 {
				first = max(first, t.states[at-t.stride[i]].bin)
			}
		}
		if first < none && !(t.measure() && t.compatible()) {
			first = none
		}
		for ; first < none && !t.holds(t.bought[first]); first++ {
			t.work++
		}
		t.states[at].bin = first
		t.work++
	}
}

// measure adds up the size of the items at hand, or returns false if it is too large a
// number for any bin.
func (t *table) measure() bool {
	clear(t.size)
	for i, n := range t.counts {
		if n == 0 {
			continue
		}
		for d, v := range t.c.Classes[i].Size {
			if v > (math.MaxInt64-t.size[d])/int64(n) {
				return false
			}
			t.size[d] += v * int64(n)
		}
	}
	return true
}

// compatible tells whether the items at hand may share a bin.
func (t *table) compatible() bool {
	for i, n := range t.counts {
		cl := &t.c.Classes[i]
		if n > cl.PerBin {
			return false
		}
		if n == 0 || len(cl.Conflicts) == 0 {
			continue
		}
		for j, o := range t.counts[:i] {
			if o > 0 && intersect(cl.Conflicts, t.c.Classes[j].Conflicts) {
				return false
			}
		}
	}
	return true
}

func intersect(a, b []int32) bool {
	for _, x := range a {
		for _, y := range b {
			if x == y {
				return true
			}
		}
	}
	return false
}

// holds tells whether a bin of the type holds the items at hand.
func (t *table) holds(kind int32) bool {
	k := &t.c.Types[kind]
	if !reduced.Fits(t.size, k.Capacity) {
		return false
	}
	for i, n := range t.counts {
		if n > 0 && !t.c.Takes(k, &t.c.Classes[i]) {
			return false
		}
	}
	return true
}

// solve finds the cheapest packing of every state, of those the one with the fewest bins.
func (t *table) solve() {
	clear(t.counts)
	filling := make([]int, len(t.counts))
	for at := 1; at < len(t.states); at++ {
		t.next()
		last := len(t.counts) - 1
		for t.counts[last] == 0 {
			last--
		}
		s := &t.states[at]
		s.cost = never
		clear(filling)
		filling[last] = 1
		for x := t.stride[last]; ; {
			t.work++
			t.improve(s, at, x)
			i := 0
			for ; i <= last && filling[i] == t.counts[i]; i++ {
				least := 0
				if i == last {
					least = 1
				}
				x -= (filling[i] - least) * t.stride[i]
				filling[i] = least
			}
			if i > last {
				break
			}
			filling[i]++
			x += t.stride[i]
		}
	}
}

// improve takes a filling for state s, which is at the given place, if that is cheaper.
func (t *table) improve(s *state, at, filling int) {
	bin := t.states[filling].bin
	if bin == int32(len(t.bought)) {
		return
	}
	rest, price := &t.states[at-filling], t.c.Types[t.bought[bin]].Cost
	if rest.cost >= never-price {
		return
	}
	if cost := rest.cost + price; cost < s.cost || cost == s.cost && rest.bins+1 < s.bins {
		s.cost, s.bins, s.filling = cost, rest.bins+1, int32(filling)
	}
}

// packing is the cheapest packing of all items, or nil if limits forbid it.
func (t *table) packing() *reduced.Packing {
	p := t.c.NewPacking()
	for at := len(t.states) - 1; at > 0; {
		s := &t.states[at]
		kind, items := t.bought[t.states[s.filling].bin], t.items(int(s.filling))
		times := 0
		for ; at > 0 && t.states[at].filling == s.filling; at -= int(s.filling) {
			times++
		}
		if p.Repeats(kind, items) < times {
			return nil
		}
		p.Buy(kind, items, times)
	}
	return p
}

// items are those of a state.
func (t *table) items(at int) []reduced.Content {
	var items []reduced.Content
	for i := range t.counts {
		if n := at / t.stride[i] % (t.c.Classes[i].Count + 1); n > 0 {
			items = append(items, reduced.Content{Class: int32(i), Count: int32(n)})
		}
	}
	return items
}
