package consolidate_test

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

// The disks of the one deployment are in z2, where its spread is content as long as
// there are no nodes elsewhere.
func TestPlanSpreadBlocksFirstNodeInZone(t *testing.T) {
	s := readFleet(t, `
type small cpu=4 memory=16 price=0.2 zones=z1
type large cpu=8 memory=32 price=0.8 zones=z2
pool general
pods disks cpu=1 memory=1 spread
pods web cpu=3 memory=1
node a general large zone=z2 : disks x1 web x1
node b general large zone=z2 : disks x1 web x2
`)
	disks := &s.fleet.Movable[s.classes["disks"]]
	disks.VolumeAlternatives = []model.Requirements{{{Key: model.LabelZone, Operator: model.In, Values: []string{"z2"}}}}
	moves := consolidate.Plan(s.fleet)
	for _, v := range verify.CheckMoves(s.fleet, moves) {
		t.Errorf("%s", v)
	}
	if len(moves.Commands) > 0 {
		t.Errorf("moves that leave pods of disks without a place: %s", s.text(moves))
	}
	if moves.Rejected[model.ReasonSpread] == 0 {
		t.Errorf("no move was rejected for the spread: %v", moves.Rejected)
	}
}
