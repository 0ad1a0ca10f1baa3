package binpack

import "math"

// limits is what may still be bought.
type limits struct {
	kinds  []kind
	max    []int // by kind; -1 is no limit
	shared []int64
}

func (c *core) newLimits() *limits {
	l := &limits{kinds: c.kinds, max: make([]int, len(c.kinds)), shared: append([]int64(nil), c.shared...)}
	for i := range c.kinds {
		l.max[i] = c.kinds[i].max
	}
	return l
}

func (l *limits) copyFrom(o *limits) {
	copy(l.max, o.max)
	copy(l.shared, o.shared)
}

// room is how many more bins of kind t may be opened.
func (l *limits) room(t int32) int {
	n := l.max[t]
	if n < 0 {
		n = math.MaxInt32
	}
	for s, u := range l.kinds[t].use {
		if u > 0 {
			n = min(n, int(min(l.shared[s]/u, math.MaxInt32)))
		}
	}
	return max(0, n)
}

// open takes n bins of kind t; a negative n gives them back.
func (l *limits) open(t int32, n int) {
	if l.max[t] >= 0 {
		l.max[t] -= n
	}
	for s, u := range l.kinds[t].use {
		l.shared[s] -= u * int64(n)
	}
}
