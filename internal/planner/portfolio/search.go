package portfolio

import (
	"maps"
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/construct"
	"github.com/nodeautoprovision/nap/internal/planner/domainconflict"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/lns"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
	"github.com/nodeautoprovision/nap/internal/planner/nodechoice"
	"github.com/nodeautoprovision/nap/internal/planner/offers"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
)

// Outcome is a plan and what is known of it.
type Outcome struct {
	Plan *construct.Constructor
	// Result is what became of the demands of the plan, or its cost if the bin packer
	// had no part in it.
	Result nodechoice.Result
	// Proof is the plan's bound that is being proven, if any.
	Proof *nodechoice.Proof
	// strategy is the one of the attempt. The plan itself may come from large
	// neighbourhood search.
	strategy construct.Strategy
	// hard are the classes of which cheaper plans left pods out.
	hard []int
}

// search is what all plans for a problem have in common. It never changes, but for what offers
// remember.
type search struct {
	in *instance.Instance
	// portfolio is what may be tried.
	portfolio *Portfolio
	// nodes are the existing nodes before planning.
	nodes  []*placement.Place
	policy *model.Policy
	// quick is the policy without time.
	quick *model.Policy
	// exposed says that domain conflicts are possible.
	exposed bool
	// yields says that pods may wait for a spread constraint that binds them: see decide.
	yields bool
	prover *nodechoice.Prover
	// clock measures the budget of the policy; without a clock, steps do.
	clock meter.Clock
	// offers find the cheapest machine for what a node holds; they remember what nodes of all plans
	// have in common.
	offers *offers.Alternatives
}

// attempt says how a plan is made: everything but the time.
type attempt struct {
	params   construct.Params
	decision placement.Decision
	// dry runs are only compared, so that no bound is proven for them.
	dry bool
}

// begin begins the empty plan of an attempt.
func (q *search) begin(a attempt) *construct.Constructor {
	c := construct.New(q.in, q.nodes, a.decision, a.params)
	c.CountInto(q.clock.Work())
	return c
}

// try makes the plan of an attempt.
func (q *search) try(a attempt, policy *model.Policy) Outcome {
	return q.complete(q.begin(a), a, policy)
}

// complete makes the plan of an attempt that has been begun. Its nodes are no larger than what they
// hold needs, as in the plan that is made of it in the end: what is compared is what would be paid.
func (q *search) complete(c *construct.Constructor, a attempt, policy *model.Policy) Outcome {
	o := q.fill(c, a, policy)
	q.offers.RightSize(c.State)
	return o
}

// fill gives pods their places in the plan of an attempt that has been begun.
func (q *search) fill(c *construct.Constructor, a attempt, policy *model.Policy) Outcome {
	o := Outcome{Plan: c, strategy: a.params.Strategy}
	if a.params.Sequential {
		c.PlaceAll()
		o.Result.First = c.State.Cost()
		return o
	}
	var prove func(placed []int)
	if !a.dry && (policy.Budget > 0 || a.params.Strategy == (construct.Strategy{})) {
		prove = func(placed []int) {
			o.Proof = q.prover.Start(nodechoice.TargetFor(c.State, placed, c.Index.Worth()), policy)
		}
	}
	o.Result = nodechoice.ConstructBy(c, nodechoice.Effort{Policy: policy, Clock: q.clock, Searches: q.portfolio.packing}, prove)
	return o
}

// run plans by every strategy that is worth trying and returns the best plan. Where that leaves pods
// out, a plan that gives room to the small ones of a priority first may place more; since it has no
// room to spare, nothing is searched from it.
func (q *search) run(empty *construct.Constructor, zero attempt, policy *model.Policy) Outcome {
	o := q.runAll(empty, zero, policy)
	if q.portfolio.refinements&smallFirst == 0 || o.Plan.State.Unplaced() == 0 || len(q.in.Space.Supply.Lines) == 0 {
		return o
	}
	small := q.try(attempt{params: construct.Params{Strategy: construct.Strategy{SmallFirst: true}}, decision: o.Plan.State.Decision}, q.quick)
	if !small.Result.Entangled && small.Plan.State.PlacesMore(o.Plan.State) {
		return small
	}
	return o
}

