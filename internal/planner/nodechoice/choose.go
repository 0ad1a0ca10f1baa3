package nodechoice

import (
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/binpack"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/construct"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
)

// Result is what became of the demands of a plan.
type Result struct {
	// First is the cost of the packer's first packing, and Bound its bound. Rounds is
	// how often it improved the packing.
	First, Bound model.Money
	Rounds       int
	// Unplaced is how many pods the packer found no node for.
	Unplaced int
	// Entangled says that the topology of other pods had counted on some of those, so
	// that the plan may break rules and must be dropped.
	Entangled bool
	// Exact says that the packer's problem was no stricter than the rules, so that its
	// bound is the plan's.
	Exact bool
}

// Construct lets the constructor place what existing nodes and rules on hosts decide,
// and leaves the choice of new nodes for the rest to the packer. If the packer's bound
// will not be the plan's, it calls prove, unless that is nil, with the number of pods of
// each class that are expected to have a place in the end; so a bound can be proven in
// another goroutine while nodes are chosen.
func Construct(c *construct.Constructor, policy *model.Policy, prove func(placed []int)) Result {
	return ConstructBy(c, Effort{Policy: policy, Searches: binpack.AllSearches}, prove)
}

// Effort is what the packer may spend.
type Effort struct {
	// Policy has the budget and the seed.
	Policy *model.Policy
	// Clock measures the budget; without one, steps do.
	Clock meter.Clock
	// Searches are those that the packer uses.
	Searches binpack.Searches
}

// clock is the one for the next packing. Packings without a budget read none, and are too
// many to be named in a record.
func (e *Effort) clock() meter.Clock {
	if e.Policy.Budget <= 0 {
		return meter.Clock{}
	}
	return e.Clock.Child("packing")
}

// ConstructBy is [Construct] with so much effort of the packer.
func ConstructBy(c *construct.Constructor, effort Effort, prove func(placed []int)) Result {
	ch := &chooser{c: c, in: c.State.Instance, demands: c.Collect(), effort: effort}
	ch.rules = newHostRules(ch.in, c.State.Domains.Order, ch.demands)
	ch.exact = ch.rules.exact && ch.unrestricted()
	if !ch.exact && prove != nil && len(c.Index.Worth()) > 0 {
		prove(c.State.PlacedCounts()) // stranded pods seldom find a place after the packer
	}
	res := ch.choose()
	c.PlaceAll()
	return res
}

// chooser has the packer choose new nodes for demands.
type chooser struct {
	c       *construct.Constructor
	in      *instance.Instance
	demands []construct.Demand
	rules   *hostRules
	effort  Effort
	// exact is [Result.Exact].
	exact bool
}

// unrestricted reports whether the demands are all there is and none of them is tied to
// a domain that the constructor chose.
func (ch *chooser) unrestricted() bool {
	s := ch.c.State
	if len(s.NewNodes) > 0 || s.Decision.Shut != nil {
		return false
	}
	for _, pl := range s.Nodes {
		if len(pl.Pods) > 0 {
			return false
		}
	}
	for i := range ch.demands {
		d := &ch.demands[i]
		if !d.Floating || d.Level != len(ch.in.Classes[d.Class].Levels)-1 {
			return false
		}
	}
	return !ch.in.MinValues.Any()
}

// choose buys new nodes for the demands and puts their pods on them. Pods that found no
// node are counted in Left again.
func (ch *chooser) choose() Result {
	s := ch.c.State
	chosen := ch.solve()
	k, sol := chosen.packing, chosen.sol
	res := Result{First: model.Money(sol.FirstCost), Bound: model.Money(sol.LowerBound), Rounds: sol.Rounds, Exact: ch.exact}
	for i := range ch.demands {
		d := &ch.demands[i]
		if !d.Floating {
			s.Domains.Counts.Add(d.Class, d.Rep, -d.Count)
		}
		s.Left[d.Class] += sol.Unplaced[i]
		res.Unplaced += sol.Unplaced[i]
		if sol.Unplaced[i] > 0 && len(s.Domains.Keys(d.Class, d.Level)) > 0 {
			res.Entangled = true
		}
	}
	for _, packed := range sol.Bins {
		for range packed.Times {
			if !ch.buy(k.options[packed.Type], packed.Counts) {
				for _, cc := range packed.Counts {
					s.Left[ch.demands[cc.Class].Class] += cc.Count
					res.Unplaced += cc.Count
				}
				res.Entangled = true
			}
		}
	}
	s.Steps += sol.Steps
	ch.c.Spend(sol.Steps)
	return res
}

// mostPasses is how often packings are made without time until none exceeds a line that is not
// known to be scarce.
const mostPasses = 4

// packed is a packing and its solution.
type packed struct {
	*packing
	sol *binpack.Solution
}

