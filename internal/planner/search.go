package planner

import (
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
)

// search is what all tries to plan a problem have in common.
type search struct {
	inst     *instance.Instance
	space    *feasible.Space
	existing []*Place
	policy   *model.Policy
	// exposed says that machines may be sold in domains that a spread has to count
	// and whose pods cannot use them.
	exposed bool
	// latest is the builder that was made last.
	latest *builder
}

// newSearch prepares to plan a problem.
func newSearch(s *feasible.Space) *search {
	return &search{inst: instance.New(s), space: s, policy: &s.Problem.Policy}
}

// outcome is a plan, what is known of its packing, and the way to it.
type outcome struct {
	b   *builder
	res packResult
	way variant
	// hard are the classes of which cheaper plans left pods out.
	hard []int
}

// try grows the plan of a builder that has none yet.
func (q *search) try(b *builder, policy *model.Policy) outcome {
	if b.variant.alone {
		b.runAll()
		return outcome{b: b, res: packResult{first: b.cost()}, way: b.variant}
	}
	return outcome{b: b, res: b.planPooled(policy), way: b.variant}
}

// ways plans in every way that is worth trying, that of the given builder first,
// and returns the best plan. It begins with a quick look at every way, where there are
// more than one from the outset; what time is left goes to the best one.
func (q *search) ways(first *builder, policy *model.Policy) outcome {
	quick := *policy
	quick.Budget = 0
	pods, at, most := q.space.Problem.PodCount(), policy, smallProblem
	if pods <= largeProblem {
		at = &quick
	}
	start := elapsed(policy)
	best := q.try(first, at)
	policy = q.sparing(policy, best.b)
	ahead := policy // the time for other ways
	if policy.Budget > 0 && pods > smallProblem {
		if most = largeProblem; len(best.b.stranded()) == 0 {
			ahead = shortened(policy, policy.Budget*3/4)
		}
	}
	improved := policy.Budget <= 0 || at != &quick
	longest := elapsed(policy) - start
	tried := []sketch{best.b.sketch()}
	for _, v := range first.otherWays(best.res, most) {
		// Where something ran out, machines one by one are worth a little delay.
		needed := best.b.unplaced() > 0 && (at != &quick || v.thrifty || v == variant{alone: true})
		if !needed && late(ahead, longest) {
			break
		}
		before := elapsed(policy)
		other := q.try(q.builder(first.ruling, v), &quick)
		longest, tried = max(longest, elapsed(policy)-before), append(tried, other.b.sketch())
		if other.res.entangled || !best.res.entangled && !other.b.better(best.b) {
			continue
		}
		best, improved = other, policy.Budget <= 0
	}
	if best.way.plain {
		best = q.honour(best, first.ruling, func() bool { return late(policy, longest) })
	}
	if q.space.Tiers == 1 { // or else no lower price is looked for
		best.hard = best.b.placedUnlike(tried)
	}
	if !improved && !late(policy, longest) {
		best = q.improve(best, q.mostOf(policy, best))
	}
	if late(policy, longest) { // to prepare and to try something
		return best
	}
	q.latest.await()
	return q.mend(best, policy)
}

// sketch is what is remembered of a plan that may not stay.
type sketch struct {
	cost model.Money
	left []int // by class, how many pods have no place
}

func (b *builder) sketch() sketch { return sketch{b.cost(), b.left} }

// placedUnlike lists the classes of which a plan has places for pods that cheaper ones
// leave out.
func (b *builder) placedUnlike(others []sketch) []int {
	var out []int
	for _, i := range b.sequence {
		if slices.ContainsFunc(others, func(o sketch) bool { return o.left[i] > b.left[i] && o.cost < b.cost() }) {
			out = append(out, i)
		}
	}
	return out
}

// explainTime is about what it takes to say of a class and an option why they do not
// go together.
const explainTime = 4 * time.Nanosecond

// sparing is the policy with less time by what it will take to say why a plan leaves
// pods out, up to a quarter of it.
func (q *search) sparing(policy *model.Policy, b *builder) *model.Policy {
	out := 0
	for _, n := range b.left {
		out += min(n, 1)
	}
	return shortened(policy, min(policy.Budget/4, time.Duration(out*len(q.space.Options))*explainTime))
}

