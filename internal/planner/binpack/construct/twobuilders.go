package construct

import (
	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/concurrent"
)

// A first packing is made by two workers where each has at least so many classes, of so
// few items on average that a bin is hardly ever bought twice.
const (
	classesPerWorker = 128
	itemsPerClass    = 4
)

// group is a rule by which items cannot share bins at will.
type group struct {
	sig, conflict, perBin int
	everywhere            uint64 // the dimensions of which all bins have the same
}

// groupOf is the group of a class.
func groupOf(c *reduced.Problem, i int32) group {
	cl := &c.Classes[i]
	gr := group{sig: cl.Signature, perBin: cl.PerBin, conflict: -1}
	if len(cl.Conflicts) > 0 {
		gr.conflict = int(cl.Conflicts[0])
	}
	for d, v := range cl.Size {
		if v > 0 && !c.Varies[d] {
			gr.everywhere |= 1 << min(d, 63)
		}
	}
	return gr
}

// partition gives each worker half of the classes, and as many items of every group, of
// which each is worth about the same.
func partition(c *reduced.Problem, rem []int, value []float64) (mine, theirs *reduced.Packing) {
	mine, theirs = c.NewPacking(), c.NewPacking()
	clear(mine.Remaining)
	clear(theirs.Remaining)
	order := make([]int32, len(rem))
	for i := range order {
		order[i] = int32(i)
	}
	reduced.SortBy(order, func(i int32) float64 { return -value[i] })
	more := map[group]int{} // by how many items mine are more
	for _, i := range order {
		gr := groupOf(c, i)
		if more[gr] <= 0 {
			mine.Remaining[i] = rem[i]
			more[gr] += rem[i]
		} else {
			theirs.Remaining[i] = rem[i]
			more[gr] -= rem[i]
		}
	}
	return mine, theirs
}

// BuildInParallel is a first build by two workers, each with half of the classes. As every bin
// has half as many to choose from, each takes less than half as long.
func (g *Builder) BuildInParallel(p *reduced.Packing, r Rule) {
	if !g.c.Unlimited() || len(p.Remaining) < 2*classesPerWorker || p.Left() > itemsPerClass*len(p.Remaining) {
		g.Build(p, r, nil)
		return
	}
	mine, theirs := partition(g.c, p.Remaining, g.Pricer.Now.Value)
	o := g.fork()
	concurrent.Both(func() { g.Build(mine, r, nil) }, func() { o.Build(theirs, r, nil) })
	p.Merge(mine, theirs)
	for i := range p.Remaining {
		p.Remaining[i] = mine.Remaining[i] + theirs.Remaining[i]
	}
	g.steps += o.work()
}