// runAll plans by every strategy that is worth trying and returns the best plan. It begins
// with the empty plan of an attempt by the zero strategy. If further strategies may
// follow, each plan is made without time, and what time is left goes to the best one.
func (q *search) runAll(empty *construct.Constructor, zero attempt, policy *model.Policy) Outcome {
	pods, most := q.in.Space.Problem.PodCount(), smallProblem
	quick, first := pods <= largeProblem, policy
	if quick {
		first = q.quick
	}
	start := q.clock.Now()
	best := q.complete(empty, zero, first)
	policy = q.sparing(policy, best.Plan.State)
	ahead := policy // the time for other strategies
	if policy.Budget > 0 && pods > smallProblem {
		if most = largeProblem; len(best.Plan.Stranded()) == 0 {
			ahead = shortened(policy, policy.Budget*3/4)
		}
	}
	r := &rounds{
		best: best, improved: policy.Budget <= 0 || !quick, longest: q.clock.Now() - start, tried: []sketch{sketchOf(best.Plan.State)},
	}
	for _, strategy := range q.portfolio.worthTrying(best.Plan, best.Result, most) {
		// Where something ran out, nodes one by one are worth a little delay.
		needed := r.best.Plan.State.Unplaced() > 0 && (!quick || strategy.ScarcityFirst || strategy == construct.Strategy{Sequential: true})
		if !needed && q.late(ahead, r.longest) {
			break
		}
		q.round(r, attempt{params: construct.Params{Strategy: strategy}, decision: zero.decision}, policy)
	}
	best, longest := r.best, r.longest
	if best.strategy.HardOnly && q.portfolio.refinements&restorePreferences != 0 {
		best = q.restorePreferences(best, zero.decision, func() bool { return q.late(policy, longest) })
	}
	if q.in.Space.Tiers == 1 { // or else no lower price is looked for
		best.hard = placedUnlike(best.Plan, r.tried)
	}
	if !r.improved && q.portfolio.refinements&packAgain != 0 && !q.late(policy, longest) {
		best = q.improve(best, q.mostOf(policy, &best))
	}
	if q.late(policy, longest) { // to prepare and to try something
		return best
	}
	return q.searchNeighbourhoods(best, policy)
}

// rounds are the attempts by further strategies, one after the other.
type rounds struct {
	// best is the best plan so far; improved says that no time is to be spent on packing
	// it again.
	best     Outcome
	improved bool
	// longest is the time that the slowest attempt took, zero without a clock.
	longest time.Duration
	// tried are the plans of all attempts, in the order of the attempts.
	tried []sketch
}

// round makes one attempt without time for the packer, and keeps its plan where it is
// better. A plan with entangled demands never replaces one without.
func (q *search) round(r *rounds, a attempt, policy *model.Policy) {
	before := q.clock.Now()
	other := q.try(a, q.quick)
	r.longest, r.tried = max(r.longest, q.clock.Now()-before), append(r.tried, sketchOf(other.Plan.State))
	if other.Result.Entangled || !r.best.Result.Entangled && !other.Plan.State.Better(r.best.Plan.State) {
		return
	}
	r.best, r.improved = other, policy.Budget <= 0
}

// searchNeighbourhoods improves the best plan of all strategies, where few pods and
// nodes are concerned, as long as there is time: it looks for places of stranded pods
// and for a lower price.
func (q *search) searchNeighbourhoods(o Outcome, policy *model.Policy) Outcome {
	pods, s := q.in.Space.Problem.PodCount(), o.Plan.State
	if policy.Budget <= 0 || pods > largeProblem || q.portfolio.neighbourhoods == 0 {
		return o
	}
	stranded := o.Plan.Stranded()
	// Where the packer's problem was no stricter than the rules, it has looked itself.
	cheaper := pods <= smallProblem && q.in.Space.Tiers == 1 && !o.Result.Exact && s.Cost() > 0
	if !cheaper && len(stranded)+len(o.hard) == 0 {
		return o
	}
	better := lns.Improve(lns.Task{
		Operators: q.portfolio.neighbourhoods, Plan: o.Plan, Blank: q.begin(attempt{decision: s.Decision}),
		Stranded: stranded, Hard: o.hard, Cheaper: cheaper,
		ConflictFree: q.exposed && len(domainconflict.Conflicts(s)) == 0,
	}, policy, q.clock)
	if better != o.Plan {
		o.Plan, o.Proof = better, nil
	}
	return o
}

