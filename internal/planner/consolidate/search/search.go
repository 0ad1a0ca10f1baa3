// Package search looks for the cheapest cluster that holds the same pods, with what
// evictions cost: the set of nodes to remove, the new nodes to buy and the places of
// the pods.
//
// The unit of the search is a [Trial]: a set of bins is removed, their pods are placed
// on the bins that are left or on new nodes, and all of that is undone unless the
// objective falls. [Search.Run] begins with the better of single removals and of
// proposals of the planner (proposal.go) and then descends (descent.go); what budgets
// do not allow at once becomes a goal of which a part is made now (goal.go).
//
// Two workers evaluate trials on equal states. What gains is then made on both in the
// same order, so the result is the same however fast each of them is.
//
// See docs/planner.md, section "Consolidation".
package search

import (
	"math/rand/v2"
	"time"

	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
)

// Search is one search, from the state in which it begins.
type Search struct {
	p        *compiled.Problem
	workers  workers
	proposer proposer
	// meter counts trials, each as trialSteps.
	meter *meter.Meter
	rng   *rand.Rand
	// start is the objective that the search began with.
	start float64
	// trials and gains are those of the present round, by the same index; scratch.
	trials []Trial
	gains  []float64
}

// trialSteps is how many steps of the meter a trial counts: it lasts about 30
// microseconds.
const trialSteps = int64(30 * time.Microsecond / meter.StepTime)

// floor is the share of the trials that a search makes whatever the time.
const floor = 0.25

// stream tells the search's random numbers from others of the same seed.
const stream = 0x9e3779b97f4a7c15

// New is a search from the present state of an evaluator. It seals that state: what
// was done before cannot be undone any more.
func New(main *Evaluator) *Search {
	p := main.State.Problem
	policy := &p.Input.Problem.Policy
	s := &Search{
		p: p, proposer: newProposer(p), rng: rand.New(rand.NewPCG(policy.Seed, stream)),
		meter: meter.New(policy.Budget, meter.NewClock(policy.Elapsed).Within(meter.CutLimits{Floor: floor})),
	}
	s.workers = newWorkers(main)
	s.start = s.state().Objective()
	return s
}

// state is the state that everything looks at between rounds.
func (s *Search) state() *state.State { return s.workers.main().State }

// Trials is how many trials were evaluated, on all states, commands included.
func (s *Search) Trials() int64 { return s.workers.trials() }

// enough reports whether the time is over and something has been found.
func (s *Search) enough() bool {
	return s.meter.Limited() && s.meter.Clocked() && s.meter.Over() && s.state().Objective() < s.start-1
}
