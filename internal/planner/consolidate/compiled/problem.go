// Package compiled is the immutable form of a [model.DisruptionProblem] in which
// consolidation computes: pod classes, nodes and node options as vectors over the
// dimensions in use, with the shadow price of each dimension.
//
// [Compile] makes a [Problem]. Nothing changes it afterwards, so any number of
// states of the search share one. Its vectors are projections of those of
// [feasible.Space]: they keep only the dimensions in which some pod takes something.
//
// See docs/planner.md, section "Consolidation".
package compiled

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// Problem is a disruption problem, compiled.
type Problem struct {
	// Input is what was compiled.
	Input *model.DisruptionProblem
	// Planning is Input.Problem with the movable classes behind its own. Class
	// indices of this package and of all that build on it count in its Classes.
	Planning *model.Problem
	// FirstMovable is the index of the first movable class: class c with
	// c >= FirstMovable is Input.Movable[c-FirstMovable], the others are pending.
	FirstMovable int
	// Prepared is Planning as the planner prepared it.
	Prepared *planner.Prepared
	Space    *feasible.Space
	// Classes are parallel to Planning.Classes.
	Classes []Class
	// Levels is the number of preference levels of all classes together.
	Levels int32
	// Nodes are parallel to Planning.Nodes.
	Nodes []Node
	// Options are the node options worth buying, by ascending price. Behind them
	// may be those that WithOptions has added.
	Options []NodeOption
	// Permitted says which of the former are for which class.
	Permitted Permitted
	// Rank is the position of each class in the order of placement: classes with
	// topology rules, host ports or shared disks first, then by descending Value.
	Rank []int32
	// EvictionPrice is what the eviction of one unit of eviction cost must save, in
	// Money per hour.
	EvictionPrice float64
	// NeedsVariety says that some NodePool has minValues which bind.
	NeedsVariety bool
	// Pools are parallel to Input.Policies.
	Pools []PoolTotals
	// dims are the dimensions of the vectors of this package.
	dims dimensions
}

// dimensions are those of Space in which some pod takes something.
type dimensions struct {
	// all are their numbers in Space, ascending.
	all []int
	// shadow is the shadow price of a unit of each of them.
	shadow shadowPrices
}

// Permitted are the options, by index in [Problem.Options], on which pods may be.
type Permitted struct {
	// Listed is how many options they cover: those that WithOptions has added are behind.
	Listed int
	// ByClass are the sets by class. Classes with the same levels share one.
	ByClass []bitset.Set
	// ByTier are, by class, the parts of its set by the weight of the NodePools, the heaviest
	// first. It is nil where all NodePools have the same weight.
	ByTier [][]bitset.Set
}

// Compile compiles a disruption problem, which it does not change. Classes that are
// invalid have no levels and no rank of their own. Catalogs may be nil, or those that the
// problem shares with others.
func Compile(f *model.DisruptionProblem, catalogs *feasible.Catalogs) *Problem {
	p := &Problem{Input: f, FirstMovable: len(f.Problem.Classes), EvictionPrice: evictionPrice(&f.Terms)}
	pools := poolsOfPolicies(f)
	p.Planning = planningProblem(f, pools)
	p.Prepared = planner.Prepare(p.Planning, catalogs)
	p.Space = p.Prepared.Space
	p.findDims()
	for i := range p.Planning.Classes {
		c := p.compileClass(i)
		c.FirstLevel = p.Levels
		p.Levels += int32(len(c.Levels))
		p.Classes = append(p.Classes, c)
	}
	p.compileOptions()
	p.findPermitted()
	p.findShadowPrices()
	p.rankClasses()
	now := p.Prepared.Topology.NewCounts(nil)
	for n := range p.Planning.Nodes {
		p.Nodes = append(p.Nodes, p.compileNode(n, now))
		if n < len(f.Usages) && returns(&f.Usages[n], pools) {
			p.Nodes[n].Returns = feasible.Returns(p.Space, pools[f.Usages[n].Policy], f.Usages[n].Held)
		}
	}
	p.sumPools()
	p.findSpotPools()
	return p
}

