package binpack

import (
	"cmp"
	"slices"
)

// writer turns a packing back into the caller's classes and bin types.
type writer struct {
	p    *Problem
	c    *core
	best *packing
	// next is, by merged class, the caller's class that is being served.
	next []cursor
	// used is, by type, how many of its fixed bins have been given out.
	used []int
}

// cursor is a place in class.orig, and how many items of that class are still to
// be placed.
type cursor struct{ at, left int }

func newWriter(p *Problem, best *packing) *writer {
	c := best.c
	w := &writer{p: p, c: c, best: best, next: make([]cursor, len(c.classes)), used: make([]int, len(c.kinds))}
	for i := range c.classes {
		w.next[i] = cursor{0, p.Classes[c.classes[i].orig[0]].Count}
	}
	return w
}

// write adds the packing to s, whose Unplaced counts already what no bin can hold.
func (w *writer) write(s *Solution) {
	s.Cost = w.best.cost
	for _, pt := range w.best.patterns {
		for left := pt.times; left > 0; {
			b := w.bins(&pt, left)
			s.Bins = append(s.Bins, b)
			left -= b.Times
		}
	}
	w.leaveOut(s)
	slices.SortStableFunc(s.Bins, func(a, b Packed) int {
		fa, fb := w.p.Bins[a.Type].Fixed, w.p.Bins[b.Type].Fixed
		if fa != fb {
			if fa {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Type, b.Type)
	})
}

// bins are up to left bins of a pattern that hold the same of the caller's
// classes; one bin may hold several classes that were merged.
func (w *writer) bins(pt *pattern, left int) Packed {
	k, times := &w.c.kinds[pt.kind], left
	for _, it := range pt.items {
		if n := int(it.n); w.next[it.class].left < n*times {
			times = max(1, w.next[it.class].left/n)
		}
	}
	b := Packed{Type: k.orig[0], Counts: make([]ClassCount, 0, len(pt.items))}
	if k.fixed {
		times = 1
		b.Type = k.orig[w.used[pt.kind]]
		w.used[pt.kind]++
	}
	b.Times = times
	for _, it := range pt.items {
		before := len(b.Counts)
		b.Counts = w.serve(it.class, int(it.n)*times, b.Counts)
		for j := before; times > 1 && j < len(b.Counts); j++ {
			b.Counts[j].Count /= times
		}
	}
	slices.SortFunc(b.Counts, func(a, b ClassCount) int { return cmp.Compare(a.Class, b.Class) })
	return b
}

// serve appends n items of merged class i in terms of the caller's classes.
func (w *writer) serve(i int32, n int, out []ClassCount) []ClassCount {
	cl, cur := &w.c.classes[i], &w.next[i]
	for n > 0 {
		k := min(n, cur.left)
		out = append(out, ClassCount{cl.orig[cur.at], k})
		cur.left -= k
		n -= k
		if cur.left == 0 && cur.at+1 < len(cl.orig) {
			cur.at++
			cur.left = w.p.Classes[cl.orig[cur.at]].Count
		}
	}
	return out
}

// leaveOut counts what the packing leaves out, of merged classes the last first.
func (w *writer) leaveOut(s *Solution) {
	for i := range w.c.classes {
		cl := &w.c.classes[i]
		left := w.best.rem[i]
		for j := len(cl.orig) - 1; j >= 0 && left > 0; j-- {
			n := min(left, w.p.Classes[cl.orig[j]].Count)
			s.Unplaced[cl.orig[j]] += n
			left -= n
		}
	}
}
