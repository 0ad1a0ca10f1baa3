package consolidate_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/eligibility"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
)

// Undoing any changes leaves the state as it was before them.
func TestUndoRestoresState(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := &dice{T: rt}
		p := compiled.Compile(d.fleet(), nil)
		s := state.New(p, eligibility.New(p))
		change(d, s)
		mark, before := s.Mark(), snapshot(s)
		for range 1 + d.upTo(4) {
			change(d, s)
		}
		s.Undo(mark)
		if diff := cmp.Diff(before, snapshot(s)); diff != "" {
			rt.Errorf("undone is not as before:\n%s", diff)
		}
	})
}

// change removes or lifts a bin, or buys a node, and places pods.
func change(d *dice, s *state.State) {
	placer, buyer := state.NewPlacer(s), state.NewBuyer(s)
	s.Unplaced.Begin()
	i := int32(d.upTo(s.Bins.Len() - 1))
	switch kind := d.upTo(2); {
	case s.Bins.At(i).Removed:
		return
	case kind == 0:
		s.Lift(i)
	case kind == 1 && len(s.Problem.Options) > 0:
		option := int32(d.upTo(len(s.Problem.Options) - 1))
		if s.Ledger.Admits(s.Problem.Options[option].Option) {
			s.Buy(option)
		}
	default:
		s.Remove(i)
	}
	if !placer.PlaceAll() {
		buyer.Buy(state.AnyPrice)
	}
}

// snapshot is all of a state that a search depends on, as text. Money that was added
// and taken away again may differ in the last digits.
func snapshot(s *state.State) []string {
	out := []string{fmt.Sprintf("price %s objective %.3f", s.Price(), s.Objective())}
	for i := range int32(s.Bins.Len()) {
		bin := s.Bins.At(i)
		out = append(out, fmt.Sprint("bin ", i, bin.Option, bin.Removed, len(bin.Pods), bin.Pods, s.Bins.Free(i)))
		for c := range s.Problem.Classes {
			class := &s.Problem.Classes[c]
			for level := range class.Levels {
				if !class.Plain {
					out = append(out, fmt.Sprint("room for ", c, level, s.TopologyRoom(class, level, i), s.Bins.CountFitting(class, i, 9)))
				}
			}
		}
	}
	for c := range s.Problem.Classes {
		out = append(out, fmt.Sprint("unplaced ", c, s.Unplaced.Of(int32(c))))
	}
	for line := range s.Problem.Space.Supply.Lines {
		out = append(out, fmt.Sprint("left ", line, s.Ledger.Left(line)))
	}
	return out
}