// shortened is the policy with so much less time.
func shortened(policy *model.Policy, by time.Duration) *model.Policy {
	less := *policy
	less.Budget -= by
	return &less
}

// mostOf is the policy with the time for the packer: all that is left, but for a
// quarter of it where mending is about to follow.
func (q *search) mostOf(policy *model.Policy, o outcome) *model.Policy {
	if o.res.free && o.b.unplaced() == 0 || len(o.b.stranded())+len(o.hard) == 0 && q.space.Problem.PodCount() > smallProblem {
		return policy
	}
	now := elapsed(policy)
	return shortened(policy, (policy.Budget-now)/4)
}

// improve plans again with time: in the way of the best plan if it leaves the choice
// of machines to the packer, or else in the usual one.
func (q *search) improve(best outcome, policy *model.Policy) outcome {
	way := best.way
	if way.alone {
		way = variant{}
	}
	again := q.builder(best.b.ruling, way)
	again.honours = best.b.honours
	if longer := q.try(again, policy); !longer.res.entangled && !best.b.better(longer.b) {
		longer.hard = best.hard
		return longer
	}
	return best
}

// elapsed is how much time has passed, as far as there is a clock.
func elapsed(policy *model.Policy) time.Duration {
	if policy.Elapsed == nil {
		return 0
	}
	return policy.Elapsed()
}

// late reports whether there is no time left for something that takes so long. Without
// a budget there always is: what is done then does not depend on the clock.
func late(policy *model.Policy, takes time.Duration) bool {
	return policy.Budget > 0 && elapsed(policy)+takes >= policy.Budget
}

// honour gives the classes their preferences back that cost nobody a place, unless it
// gets late. The plan places more pods than one that honours all of them.
func (q *search) honour(o outcome, r ruling, late func() bool) outcome {
	quick := *q.policy
	quick.Budget = 0
	var classes []int
	for _, i := range o.b.sequence {
		if len(q.inst.Classes[i].Levels) > 1 {
			classes = append(classes, i)
		}
	}
	// All of a group or, if that takes a place away, each half of it.
	var try func(group []int)
	try = func(group []int) {
		if late() {
			return
		}
		b := q.builder(r, o.way)
		b.honours = map[int]bool{}
		for i := range o.b.honours {
			b.honours[i] = true
		}
		for _, i := range group {
			b.honours[i] = true
		}
		if other := q.try(b, &quick); !other.res.entangled && !o.b.placesMore(other.b) {
			o = other
			return
		}
		if half := len(group) / 2; half > 0 {
			try(group[:half])
			try(group[half:])
		}
	}
	try(classes)
	return o
}

// builder starts an empty plan.
func (q *search) builder(r ruling, v variant) *builder {
	if q.latest != nil {
		q.latest.await() // one bound at a time
	}
	b := q.newBuilder(r, v)
	q.latest = b
	return b
}

// newBuilder starts an empty plan.
func (q *search) newBuilder(r ruling, v variant) *builder {
	s := q.space
	b := &builder{
		inst: q.inst, space: s, ledger: s.NewLedger(), classes: q.inst.Classes, variant: v, ruling: r, reduced: q.inst.Menu,
		left: q.inst.PodCounts(), brim: map[int]feasible.Set{}, shelves: newShelves(),
	}
	for _, pl := range q.existing {
		b.nodes = append(b.nodes, pl.clone())
	}
	b.sequence = order(b)
	b.order, b.counts = q.inst.Topology.NewOrder(b.sequence, b.spareKeys()), q.inst.Topology.NewCounts(r.counted)
	if v.thrifty {
		b.wanted = q.inst.TotalRequests()
	}
	return b
}

// spareKeys reports whether a pool wants machines to stay open between offerings,
// so that no more of them than needed should be tied to one domain.
func (b *builder) spareKeys() bool { return b.inst.MinValues.Any() || b.variant.plain }