// evictionPrice is what one unit of eviction cost must save per hour: its price,
// earned back within Payback. Without a payback time no saving is enough.
func evictionPrice(t *model.ConsolidationTerms) float64 {
	switch {
	case t.EvictionPrice <= 0:
		return 0
	case t.Payback <= 0:
		return math.MaxInt32 * 1e6
	}
	return float64(t.EvictionPrice) / t.Payback.Hours()
}

// planningProblem adds the movable classes to the planning problem, and to NodePools what their
// nodes give back of the limits. Static pools buy nothing: their number of nodes is decided
// elsewhere.
func planningProblem(f *model.DisruptionProblem, pools []int) *model.Problem {
	p := *f.Problem
	p.Classes = slices.Clone(p.Classes)
	for i := range f.Movable {
		p.Classes = append(p.Classes, f.Movable[i].PodClass)
	}
	static := map[string]bool{}
	for i := range f.Policies {
		static[f.Policies[i].Pool] = f.Policies[i].Static
	}
	p.Pools = slices.Clone(p.Pools)
	for i := range p.Pools {
		if static[p.Pools[i].Name] {
			p.Pools[i].NodeLimit = 0
		}
	}
	for i := range f.Usages {
		if returns(&f.Usages[i], pools) {
			pool := &p.Pools[pools[f.Usages[i].Policy]]
			pool.Returnable, pool.ReturnableNodes = pool.Returnable.Add(f.Usages[i].Held), pool.ReturnableNodes+1
		}
	}
	for i := range p.Pools {
		if p.Pools[i].ReturnableNodes > 0 {
			clampUsage(&p.Pools[i])
		}
	}
	return &p
}

// clampUsage takes a NodePool above its limits as one at its limits, so that its nodes can be replaced
// by machines that are no larger: it would never be upgraded otherwise. A limit of 0 is left alone:
// it closes the NodePool (nap disable).
func clampUsage(pool *model.Pool) {
	pool.Usage = slices.Clone(pool.Usage)
	for _, l := range pool.Limits {
		if l.Value > 0 && pool.Usage.Get(l.Axis) > l.Value {
			pool.Usage[l.Axis] = l.Value
		}
	}
	if pool.NodeLimit > 0 {
		pool.Nodes = min(pool.Nodes, pool.NodeLimit)
	}
}

func (p *Problem) findDims() {
	used := make([]bool, p.Space.Dims.Count)
	for i := range p.Prepared.Classes {
		for d, v := range p.Prepared.Classes[i].Own {
			used[d] = used[d] || v > 0
		}
		for _, v := range p.Prepared.Classes[i].Shared {
			used[p.Space.Dims.OfDriver(v.Driver)] = true
		}
	}
	for d, u := range used {
		if u {
			p.dims.all = append(p.dims.all, d)
		}
	}
}

// Dims is the length of all vectors of this package.
func (p *Problem) Dims() int { return len(p.dims.all) }

// Project is a vector of Space in the dimensions of this package.
func (p *Problem) Project(v []int64) []int64 {
	out := make([]int64, len(p.dims.all))
	for i, d := range p.dims.all {
		out[i] = v[d]
	}
	return out
}

func (p *Problem) compileOptions() {
	for o := range p.Prepared.Menu.All {
		if p.Space.Supply.Available.Has(o) {
			p.Options = append(p.Options, p.compileOption(o))
		}
	}
	slices.SortStableFunc(p.Options, func(a, b NodeOption) int { return cmp.Compare(a.Price, b.Price) })
	for i := range p.Planning.Pools {
		for _, r := range p.Planning.Pools[i].Requirements {
			p.NeedsVariety = p.NeedsVariety || r.MinValues > 0 && !p.Planning.Policy.RelaxMinValues
		}
	}
}

