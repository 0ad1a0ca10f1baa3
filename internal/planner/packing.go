package planner

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/binpack"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// packing is the part of a problem that the packer solves, with the way back.
type packing struct {
	problem binpack.Problem
	// options are the space's options behind the bin types.
	options []int
	// bin is, by option, the bin type, or -1; sets are the sets of bin types by
	// where the sets of options are, which classes share.
	bin  []int32
	sets map[*uint64]binpack.Bitset
	// cells is storage for vectors yet to be laid out, each with room for so many
	// crowds.
	cells  []int64
	crowds int
}

// number gets ready for bin types of so many options, and for crowds.
func (k *packing) number(options, crowds int) {
	k.bin, k.sets, k.crowds = make([]int32, options), map[*uint64]binpack.Bitset{}, crowds
	for o := range k.bin {
		k.bin[o] = -1
	}
}

// binsFor are the bin types of those of the options that have one.
func (k *packing) binsFor(options feasible.Set) binpack.Bitset {
	if len(options) == 0 {
		return nil
	}
	set, ok := k.sets[&options[0]]
	if !ok {
		set = binpack.NewBitset(len(k.problem.Bins))
		for o := range options.All {
			if k.bin[o] >= 0 {
				set.Set(int(k.bin[o]))
			}
		}
		k.sets[&options[0]] = set
	}
	return set
}

// newPacking lays the demands out for the packer. With lines, everything that
// runs out is a shared limit; without, only what the demands may well exhaust.
func (b *builder) newPacking(rules *hostRules, dims []int, policy *model.Policy, free bool) *packing {
	k := &packing{}
	used := feasible.NewSet(len(b.space.Options))
	for i := range b.demands {
		used.Or(b.demands[i].options)
	}
	used.And(b.reduced)
	k.number(len(b.space.Options), len(rules.crowds))
	k.options, k.problem.Bins = make([]int, 0, used.Count()), make([]binpack.Bin, 0, used.Count())
	k.problem.Classes = make([]binpack.Class, 0, len(b.demands))
	for o := range used.All {
		k.bin[o] = int32(len(k.options))
		k.options = append(k.options, o)
		option := &b.space.Options[o]
		k.problem.Bins = append(k.problem.Bins, binpack.Bin{Capacity: k.project(option.Net, dims), Cost: int64(option.Price), Max: -1})
	}
	for i := range b.demands {
		d := &b.demands[i]
		c := &b.classes[d.class]
		k.problem.Classes = append(k.problem.Classes, binpack.Class{
			Size: k.project(c.Size(b.space), dims), Count: d.count, Bins: k.binsFor(d.options), Priority: c.Priority,
			PerBin: rules.perBin[i], Conflicts: rules.conflicts[i],
		})
	}
	k.problem.Dims = len(dims)
	k.addCrowds(rules.crowds)
	k.problem.Seed = policy.Seed
	k.problem.Elapsed = policy.Elapsed
	k.problem.Budget, k.problem.Unproven = policy.Budget*9/10, !free
	return k
}

// addCrowds appends a dimension per crowd.
func (k *packing) addCrowds(crowds []crowd) {
	for i := range crowds {
		for b := range k.problem.Bins {
			k.problem.Bins[b].Capacity = append(k.problem.Bins[b].Capacity, int64(crowds[i].capacity))
		}
		for c := range k.problem.Classes {
			k.problem.Classes[c].Size = append(k.problem.Classes[c].Size, 0)
		}
		for _, c := range crowds[i].members {
			k.problem.Classes[c].Size[k.problem.Dims] = 1
		}
		k.problem.Dims++
	}
}

// cellsAtOnce is for how many vectors storage is made at a time.
const cellsAtOnce = 256

// project lays a vector out along the dimensions that matter, with room for
// crowds.
func (k *packing) project(v []int64, dims []int) []int64 {
	n := len(dims) + k.crowds
	if len(k.cells) < n {
		k.cells = make([]int64, cellsAtOnce*n)
	}
	out := k.cells[:len(dims):n]
	k.cells = k.cells[n:]
	for i, d := range dims {
		out[i] = v[d]
	}
	return out
}

// addLines adds shared limits for the lines that the filter selects. The bin
// types after those of the options draw on nothing.
func (k *packing) addLines(s *feasible.Space, ledger *feasible.Ledger, include func(line int) bool) {
	index := map[int]int{}
	for i, o := range k.options {
		for _, u := range s.Options[o].Uses {
			if !include(u.Line) {
				continue
			}
			at, ok := index[u.Line]
			if !ok {
				at = len(k.problem.Shared)
				index[u.Line] = at
				k.problem.Shared = append(k.problem.Shared, binpack.Shared{Left: ledger.Left(u.Line), Use: make([]int64, len(k.options))})
			}
			k.problem.Shared[at].Use[i] += u.Amount
		}
	}
}

// packResult is what became of the demands.
type packResult struct {
	first, bound model.Money
	rounds       int
	// unplaced pods found no machine; entangled, when other pods' topology had
	// counted on some of them.
	unplaced  int
	entangled bool
	// free says that the packer's problem was no stricter than the rules, so that
	// its bound is the plan's.
	free bool
}

