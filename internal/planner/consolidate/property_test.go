package consolidate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

// No answer moves a pod to where it may not be, spends more than budgets and
// PodDisruptionBudgets allow, makes the fleet more expensive, or is silent about
// a node.
func TestPlanIsVerified(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := &dice{T: rt}
		f := d.fleet()
		f.Problem.Policy.Budget = pick(d, 0, 5*time.Millisecond)
		moves := consolidate.Plan(f)
		for _, v := range verify.CheckMoves(f, moves) {
			rt.Errorf("%s", v)
		}
		saved := model.Money(0)
		for i := range moves.Commands {
			if r := moves.Commands[i].Reason; r == model.DisruptEmpty || r == model.DisruptUnderutilized {
				saved += moves.Commands[i].Saving
			}
		}
		if saved < 0 {
			rt.Errorf("consolidation costs %s", -saved)
		}
	})
}

func TestPlanIsDeterministic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := &dice{T: rt}
		f := d.fleet()
		f.Problem.Policy.Budget = 5 * time.Millisecond
		if diff := cmp.Diff(consolidate.Plan(f), consolidate.Plan(f)); diff != "" {
			rt.Errorf("two answers differ:\n%s", diff)
		}
	})
}

// A move stands right after it was decided.
func TestRecheckAcceptsUnchangedProblem(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := (&dice{T: rt}).fleet()
		moves := consolidate.Plan(f)
		if len(moves.Commands) > 0 {
			in := intentOf(f, &moves.Commands[0])
			in.Homes = map[model.PodRef]string{} // as the controller remembers them
			for _, pl := range moves.Commands[0].Placements {
				for _, cp := range pl.Pods {
					for _, at := range cp.Pods {
						in.Homes[f.Movable[cp.Class].Pods[at]] = f.Problem.Nodes[pl.Node].Name
					}
				}
			}
			for _, o := range consolidate.Recheck(f, in) {
				// Machines that are not bought yet cannot be named as homes, and without
				// them an arrangement that rules leave hardly any choice may be missed.
				if len(in.Replacements) > 0 && o.Node == "" && o.Reason != model.ReasonDoesNotPay {
					continue
				}
				rt.Errorf("%s: %s", o.Node, o.Message)
			}
		}
	})
}

// Made and asked again, the fleet becomes cheaper with every answer and soon
// nothing more is proposed.
func TestPlanComesToRest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := (&dice{T: rt, calm: true}).fleet()
		for range 12 {
			moves := consolidate.Plan(f)
			for _, v := range verify.CheckMoves(f, moves) {
				rt.Errorf("%s", v)
			}
			if len(moves.Commands) == 0 {
				if moves.After != moves.Before {
					rt.Errorf("nothing is proposed, and %s becomes %s", moves.Before, moves.After)
				}
				return
			}
			if moves.After > moves.Before {
				rt.Fatalf("%s becomes %s", moves.Before, moves.After)
			}
			f = apply(f, moves)
		}
		rt.Error("after 12 answers there is still more to propose")
	})
}

// Whatever has happened since a move was decided, looking at it again has an
// answer; a node of the move that must not be evicted from is named in it.
func TestRecheckOfAnyChangedProblem(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := &dice{T: rt}
		f := d.fleet()
		moves := consolidate.Plan(f)
		for i := range moves.Commands {
			mv := &moves.Commands[i]
			in := intentOf(f, mv)
			later := d.later(f)
			in.Draining = d.once(3)
			for k := range in.Replacements {
				if d.once(3) {
					in.Replacements[k] = consolidate.Replacement{Node: fmt.Sprint("node", d.upTo(9))}
				}
			}
			in.Homes = map[model.PodRef]string{{Namespace: "default", Name: "app0-0"}: fmt.Sprint("claim", d.upTo(9))}
			objections := consolidate.Recheck(later, in)
			for _, o := range objections {
				if o.Reason == "" || o.Message == "" {
					rt.Errorf("an objection without reason or words: %+v", o)
				}
			}
			first := slices.IndexFunc(later.Problem.Nodes, func(n model.Node) bool { return n.Name == in.Nodes[0] })
			if first < 0 && len(objections) == 0 {
				rt.Errorf("%s is gone, and nobody says so", in.Nodes[0])
			}
			forced := mv.Reason == model.DisruptExpired || mv.Reason == model.DisruptUnhealthy
			if first >= 0 && !in.Draining && later.Usages[first].DoNotDisrupt && !forced && len(objections) == 0 {
				rt.Errorf("%s must not be disrupted, and nobody says so", in.Nodes[0])
			}
		}
	})
}
