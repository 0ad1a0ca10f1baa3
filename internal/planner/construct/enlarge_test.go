package construct

import (
	"fmt"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
)

// ladder is a class of many pods and a catalogue of so many sizes, each cheaper and larger than the
// one before: every one is a better option for a node that has to grow.
func ladder(sizes int) *instance.Instance {
	p := &model.Problem{Axes: model.NewAxes(), Pools: []model.Pool{{Name: "default", NodeLimit: -1}}}
	var c model.Catalog
	for i := range sizes {
		c.InstanceTypes = append(c.InstanceTypes, model.InstanceType{
			Name: fmt.Sprintf("t%03d", i), Capacity: model.Resources{int64(8_000 + i), 64 * gi, 100 * gi, 110},
			Offerings: []model.Offering{{Zone: "z", CapacityType: model.OnDemand, Price: model.Money(1_000_000 - 1_000*i), Available: true}},
		})
	}
	p.Catalogs = []model.Catalog{c}
	class := model.PodClass{Owner: "app", Requests: model.Resources{1_000, gi, 0, 1}, Pods: make([]model.PodRef, 50)}
	class.Namespace = "default"
	p.Classes = append(p.Classes, class)
	return instance.New(feasible.New(p, nil))
}

// nodeToGrow is a new node of the first of so many sizes, with one pod of the class of a ladder.
func nodeToGrow(sizes int) (*placement.State, *instance.Class, *placement.Place) {
	in := ladder(sizes)
	s := placement.New(in, nil, placement.Decision{}, []int{0}, false)
	class := &in.Classes[0]
	pl := s.NewNode(class.Levels[0].Options.Next(0))
	s.Buy(pl)
	s.Put(class, 0, 1, pl)
	return s, class, pl
}

// What is the same for all options is made once: how many pods a node grows for is found by halves,
// and each look at a number goes over all options.
func TestEnlargeAllocatesNothingForEachOption(t *testing.T) {
	allocations := func(sizes int) float64 {
		s, class, pl := nodeToGrow(sizes)
		return testing.AllocsPerRun(20, func() {
			if n := (enlarger{state: s}).enlarge(class, 0, 20, pl); n != 7 {
				t.Fatalf("a node of 8 cores with a pod of one grows for %d pods, want 7", n)
			}
		})
	}
	if few, many := allocations(4), allocations(400); many > few+8 {
		t.Errorf("%g allocations for 4 options, %g for 400", few, many)
	}
}

// What a node that grows costs is counted: large neighbourhood search, which lets nodes grow by the
// thousand, ends by it.
func TestEnlargeCountsTheOptionsItLooksAt(t *testing.T) {
	steps := func(sizes int) time.Duration {
		s, class, pl := nodeToGrow(sizes)
		clock := meter.Steps()
		(enlarger{state: s, work: clock.Work()}).enlarge(class, 0, 20, pl)
		return clock.Now()
	}
	if few, many := steps(4), steps(400); many < 50*few || few <= 0 {
		t.Errorf("%v of work for 4 options, %v for 400", few, many)
	}
}
