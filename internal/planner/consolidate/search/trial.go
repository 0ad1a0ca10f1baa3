package search

import (
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
)

// Trial is a set of bins to remove, and how their pods are to be placed.
type Trial struct {
	// Remove are nodes, or new nodes that were bought before.
	Remove []int32
	// Lift are bins whose relocated pods look for a better place at the same time.
	Lift []int32
	// Buy allows new nodes for pods which find no room. BuyFirst tries that before
	// looking for room.
	Buy, BuyFirst bool
	// Proposal says where the pods are to go, as far as that is known; nil when it is
	// not.
	Proposal *state.SubPlan
}

// Evaluator makes trials on one state. It is used by one goroutine at a time.
type Evaluator struct {
	State  *state.State
	Placer state.Placer
	Buyer  *state.Buyer
	// Trials counts the sets of bins that were evaluated.
	Trials int64
}

// NewEvaluator is an evaluator of a state.
func NewEvaluator(s *state.State) *Evaluator {
	return &Evaluator{State: s, Placer: state.NewPlacer(s), Buyer: state.NewBuyer(s)}
}

// Attempt makes a trial's changes and returns what they gain per hour, in the unit of
// State.Objective. When they are not feasible or gain nothing, the state is as before
// and the gain is zero.
func (e *Evaluator) Attempt(t *Trial) float64 {
	e.Trials++
	s := e.State
	start, before := s.Mark(), s.Objective()
	s.Unplaced.Begin()
	if e.Clear(t) && e.resettle(t, before) {
		if gain := before - s.Objective(); gain > 0 {
			return gain
		}
	}
	s.Undo(start)
	return 0
}

// resettle places the pods that Clear has made unplaced, and buys for less than was
// gained since the objective was what it was before. On failure it leaves what it has
// done.
func (e *Evaluator) resettle(t *Trial, before float64) bool {
	s := e.State
	budget := model.Money(before-s.Objective()) - 1
	if t.Buy {
		budget -= s.Problem.Input.Terms.LeastSaving(e.priceOfNodes(t))
	}
	if t.Proposal != nil {
		built := s.Price()
		s.Unplaced.Sort(s.Problem.Rank)
		e.Buyer.Build(t.Proposal)
		budget -= s.Price() - built
	}
	if budget < 0 {
		return false
	}
	if t.BuyFirst && t.Buy {
		s.Unplaced.Sort(s.Problem.Rank)
		if e.Buyer.Buy(budget) {
			return true
		}
	}
	return e.Placer.PlaceAll() || t.Buy && e.Buyer.Buy(budget)
}

// priceOfNodes is the price of the nodes that a trial removes, those that are not yet
// bought left out.
func (e *Evaluator) priceOfNodes(t *Trial) model.Money {
	var price model.Money
	for _, i := range t.Remove {
		if e.State.Bins.IsNode(i) {
			price += e.State.Problem.Nodes[i].Price
		}
	}
	return price
}

// WouldGain is what a trial would gain; the state stays as it is.
func (e *Evaluator) WouldGain(t *Trial) float64 {
	start := e.State.Mark()
	gain := e.Attempt(t)
	e.State.Undo(start)
	return gain
}

// Clear removes and lifts a trial's bins, if all that it removes may be removed. It
// decides whether spot nodes may be bought in their stead. On failure it leaves what it
// has removed.
func (e *Evaluator) Clear(t *Trial) bool {
	s := e.State
	e.Buyer.Replace(t.Remove)
	for _, i := range t.Remove {
		if bin := s.Bins.At(i); bin.Removed || bin.Frozen {
			return false
		}
		if s.Bins.IsNode(i) && (!s.Eligible.Candidate(i) || !s.MayRemove(i)) {
			return false
		}
		s.Remove(i)
	}
	for _, i := range t.Lift {
		if bin := s.Bins.At(i); !bin.Removed && !bin.Frozen {
			s.Lift(i)
		}
	}
	return true
}