// pack chooses machines for the demands and puts their pods on them. Pods that
// found no machine are counted in left again.
func (b *builder) pack(policy *model.Policy) packResult {
	rules := b.hostRules()
	free := rules.exact && b.unrestricted()
	if !free && !b.rehearsal && (policy.Budget > 0 || b.variant == (variant{})) {
		b.proveAhead(policy)
	}
	k, sol := b.solveWithin(rules, policy, free)
	res := packResult{first: model.Money(sol.FirstCost), bound: model.Money(sol.LowerBound), rounds: sol.Rounds, free: free}
	for i := range b.demands {
		d := &b.demands[i]
		if !d.floating {
			b.counts.Add(d.class, d.rep, -d.count)
		}
		b.left[d.class] += sol.Unplaced[i]
		res.unplaced += sol.Unplaced[i]
		if sol.Unplaced[i] > 0 && len(b.keysOf(d.class, d.level)) > 0 {
			res.entangled = true
		}
	}
	for _, packed := range sol.Bins {
		for range packed.Times {
			if !b.build(k.options[packed.Type], packed.Counts) {
				for _, cc := range packed.Counts {
					b.left[b.demands[cc.Class].class] += cc.Count
					res.unplaced += cc.Count
				}
				res.entangled = true
			}
		}
	}
	b.steps += sol.Steps
	b.demands = nil
	return res
}

// unrestricted reports whether the demands are all there is and none of them is
// tied to a domain that the builder chose.
func (b *builder) unrestricted() bool {
	if len(b.bins) > 0 || b.ruling.shut != nil {
		return false
	}
	for _, pl := range b.nodes {
		if len(pl.Pods) > 0 {
			return false
		}
	}
	for i := range b.demands {
		d := &b.demands[i]
		if !d.floating || d.level != len(b.classes[d.class].Levels)-1 {
			return false
		}
	}
	return !b.inst.MinValues.Any()
}

// solveWithin packs, first as if nothing ran out but what is obviously short;
// when that exceeds a line, again with every line as a limit and with the
// options that are worth buying when those lines are scarce.
func (b *builder) solveWithin(rules *hostRules, policy *model.Policy, free bool) (*packing, *binpack.Solution) {
	dims := b.inst.UsedDims()
	k := b.newPacking(rules, dims, policy, free)
	total := 0
	for i := range k.problem.Classes {
		total += k.problem.Classes[i].Count
	}
	k.addLines(b.space, b.ledger, func(line int) bool {
		return b.ledger.Left(line) < int64(total) && b.space.Lines[line].Reason != model.ReasonLimit
	})
	if len(k.problem.Shared) > 0 {
		k.leaveTime(policy, free)
	}
	sol := binpack.Solve(&k.problem)
	scarce := b.exceeded(k, sol)
	if len(scarce) == 0 {
		return k, sol
	}
	b.reduced = b.inst.Undominated(scarce)
	k = b.newPacking(rules, dims, policy, free)
	k.addLines(b.space, b.ledger, func(int) bool { return true })
	k.leaveTime(policy, free)
	return k, binpack.Solve(&k.problem)
}

// leaveTime leaves time to prove a bound afterwards: where machines run out it is
// not known beforehand which pods it is to speak of.
func (k *packing) leaveTime(policy *model.Policy, free bool) {
	if !free {
		k.problem.Budget = policy.Budget * 3 / 4
	}
}

// exceeded lists the lines that the packing needs all of or more.
func (b *builder) exceeded(k *packing, sol *binpack.Solution) []int {
	use := make([]int64, len(b.space.Lines))
	for _, packed := range sol.Bins {
		for _, u := range b.space.Options[k.options[packed.Type]].Uses {
			use[u.Line] += u.Amount * int64(packed.Times)
		}
	}
	short := slices.ContainsFunc(sol.Unplaced, func(n int) bool { return n > 0 })
	var out []int
	for line, n := range use {
		if n > b.ledger.Left(line) || short && n > 0 {
			out = append(out, line)
		}
	}
	return out
}

// build buys one machine and puts pods of demands on it. It declines when the
// pods together leave too few offerings for the pool's minValues.
func (b *builder) build(option int, counts []binpack.ClassCount) bool {
	s := b.space
	pl, pool := b.empty(option), s.PoolOf(option)
	pl.Pods = make([]instance.PodCount, 0, len(counts))
	load := make([]int64, s.Dims)
	for _, cc := range counts {
		d := &b.demands[cc.Class]
		pl.Options.And(b.classes[d.class].Levels[d.level].Options)
		for dim, size := range b.classes[d.class].Size(s) {
			load[dim] += size * int64(cc.Count)
		}
	}
	if len(b.inst.MinValues.Of(pool.Index)) > 0 && !b.inst.MinValues.Met(pool.Index, b.inst.MinValues.Fixed(pl.Options, b.podsOf(counts), option), load) {
		return false
	}
	for _, cc := range counts {
		d := &b.demands[cc.Class]
		b.put(&b.classes[d.class], d.level, cc.Count, pl)
	}
	b.bins = append(b.bins, pl)
	b.ledger.Take(option, 1)
	return true
}

// empty is a machine that is yet to be bought, with nobody on it.
func (b *builder) empty(option int) *Place {
	s := b.space
	pl := &Place{
		Place: topology.Place{ID: len(s.Problem.Nodes) + len(b.bins), Node: -1, Option: option},
		Free:  slices.Clone(s.Options[option].Net),
		Ports: slices.Clone(s.DaemonSets[s.Options[option].Daemons].Ports),
	}
	pool := s.PoolOf(option)
	pl.Options = feasible.NewSet(len(s.Options))
	pl.Options.AddRange(pool.First, pool.End)
	if b.ruling.shut != nil {
		pl.Options.AndNot(b.ruling.shut)
	}
	return pl
}

// podsOf are the pods of a packed machine.
func (b *builder) podsOf(counts []binpack.ClassCount) []instance.PodCount {
	var out []instance.PodCount
	for _, cc := range counts {
		out = append(out, instance.PodCount{Class: b.demands[cc.Class].class, Level: b.demands[cc.Class].level, Count: cc.Count})
	}
	return out
}
