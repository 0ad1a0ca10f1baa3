package lns

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/construct"
	"github.com/nodeautoprovision/nap/internal/planner/domainconflict"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
	"github.com/nodeautoprovision/nap/internal/planner/nodechoice"
	"github.com/nodeautoprovision/nap/internal/planner/offers"
)

// How much is tried: as often as fits into the budget if a trial lasts trialTime, and as
// much longer for each further trialClasses classes, but at least leastTrials times
// while the clock, if there is one, allows it.
const (
	leastTrials  = 32
	trialTime    = 200 * time.Microsecond
	trialClasses = 100
)

// patience is after how many trials in a row without a better plan the search ends, if
// no pod is stranded.
const patience = 300

// detour is how much a plan from which to go on may cost more than the best one, as one
// part in so many.
const detour = 10

// mostHalvings is the least share of the pods that wait for a node for which it keeps
// room, as a power of a half.
const mostHalvings = 3

// mostNodes is up to how many existing nodes with room plans are improved.
const mostNodes = 3000

// Operators are the parts of a search. Production uses all of them; leaving one out
// shows what it earns.
type Operators uint8

// The parts, in the order in which they run.
const (
	// Guide serves stranded classes first, in a plan from the beginning.
	Guide Operators = 1 << iota
	// Around plans everything again around the pods that only dearer plans place.
	Around
	// Restart plans everything from the beginning by further strategies.
	Restart
	// DestroyAndRepair drops a part of the plan and plans it again, time after time.
	DestroyAndRepair

	AllOperators = Guide | Around | Restart | DestroyAndRepair
)

// Task is a plan to improve.
type Task struct {
	// Operators are the parts of the search that take part.
	Operators Operators
	// Plan is the best plan so far. Its new nodes are right-sized.
	Plan *construct.Constructor
	// Blank is a plan for the same decision on domain conflicts that has placed no pod,
	// by the zero strategy.
	Blank *construct.Constructor
	// Stranded are the classes with pods that have no place although there may be one.
	Stranded []int
	// Hard are the classes of which cheaper plans left pods out.
	Hard []int
	// Cheaper says that a lower price is worth looking for even if no pod is stranded.
	Cheaper bool
	// ConflictFree says that conflicts of spread constraints with what is bought for
	// others are possible, and that Plan has none.
	ConflictFree bool
}

// search is the state of one search.
type search struct {
	// blank has placed no pod. All trials are forks of it.
	blank  *construct.Constructor
	offers *offers.Alternatives
	rng    *rand.Rand
	// best is the best plan so far, now the one that trials start from: as good, or
	// accepted as a detour. It is nil before the first one.
	best, now *construct.Constructor
	// conflictFree and operators are those of the task.
	conflictFree bool
	operators    Operators
	policy       *model.Policy
	// quick is the policy without time, for the packer.
	quick model.Policy
	// clock measures the budget of the policy; without a clock, trials do.
	clock meter.Clock
}

// late reports that the time is over, if there is a clock and a budget.
func (s *search) late() bool { return s.policy.Budget > 0 && s.clock.Late(s.policy.Budget) }

// Improve returns a plan that places more pods or costs less, or the task's plan.
func Improve(t Task, policy *model.Policy, clock meter.Clock) *construct.Constructor {
	s := &search{
		blank: t.Blank, best: t.Plan, conflictFree: t.ConflictFree, operators: t.Operators,
		rng: rand.New(rand.NewPCG(policy.Seed, 1)), policy: policy, clock: clock,
	}
	if s.blank.State.AnyOrder(s.blank.Sequence()); len(s.blank.State.Nodes) > mostNodes {
		return t.Plan
	}
	s.quick = *policy
	s.quick.Budget = 0
	s.offers = offers.New(t.Plan.State.Instance)
	s.offers.RightSize(t.Plan.State)
	if t.Operators&Guide != 0 {
		s.guide(t.Stranded)
	}
	displaced := t.Plan.State.Instance.Space.Tiers == 1 && (s.best != t.Plan || len(t.Hard) > 0)
	if displaced && t.Operators&Around != 0 {
		s.around(slices.Concat(t.Stranded, t.Hard))
	}
	if t.Cheaper || displaced || len(s.best.Stranded()) > 0 {
		s.run()
	}
	return s.best
}

