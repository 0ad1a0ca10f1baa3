package decompose

import (
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// From is from how many offerings of the NodePools in use on, each counted once for each of
// them and for each value of a label that one leaves open, problems are divided: some 30
// NodePools that buy all of a region.
const From = 1 << 17

// Part is a subproblem.
type Part struct {
	Problem *model.Problem
	// pools, nodes and classes are its NodePools, nodes and classes by index in the whole.
	pools, nodes, classes []int
}

// Split divides a problem, or returns nil where that is of no use: the NodePools that its
// pods may use buy fewer offerings than so many (see [From]), or all pods depend on each other.
// It follows from the problem alone.
//
// Parts share quotas, reservations, limits of NodePools and the time that a plan may take. Each
// is stated with all of what is shared ([Suffices]), and may take a share of the budget, by its
// pods but no less than leastShare. NodePools and nodes that no class can use are in the first part.
func Split(p *model.Problem, from int) []Part {
	if len(p.Classes) < 2 {
		return nil
	}
	open := newOpenLabels(p)
	if offerings(p, allOf(len(p.Pools)), open) < from {
		return nil
	}
	parts := divide(p, newRelations(p, open), from)
	if len(parts) == 0 {
		return nil
	}
	shapes, daemons, before := newShapes(p), daemonsOf(p), time.Duration(0)
	for i := range parts {
		before += parts[i].state(p, shapes, before)
		for n, pool := range parts[i].pools {
			parts[i].Problem.Pools[n].Daemons = daemons[pool]
		}
	}
	return parts
}

// divide are the parts of a problem, not stated yet, or nil where there is one.
func divide(p *model.Problem, r *relations, from int) []Part {
	var parts []Part
	var homeless Part // pods that no NodePool admits are explained beside others
	used := 0
	for _, g := range r.groups() {
		if len(g.pools) == 0 {
			homeless.classes, homeless.nodes = append(homeless.classes, g.classes...), append(homeless.nodes, g.nodes...)
			continue
		}
		parts = append(parts, Part{pools: g.pools, nodes: g.nodes, classes: g.classes})
		used += offerings(p, g.pools, nil)
	}
	if len(parts) < 2 || used < from {
		return nil
	}
	first := &parts[0]
	first.classes, first.nodes = append(first.classes, homeless.classes...), append(first.nodes, homeless.nodes...)
	addUnused(p, first, parts)
	return parts
}

func allOf(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// offerings is how many offerings the NodePools have, each counted once for each value of their
// open labels, unless these are nil.
func offerings(p *model.Problem, pools []int, open *openLabels) int {
	of := make([]int, len(p.Catalogs))
	for c := range p.Catalogs {
		for t := range p.Catalogs[c].InstanceTypes {
			of[c] += len(p.Catalogs[c].InstanceTypes[t].Offerings)
		}
	}
	n := 0
	for _, i := range pools {
		c := p.Pools[i].Catalog
		if c < 0 || c >= len(of) {
			continue
		}
		ways := 1
		if open != nil {
			ways = open.values[i]
		}
		n += of[c] * ways
	}
	return n
}

// addUnused adds to a part the NodePools and nodes that are in none.
func addUnused(p *model.Problem, to *Part, parts []Part) {
	pools, nodes := make([]bool, len(p.Pools)), make([]bool, len(p.Nodes))
	for _, part := range parts {
		for _, i := range part.pools {
			pools[i] = true
		}
		for _, i := range part.nodes {
			nodes[i] = true
		}
	}
	for i, used := range pools {
		if !used {
			to.pools = append(to.pools, i)
		}
	}
	for i, used := range nodes {
		if !used {
			to.nodes = append(to.nodes, i)
		}
	}
}

// state states the part and returns its time. Where a clock is read, which runs on from part
// to part, its budget is that of the parts before it, too.
func (t *Part) state(p *model.Problem, shapes *shapes, before time.Duration) time.Duration {
	slices.Sort(t.pools)
	slices.Sort(t.classes)
	own := *p
	own.Pools, own.Classes = chosen(p.Pools, t.pools), chosen(p.Classes, t.classes)
	t.nodes = append(t.nodes, shapes.nodesOf(own.Classes)...)
	slices.Sort(t.nodes)
	t.nodes = slices.Compact(t.nodes)
	own.Nodes = chosen(p.Nodes, t.nodes)
	took := share(&p.Policy, own.PodCount(), p.PodCount(), leastShare)
	own.Policy.Budget = took
	if p.Policy.Elapsed != nil || p.Policy.Replay != nil {
		own.Policy.Budget += before
	}
	t.Problem = &own
	return took
}

func chosen[V any](all []V, which []int) []V {
	out := make([]V, len(which))
	for i, n := range which {
		out[i] = all[n]
	}
	return out
}

// leastShare is the least share of the budget that a part may take, so that small problems are
// not planned worse because others wait beside them. Many parts may together take more than
// the budget of the whole.
const leastShare = 0.04

// share is the time of a part with so many of all, at least a share of the budget.
func share(policy *model.Policy, own, all int, least float64) time.Duration {
	if policy.Budget <= 0 || all == 0 {
		return 0
	}
	return time.Duration(float64(policy.Budget) * max(least, float64(own)/float64(all)))
}
