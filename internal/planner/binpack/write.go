package binpack

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
)

// writer turns a packing back into the caller's classes and bin types.
type writer struct {
	p    *Problem
	c    *reduced.Problem
	best *reduced.Packing
	// next is, by merged class, the caller's class that is being served.
	next []cursor
	// used is, by type, how many of its fixed bins have been given out.
	used []int
}

// cursor is a place in class.orig, and how many items of that class are still to
// be placed.
type cursor struct{ at, left int }

func newWriter(p *Problem, best *reduced.Packing) *writer {
	c := best.Problem
	w := &writer{p: p, c: c, best: best, next: make([]cursor, len(c.Classes)), used: make([]int, len(c.Types))}
	for i := range c.Classes {
		w.next[i] = cursor{0, p.Classes[c.Classes[i].Origins[0]].Count}
	}
	return w
}

// write adds the packing to s, whose Unplaced counts already what no bin can hold.
func (w *writer) write(s *Solution) {
	s.Cost = w.best.Cost
	for _, pt := range w.best.Patterns {
		for left := pt.Times; left > 0; {
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
func (w *writer) bins(pt *reduced.Pattern, left int) Packed {
	k, times := &w.c.Types[pt.Type], left
	for _, it := range pt.Items {
		if n := int(it.Count); w.next[it.Class].left < n*times {
			times = max(1, w.next[it.Class].left/n)
		}
	}
	b := Packed{Type: k.Origins[0], Counts: make([]ClassCount, 0, len(pt.Items))}
	if k.Fixed {
		times = 1
		b.Type = k.Origins[w.used[pt.Type]]
		w.used[pt.Type]++
	}
	b.Times = times
	for _, it := range pt.Items {
		before := len(b.Counts)
		b.Counts = w.serve(it.Class, int(it.Count)*times, b.Counts)
		for j := before; times > 1 && j < len(b.Counts); j++ {
			b.Counts[j].Count /= times
		}
	}
	slices.SortFunc(b.Counts, func(a, b ClassCount) int { return cmp.Compare(a.Class, b.Class) })
	return b
}

// serve appends n items of merged class i in terms of the caller's classes.
func (w *writer) serve(i int32, n int, out []ClassCount) []ClassCount {
	cl, cur := &w.c.Classes[i], &w.next[i]
	for n > 0 {
		k := min(n, cur.left)
		out = append(out, ClassCount{cl.Origins[cur.at], k})
		cur.left -= k
		n -= k
		if cur.left == 0 && cur.at+1 < len(cl.Origins) {
			cur.at++
			cur.left = w.p.Classes[cl.Origins[cur.at]].Count
		}
	}
	return out
}

// leaveOut counts what the packing leaves out, of merged classes the last first.
func (w *writer) leaveOut(s *Solution) {
	for i := range w.c.Classes {
		cl := &w.c.Classes[i]
		left := w.best.Remaining[i]
		for j := len(cl.Origins) - 1; j >= 0 && left > 0; j-- {
			n := min(left, w.p.Classes[cl.Origins[j]].Count)
			s.Unplaced[cl.Origins[j]] += n
			left -= n
		}
	}
}
