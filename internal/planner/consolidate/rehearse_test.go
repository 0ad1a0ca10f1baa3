package consolidate_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
	"github.com/nodeautoprovision/nap/internal/planner/oracle"
)

// exact is a fleet in which large pods would fill a new machine to the brim and
// small ones a second.
const exact = `
type tiny cpu=2 memory=4 price=0.05
type mid cpu=8 memory=32 price=0.40
pool general
pods large cpu=2 memory=8
pods small cpu=0.5 memory=1
`

func TestAMoveThatOnlyAnObedientSchedulerMakesIsLeftOut(t *testing.T) {
	s := readFleet(t, exact+`
type odd cpu=9 memory=34 price=0.60
node a general odd : large x4 small x1
`)
	moves := consolidate.Plan(s.fleet)
	if len(moves.Moves) != 1 || len(moves.Moves[0].New) != 2 {
		t.Fatalf("planned %s, want a machine for the large pods and one for the small one", s.text(moves))
	}
	got := consolidate.Rehearse(s.fleet, moves)
	if len(got.Moves) != 0 || got.Evictions != 0 || got.After != got.Before {
		t.Errorf("left are %s", s.text(got))
	}
	if len(got.Stays) != 1 || got.Stays[0].Reason != model.ReasonTightFit || !strings.Contains(got.Stays[0].Message, "1 pod would need another machine") {
		t.Errorf("the node stays because of %v", got.Stays)
	}
}

func TestAMoveWithRoomToSpareStandsItsRehearsal(t *testing.T) {
	s := readFleet(t, exact+`
node a general mid : large x1 small x1
node b general mid : large x1 small x1
`)
	moves := consolidate.Plan(s.fleet)
	got := consolidate.Rehearse(s.fleet, moves)
	if len(moves.Moves) != 1 || s.text(got) != s.text(moves) {
		t.Errorf("planned %s, rehearsed %s", s.text(moves), s.text(got))
	}
}

// What is left after a rehearsal is an answer like any other.
func TestRehearsedMovesAreSafe(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := (&dice{T: rt}).fleet()
		for _, v := range oracle.CheckMoves(f, consolidate.Rehearse(f, consolidate.Plan(f))) {
			rt.Errorf("%s", v)
		}
	})
}