// findPermitted says which options are for which class.
func (p *Problem) findPermitted() {
	p.Permitted.Listed = len(p.Options)
	at := make([]int32, len(p.Space.Options)) // the index in Options and 1, 0 for none
	for i := range p.Options {
		at[p.Options[i].Option] = int32(i + 1)
	}
	known, tiers := map[string]bitset.Set{}, map[string][]bitset.Set{}
	for i := range p.Classes {
		var levels []byte
		for _, l := range p.Classes[i].Levels {
			if len(l.Options) > 0 {
				levels = fmt.Appendf(levels, "%p", &l.Options[0])
			}
		}
		set, found := known[string(levels)]
		if !found {
			set = bitset.New(len(p.Options))
			for _, l := range p.Classes[i].Levels {
				for o := range l.Options.All {
					if at[o] > 0 {
						set.Add(int(at[o] - 1))
					}
				}
			}
			known[string(levels)], tiers[string(levels)] = set, p.byTier(set)
		}
		p.Permitted.ByClass = append(p.Permitted.ByClass, set)
		if p.Space.Tiers > 1 {
			p.Permitted.ByTier = append(p.Permitted.ByTier, tiers[string(levels)])
		}
	}
}

// byTier divides a set of node options by the weight of their NodePools, the heaviest first;
// nil where all weigh the same.
func (p *Problem) byTier(set bitset.Set) []bitset.Set {
	if p.Space.Tiers == 1 {
		return nil
	}
	out := make([]bitset.Set, p.Space.Tiers)
	for t := range out {
		out[t] = bitset.New(len(p.Options))
	}
	for at := range set.All {
		out[p.Tier(at)].Add(at)
	}
	return out
}

// Tier numbers the weights of the NodePools of node options from the heaviest, 0.
func (p *Problem) Tier(at int) int { return p.Space.PoolOf(p.Options[at].Option).Tier }

func (p *Problem) compileOption(o int) NodeOption {
	_, offering := p.Space.Offering(o)
	return NodeOption{Option: o, Price: p.Space.Options[o].Price, Net: p.Project(p.Space.Net(o)), Spot: offering.CapacityType == model.Spot}
}

// WithOptions is the problem with more node options, by their indices in
// Space.Options, behind its own. They have no Value.
func (p *Problem) WithOptions(options []int) *Problem {
	out := *p
	out.Options = slices.Clip(out.Options)
	for _, o := range options {
		out.Options = append(out.Options, p.compileOption(o))
	}
	return &out
}