// fork is a blank plan for a strategy.
func (s *search) fork(strategy construct.Strategy) *construct.Constructor {
	return s.blank.Fork(construct.Params{Strategy: strategy, Late: s.late})
}

// run builds the best plan again as trials build plans, restarts, and destroys and
// repairs.
func (s *search) run() {
	if s.late() {
		return
	}
	s.now = s.fork(construct.Strategy{})
	enter(s.now, keptOf(s.best))
	s.repair(s.now, s.now.Sequence())
	s.accept(s.now)
	if s.operators&Restart != 0 {
		s.restart()
	}
	if s.operators&DestroyAndRepair != 0 {
		s.destroyAndRepair()
	}
}

// restart plans from the beginning by strategies that are not tried for every problem.
func (s *search) restart() {
	for _, strategy := range []construct.Strategy{
		{Sequential: true},
		{Sequential: true, ByCount: true},
		{Sequential: true, BySize: true, Join: true, OneByOne: true},
	} {
		if s.late() {
			return
		}
		f := s.blank.Fork(construct.Params{Strategy: strategy, Halvings: mostHalvings, Late: s.late})
		s.repair(f, f.Sequence())
		s.accept(f)
	}
}

// destroyAndRepair goes on until the trials, the time or the patience is used up.
func (s *search) destroyAndRepair() {
	trials := max(leastTrials, int(s.policy.Budget/trialTime)/(1+len(s.blank.State.Left)/trialClasses))
	for i, vain := 0, 0; i < trials && (vain < patience || len(s.best.Stranded()) > 0); i++ {
		best := s.best.State
		if best.Unplaced() == 0 && best.Cost() == 0 || s.clock.Late(s.policy.Budget*7/8) {
			return
		}
		kept := s.destroy()
		params := construct.Params{Strategy: s.strategy(), Perturb: s.rng, Late: s.late}
		if s.rng.IntN(2) == 0 {
			params.Halvings = 1 + s.rng.IntN(mostHalvings)
		}
		f := s.blank.Fork(params)
		enter(f, kept)
		vain++
		if s.repair(f, s.order(f)) && s.accept(f) {
			vain = 0
		}
	}
}

// accept makes a plan the one to start from if it is not worse than that one or a small
// detour, and reports whether it is better than the best so far.
func (s *search) accept(f *construct.Constructor) bool {
	if s.conflictFree && len(domainconflict.Conflicts(f.State)) > 0 {
		return false
	}
	best := s.best.State
	near := f.State.Unplaced() == best.Unplaced() && f.State.Cost() < best.Cost()+best.Cost()/detour
	if s.now == nil || !s.now.State.Better(f.State) || near && s.rng.IntN(2) == 0 {
		s.now = f
	}
	more := f.State.Unplaced() < best.Unplaced() // pods without a place may have to give up preferences
	if !f.State.Better(best) || !more && (best.Instance.Space.Tiers > 1 || f.State.GivenUp() > best.GivenUp()) {
		return false
	}
	s.best, s.now = f, f
	return true
}

// repair places the pods that have no place, in an order, and right-sizes new nodes. It
// reports whether the plan is sound.
func (s *search) repair(f *construct.Constructor, order []int) bool {
	random := f.Params().Perturb != nil
	if random && !f.Params().Sequential {
		if nodechoice.Construct(f, &s.quick, nil).Entangled {
			return false
		}
	} else {
		all := random && s.rng.IntN(3) == 0
		f.Admit(order, func(i int) bool { return all || s.best.State.Left[i] > 0 })
	}
	s.offers.RightSize(f.State)
	return true
}
