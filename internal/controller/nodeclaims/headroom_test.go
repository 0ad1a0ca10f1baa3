package nodeclaims

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Two nodes of one plan share the room that their NodePool's limit leaves: when the
// first one may become a larger machine, the second one may not.
func TestAlternativesOfAPlanShareLimitHeadroom(t *testing.T) {
	size := func(name string, cpu int64) model.InstanceType {
		return model.InstanceType{
			Name: name, Capacity: model.Resources{cpu, 8 << 30, 0, 110}, Offerings: []model.Offering{{Zone: "z1", Available: true}},
		}
	}
	p := &model.Problem{
		Axes:     model.NewAxes(),
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{size("d2", 2000), size("d8", 8000)}}},
		Pools:    []model.Pool{{Name: "general", NodeLimit: -1, Limits: []model.Limit{{Axis: model.CPU, Value: 10_000}}}},
	}
	node := model.NewNode{Offerings: []model.OfferingRef{{InstanceType: 0}, {InstanceType: 1}}}
	nodes := []model.NewNode{node, node}
	h := newLimitHeadroom(p, nodes)
	first, second := h.take(&nodes[0]), h.take(&nodes[1])
	if len(first) != 2 || len(second) != 1 {
		t.Errorf("the nodes may become any of %d and %d machines, want 2 and 1: the limit is 10 cores", len(first), len(second))
	}
}