// solve packs as if only those lines of the ledger ran out that are scarce, which it finds by
// packings without time: a line is scarce once a packing exceeds it. Of options that scarce lines
// tell apart more are worth buying; it packs with and without these, since of more options the packer
// sometimes makes less. Only with them is the bound of a packing the plan's. Of all packings that
// exceed nothing the best stays.
func (ch *chooser) solve() packed {
	timed := ch.effort.Policy.Budget > 0
	if timed && !ch.mayRunOut() {
		return ch.limitedPacking(nil, ch.effort.Policy.Budget)
	}
	scarce, best := ch.findScarce()
	if best.sol == nil {
		return ch.withAllLines(scarce, best)
	}
	if len(scarce) == 0 {
		if timed {
			return ch.finish(scarce, best, ch.effort.Policy.Budget)
		}
		return best
	}
	exact := ch.exact
	ch.c.Undominate(nil)
	narrow := ch.limitedPacking(scarce, 0)
	if exceeded, _ := ch.usedUp(narrow, scarce); len(exceeded) > 0 {
		narrow = packed{}
	} else if timed { // half of the time is left for the other one
		narrow = ch.finish(scarce, narrow, ch.effort.Policy.Budget/2)
	}
	ch.c.Undominate(scarce)
	if timed {
		ch.exact = exact
		best = ch.finish(scarce, best, ch.effort.Policy.Budget)
	}
	if narrow.sol != nil && best.orBetter(narrow).sol == narrow.sol {
		ch.c.Undominate(nil)
		ch.exact = false
		return narrow
	}
	return best
}

// finish spends the time on a packing that scarce lines limit, and returns it or the one before.
func (ch *chooser) finish(scarce []int, before packed, budget time.Duration) packed {
	now := ch.limitedPacking(scarce, budget)
	if exceeded, _ := ch.usedUp(now, scarce); len(exceeded) > 0 {
		return ch.withAllLines(append(slices.Clip(scarce), exceeded...), before)
	}
	return before.orBetter(now)
}

// findScarce finds the lines that are scarce, and the best packing without time that they limit,
// which has no solution where each exceeds a line still. The options worth buying are those for them.
func (ch *chooser) findScarce() (scarce []int, best packed) {
	for range mostPasses {
		now := ch.limitedPacking(scarce, 0)
		exceeded, scant := ch.usedUp(now, scarce)
		if len(exceeded) == 0 {
			best = best.orBetter(now)
		}
		more := slices.Concat(exceeded, scant)
		if len(more) == 0 {
			break
		}
		scarce = append(scarce, more...)
		ch.c.Undominate(scarce)
	}
	return scarce, best
}

// withAllLines is a packing that all lines limit, or one that exceeds nothing where that is better.
func (ch *chooser) withAllLines(scarce []int, best packed) packed {
	ch.c.Undominate(scarce)
	k := ch.packing(ch.in.UsedDims())
	k.addLines(ch.in.Space, ch.c.State.Ledger, func(int) bool { return true })
	ch.leaveTime(k)
	ch.exact = false
	return best.orBetter(ch.pack(k))
}

// orBetter is the other packing where it places more, of the highest priority at which they differ,
// or costs less, and else this one. A packing without a solution is none.
func (p packed) orBetter(o packed) packed {
	if p.sol == nil {
		return o
	}
	var at *binpack.Class // the class of highest priority of which they place unlike many
	fewer := map[int32]int{}
	for i := range p.problem.Classes {
		class := &p.problem.Classes[i]
		fewer[class.Priority] += o.sol.Unplaced[i] - p.sol.Unplaced[i]
	}
	for i := range p.problem.Classes {
		if class := &p.problem.Classes[i]; fewer[class.Priority] != 0 && (at == nil || class.Priority > at.Priority) {
			at = class
		}
	}
	if at != nil && fewer[at.Priority] < 0 || at == nil && o.sol.Cost <= p.sol.Cost {
		return o
	}
	return p
}

// limitedPacking is a packing that the scarce lines and reservations limit, made with a budget.
func (ch *chooser) limitedPacking(scarce []int, budget time.Duration) packed {
	k := ch.packing(ch.in.UsedDims())
	lines := ch.in.Space.Supply.Lines
	k.addLines(ch.in.Space, ch.c.State.Ledger, func(line int) bool {
		return lines[line].Reason == model.ReasonReservation || slices.Contains(scarce, line)
	})
	if len(k.problem.Shared) > 0 {
		ch.leaveTime(k)
	}
	k.problem.Budget = min(k.problem.Budget, budget)
	return ch.pack(k)
}

// pack packs with the searches and the time that the packing has.
func (ch *chooser) pack(k *packing) packed {
	return packed{k, binpack.SolveBy(&k.problem, ch.effort.Searches)}
}

