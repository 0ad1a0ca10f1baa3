package reduced

import "math"

// Limits is what may still be bought.
type Limits struct {
	types  []BinType
	Max    []int // by type; -1 is no limit
	Shared []int64
}

// NewLimits is what may be bought when nothing has been.
func (c *Problem) NewLimits() *Limits {
	l := &Limits{types: c.Types, Max: make([]int, len(c.Types)), Shared: append([]int64(nil), c.Shared...)}
	for i := range c.Types {
		l.Max[i] = c.Types[i].Max
	}
	return l
}

func (l *Limits) copyFrom(o *Limits) {
	copy(l.Max, o.Max)
	copy(l.Shared, o.Shared)
}

// Room is how many more bins of type t may be opened.
func (l *Limits) Room(t int32) int {
	n := l.Max[t]
	if n < 0 {
		n = math.MaxInt32
	}
	for s, u := range l.types[t].Use {
		if u > 0 {
			n = min(n, int(min(l.Shared[s]/u, math.MaxInt32)))
		}
	}
	return max(0, n)
}

// Open takes n bins of type t; a negative n gives them back.
func (l *Limits) Open(t int32, n int) {
	if l.Max[t] >= 0 {
		l.Max[t] -= n
	}
	for s, u := range l.types[t].Use {
		l.Shared[s] -= u * int64(n)
	}
}