func (p *Problem) rankClasses() {
	var order []int32
	for i := range p.Classes {
		if !p.Classes[i].Invalid {
			order = append(order, int32(i))
		}
	}
	constrained := func(c *Class) int {
		if c.Plain {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(order, func(x, y int32) int {
		a, b := &p.Classes[x], &p.Classes[y]
		return cmp.Or(constrained(a)-constrained(b), cmp.Compare(b.Value, a.Value), int(x-y))
	})
	p.Rank = make([]int32, len(p.Classes))
	for at, class := range order {
		p.Rank[class] = int32(at)
	}
}

// compileClass compiles class i, all but its FirstLevel and Value.
func (p *Problem) compileClass(i int) Class {
	prepared, spec := &p.Prepared.Classes[i], &p.Planning.Classes[i]
	c := Class{Levels: prepared.Levels, Shared: prepared.Shared, HostPorts: spec.HostPorts, Invalid: prepared.Invalid != ""}
	if c.Invalid {
		return c
	}
	c.Size = p.Project(prepared.Own)
	for _, v := range c.Shared {
		c.SharedDim = append(c.SharedDim, slices.Index(p.dims.all, p.Space.Dims.OfDriver(v.Driver)))
	}
	c.Plain = len(c.HostPorts) == 0 && len(c.Shared) == 0
	for l := range c.Levels {
		c.Plain = c.Plain && c.Levels[l].Rules.Free()
	}
	if m := i - p.FirstMovable; m >= 0 {
		c.EvictionUnits = max(0, p.Input.Movable[m].EvictionCost)
	}
	return c
}

// compileNode compiles node n, with the counts of the pods that run.
func (p *Problem) compileNode(n int, now *topology.Counts) Node {
	node := &p.Planning.Nodes[n]
	out := Node{Price: node.Price, Policy: -1, Spot: node.Labels[model.LabelCapacityType] == string(model.Spot)}
	if n >= len(p.Input.Usages) {
		return out
	}
	usage := &p.Input.Usages[n]
	out.Policy = usage.Policy
	staying := p.stayingOn(usage)
	for _, cp := range usage.Pods {
		if len(cp.Pods) == 0 {
			continue
		}
		class, moving := p.FirstMovable+cp.Class, staying.without(cp)
		if len(moving.Pods) > 0 {
			out.Pods = append(out.Pods, PodGroup{int32(class), int32(len(moving.Pods)), p.levelNow(class, n, now)})
			out.Moving = append(out.Moving, moving)
		}
		out.Evictions += len(cp.Pods)
		out.Staying += len(cp.Pods) - len(moving.Pods)
		out.EvictionUnits += float64(len(cp.Pods)) * p.Classes[class].EvictionUnits
		out.draw(p.Input.Movable[cp.Class].Budgets, len(cp.Pods))
	}
	for i := range usage.DaemonPods {
		out.draw(usage.DaemonPods[i].Budgets, 1)
	}
	if out.Evictions > 0 {
		out.EvictionCost = p.EvictionPrice*out.EvictionUnits + float64(usage.ExpectedSaving)
	}
	return out
}

// poolsOfPolicies is, by index in Policies, the index of the NodePool in Pools; -1 where nothing is
// bought for its nodes.
func poolsOfPolicies(f *model.DisruptionProblem) []int {
	index := make(map[string]int, len(f.Problem.Pools))
	for i := range f.Problem.Pools {
		index[f.Problem.Pools[i].Name] = i
	}
	out := make([]int, len(f.Policies))
	for i := range f.Policies {
		at, known := index[f.Policies[i].Pool]
		if out[i] = at; !known || f.Policies[i].Static {
			out[i] = -1
		}
	}
	return out
}

// returns reports whether limits get something back when a node is removed; pools are those of its
// policies.
func returns(usage *model.NodeUsage, pools []int) bool {
	return usage.Held != nil && usage.Policy >= 0 && pools[usage.Policy] >= 0
}

// levelNow is the first level of a class at which a pod of it may be where it is, on a node
// with the others that run; the last level where there is none. Where required rules of
// topology do not hold there by now, none is looked at.
func (p *Problem) levelNow(class, node int, now *topology.Counts) int8 {
	c := &p.Classes[class]
	last := int8(max(0, len(c.Levels)-1))
	if last == 0 {
		return 0
	}
	at := topology.Place{ID: node, Node: node, Option: -1}
	now.Add(class, at, -1)
	defer now.Add(class, at, 1)
	holds := func(l int8) bool { return now.Room(c.Levels[l].Rules, at, topology.Everything) > 0 }
	broken := !holds(last)
	for l := range last {
		if c.Levels[l].Nodes.Has(node) && (broken || holds(l)) {
			return l
		}
	}
	return last
}

// findSpotPools finds the SpotPools of the classes which have pods on spot nodes.
func (p *Problem) findSpotPools() {
	for n := range p.Nodes {
		if !p.Nodes[n].Spot {
			continue
		}
		for _, g := range p.Nodes[n].Pods {
			c := &p.Classes[g.Class]
			if c.SpotPools != nil || c.Invalid {
				continue
			}
			c.SpotPools = bitset.New(len(p.Planning.Pools))
			for o := range p.Space.Allowed(feasible.ForClass, p.Space.Pod(&p.Planning.Classes[g.Class])).All {
				if _, offering := p.Space.Offering(o); offering.CapacityType == model.Spot {
					c.SpotPools.Add(int(p.Space.Options[o].Pool))
				}
			}
		}
	}
}

// StaysSpot reports whether pods of a class may go to no new node that an offering makes in a
// NodePool, an index into Planning.Pools, where only spot nodes are removed: the offering is an
// on-demand one, and pods and NodePool allow spot. What is paid for in advance is open to all.
func (p *Problem) StaysSpot(class int32, pool int, offering *model.Offering) bool {
	return offering.CapacityType == model.OnDemand && offering.Uncovered == 0 && p.Classes[class].SpotPools.Has(pool)
}

func (p *Problem) sumPools() {
	p.Pools = make([]PoolTotals, len(p.Input.Policies))
	for n := range p.Nodes {
		if node := &p.Nodes[n]; node.Policy >= 0 {
			p.Pools[node.Policy].Price += node.Price
			p.Pools[node.Policy].Disruption += 1 + node.EvictionUnits
		}
	}
}
