package consolidate_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
)

// Where all preferred node affinity of pods holds on a node that is given back to save money, it
// holds on the nodes that they move to.
func TestMovesKeepNodePreferences(t *testing.T) {
	kept := 0
	rapid.Check(t, func(rt *rapid.T) {
		f := (&dice{T: rt, calm: true}).fleet()
		for i := range f.Movable {
			c := &f.Movable[i].PodClass
			c.Preferences, c.NodeRequirements, c.NodeAlternatives, c.VolumeAlternatives = nil, nil, nil, nil
			for k := range c.Spread {
				c.Spread[k].Hard = true
			}
			c.NodePreferences = []model.NodePreference{{Weight: 1, Requirements: model.Requirements{
				{Key: model.LabelZone, Operator: model.In, Values: []string{"z1"}},
			}}}
		}
		f.Problem.Policy.IgnorePreferences = false
		for _, command := range consolidate.Plan(f).Commands {
			if command.Reason != model.DisruptUnderutilized && command.Reason != model.DisruptEmpty {
				continue
			}
			others := map[int]int{} // how many pods of a class do not have what they prefer
			for _, n := range command.Nodes {
				for _, cp := range f.Usages[n].Pods {
					if f.Problem.Nodes[n].Labels[model.LabelZone] != "z1" {
						others[cp.Class] += len(cp.Pods)
					} else if len(cp.Pods) > 0 {
						kept++
					}
				}
			}
			for _, pl := range command.Placements {
				for _, cp := range pl.Pods {
					if f.Problem.Nodes[pl.Node].Labels[model.LabelZone] != "z1" {
						others[cp.Class] -= len(cp.Pods)
					}
				}
			}
			for class, left := range others {
				if left < 0 {
					rt.Errorf("%d pods of class %d lose what they prefer", -left, class)
				}
			}
		}
	})
	if t.Logf("%d times pods kept what they prefer", kept); kept < 5 {
		t.Errorf("only %d times pods kept what they prefer", kept)
	}
}