// sketch is what is remembered of a plan that may not stay.
type sketch struct {
	cost model.Money
	// left is, by class, how many pods have no place.
	left []int
}

func sketchOf(s *placement.State) sketch { return sketch{s.Cost(), s.Left} }

// placedUnlike lists the classes of which a plan has places for pods that cheaper ones
// leave out.
func placedUnlike(c *construct.Constructor, others []sketch) []int {
	var out []int
	cost := c.State.Cost()
	for _, i := range c.Sequence() {
		if slices.ContainsFunc(others, func(o sketch) bool { return o.left[i] > c.State.Left[i] && o.cost < cost }) {
			out = append(out, i)
		}
	}
	return out
}

// explainTime is about what it takes to say of a class and an option why they do not go
// together.
const explainTime = 4 * time.Nanosecond

// sparing is the policy with less time by what it will take to say why a plan leaves pods
// out, up to a quarter of it.
func (q *search) sparing(policy *model.Policy, s *placement.State) *model.Policy {
	out := 0
	for _, n := range s.Left {
		out += min(n, 1)
	}
	return shortened(policy, min(policy.Budget/4, time.Duration(out*len(q.in.Space.Options))*explainTime))
}

// mostOf is the policy with the time for the packer: all that is left, but for a quarter
// of it where large neighbourhood search is about to follow.
func (q *search) mostOf(policy *model.Policy, o *Outcome) *model.Policy {
	now, used := q.clock.Now(), time.Duration(0)
	if q.clock.Work() != nil {
		used = now // steps of a meter count from its own beginning
	}
	if o.Result.Exact && o.Plan.State.Unplaced() == 0 ||
		len(o.Plan.Stranded())+len(o.hard) == 0 && q.in.Space.Problem.PodCount() > smallProblem {
		return shortened(policy, used)
	}
	return shortened(policy, used+(policy.Budget-now)/4)
}

// improve plans again with time: by the strategy of the best plan if it leaves the choice
// of nodes to the packer, or else by the zero strategy.
func (q *search) improve(best Outcome, policy *model.Policy) Outcome {
	strategy := best.strategy
	if strategy.Sequential {
		strategy = construct.Strategy{}
	}
	again := attempt{decision: best.Plan.State.Decision, params: construct.Params{Strategy: strategy, Keep: best.Plan.Params().Keep}}
	if longer := q.try(again, policy); !longer.Result.Entangled && !best.Plan.State.Better(longer.Plan.State) {
		longer.hard = best.hard
		return longer
	}
	return best
}

// restorePreferences gives the classes their preferences back that cost no pod its place,
// unless it gets late. The plan, which gave up all of them, places more pods than one
// that honours all of them.
func (q *search) restorePreferences(o Outcome, d placement.Decision, late func() bool) Outcome {
	var classes []int
	for _, i := range o.Plan.Sequence() {
		if len(q.in.Classes[i].Levels) > 1 {
			classes = append(classes, i)
		}
	}
	// All of a group or, if that takes a place away, each half of it.
	var try func(group []int)
	try = func(group []int) {
		if late() {
			return
		}
		params := construct.Params{Strategy: o.strategy, Keep: map[int]bool{}}
		maps.Copy(params.Keep, o.Plan.Params().Keep)
		for _, i := range group {
			params.Keep[i] = true
		}
		other := q.try(attempt{params: params, decision: d}, q.quick)
		if !other.Result.Entangled && !o.Plan.State.PlacesMore(other.Plan.State) {
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

// shortened is the policy with so much less time.
func shortened(policy *model.Policy, by time.Duration) *model.Policy {
	less := *policy
	less.Budget -= by
	return &less
}

// late reports whether there is no time left for something that takes so long. Without a
// budget there always is: what is done then does not depend on the clock.
func (q *search) late(policy *model.Policy, takes time.Duration) bool {
	return policy.Budget > 0 && q.clock.Late(policy.Budget-takes)
}