// mayRunOut reports whether a machine for each pod would exceed a line.
func (ch *chooser) mayRunOut() bool {
	total := int64(0)
	for i := range ch.demands {
		total += int64(ch.demands[i].Count)
	}
	for line := range ch.in.Space.Supply.Lines {
		if most := ch.in.Space.Supply.Most(line); most > 0 && ch.c.State.Ledger.Left(line)/most < total {
			return true
		}
	}
	return false
}

// packing lays the demands out for the packer, without shared limits.
func (ch *chooser) packing(dims []int) *packing {
	used := bitset.New(len(ch.in.Space.Options))
	for i := range ch.demands {
		used.Or(ch.demands[i].Options)
	}
	used.And(ch.c.Index.Worth())
	k := newPacking(len(ch.in.Space.Options), len(ch.rules.groups))
	k.addOptions(ch.in.Space, used, dims, 0)
	k.problem.Classes = make([]binpack.Class, 0, len(ch.demands))
	for i := range ch.demands {
		d := &ch.demands[i]
		c := &ch.in.Classes[d.Class]
		k.problem.Classes = append(k.problem.Classes, binpack.Class{
			Size: k.project(c.Size(ch.in.Space), dims), Count: d.Count, Bins: k.binsFor(d.Options), Priority: c.Priority,
			PerBin: ch.rules.perNode[i], Conflicts: ch.rules.conflicts[i],
		})
	}
	k.problem.Dims = len(dims)
	k.addGroups(ch.rules.groups, len(k.problem.Bins))
	k.problem.Seed, k.problem.SmallFirst = ch.effort.Policy.Seed, ch.c.Params().SmallFirst
	k.problem.Clock = ch.effort.clock()
	k.problem.Budget, k.problem.Unproven = ch.effort.Policy.Budget*9/10, !ch.exact
	return k
}

// leaveTime leaves time to prove a bound afterwards: if a limit binds, it is not known
// beforehand for which pods.
func (ch *chooser) leaveTime(k *packing) {
	if !ch.exact {
		k.problem.Budget = ch.effort.Policy.Budget * 3 / 4
	}
}

// usedUp lists the lines of the ledger, but for the scarce ones, that a packing needs more of than is
// left; and where pods found no node, those of which it leaves less than an option may take.
func (ch *chooser) usedUp(p packed, scarce []int) (exceeded, scant []int) {
	supply := &ch.in.Space.Supply
	use := make([]int64, len(supply.Lines))
	for _, bin := range p.sol.Bins {
		for _, u := range ch.in.Space.Uses(p.options[bin.Type]) {
			use[u.Line] += u.Amount * int64(bin.Times)
		}
	}
	short := slices.ContainsFunc(p.sol.Unplaced, func(n int) bool { return n > 0 })
	for line, n := range use {
		switch left := ch.c.State.Ledger.Left(line) - n; {
		case slices.Contains(scarce, line):
		case left < 0:
			exceeded = append(exceeded, line)
		case short && n > 0 && left < supply.Most(line):
			scant = append(scant, line)
		}
	}
	return exceeded, scant
}

// buy buys one node and puts pods of demands on it. It declines if the pods together
// leave too few offerings for the pool's minValues.
func (ch *chooser) buy(option int, counts []binpack.ClassCount) bool {
	s, in := ch.c.State, ch.in
	pl := s.NewNode(option)
	for _, cc := range counts {
		d := &ch.demands[cc.Class]
		pl.Options.And(in.Classes[d.Class].Levels[d.Level].Options)
	}
	if len(in.MinValues.Of(int(in.Space.Options[option].Pool))) > 0 && !ch.varied(pl, counts) {
		return false
	}
	pl.Pods = make([]instance.PodCount, 0, len(counts))
	for _, cc := range counts {
		d := &ch.demands[cc.Class]
		s.Put(&in.Classes[d.Class], d.Level, cc.Count, pl)
	}
	s.Buy(pl)
	return true
}

// varied reports whether pods of demands on a node to be bought, which is empty and
// whose options they allow, leave enough offerings for the pool's minValues.
func (ch *chooser) varied(pl *placement.Place, counts []binpack.ClassCount) bool {
	in, pool := ch.in, int(ch.in.Space.Options[pl.Option].Pool)
	load := make([]int64, in.Space.Dims.Count)
	pods := make([]instance.PodCount, 0, len(counts))
	for _, cc := range counts {
		d := &ch.demands[cc.Class]
		for dim, size := range in.Classes[d.Class].Size(in.Space) {
			load[dim] += size * int64(cc.Count)
		}
		pods = append(pods, instance.PodCount{Class: d.Class, Level: d.Level, Count: cc.Count})
	}
	return in.MinValues.Met(pool, in.MinValues.Fixed(pl.Options, pods, pl.Option), load)
}
