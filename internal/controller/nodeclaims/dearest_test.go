package nodeclaims

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// priced is a problem of one NodePool that may cost so much per hour and costs some of it,
// and a node that may be d2 or d8, spot or not; d2 spot is the best.
func priced(limit, cost float64) (*model.Problem, model.NewNode) {
	size := func(name string, spot, demand float64) model.InstanceType {
		return model.InstanceType{Name: name, Offerings: []model.Offering{
			{Zone: "z1", CapacityType: model.Spot, Price: model.USD(spot), Available: true},
			{Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(demand), Available: true},
		}}
	}
	p := &model.Problem{
		Axes:     model.NewAxes(),
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{size("d2", 0.02, 0.10), size("d8", 0.08, 0.40)}}},
		Pools:    []model.Pool{{Name: "general", NodeLimit: -1, CostLimit: new(model.Money), Cost: model.USD(cost)}},
	}
	*p.Pools[0].CostLimit = model.USD(limit)
	node := model.NewNode{}
	for _, at := range [][2]int{{0, 0}, {1, 0}, {0, 1}, {1, 1}} {
		price := p.Catalogs[0].InstanceTypes[at[0]].Offerings[at[1]].Price
		node.Offerings = append(node.Offerings, model.OfferingRef{InstanceType: at[0], Offering: at[1], Price: price})
	}
	return p, node
}

// A claim of d8 as spot and d2 as on demand would allow d8 on demand as well.
func TestClaimAllowsNothingDearerThanTheLimitLeaves(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit float64
		want  int
	}{
		{"everything fits", 0.40, 4}, {"both as spot, for both on demand are too dear", 0.39, 2},
		{"d8 as spot fits to the cent", 0.08, 2}, {"the best alone", 0.07, 1}, {"the best stays, whatever the limit", 0, 1},
	} {
		p, node := priced(c.limit, 0)
		nodes := []model.NewNode{node}
		h := newLimitHeadroom(p, nodes)
		if got := h.take(&nodes[0]); len(got) != c.want || got[0] != node.Best() {
			t.Errorf("%s: the claim has %v, want the first %d", c.name, got, c.want)
		}
	}
	p, node := priced(0.30, 0.22) // as 0.08
	nodes := []model.NewNode{node}
	if got := newLimitHeadroom(p, nodes).take(&nodes[0]); len(got) != 2 {
		t.Errorf("beside nodes that cost $0.22/h the claim has %v, want the two spot machines", got)
	}
}

func TestAlternativesOfAPlanShareWhatLimitInDollarsLeaves(t *testing.T) {
	p, node := priced(0.12, 0) // two at 0.02, and 0.08 for alternatives, of which one takes 0.06
	nodes := []model.NewNode{node, node}
	h := newLimitHeadroom(p, nodes)
	if first, second := h.take(&nodes[0]), h.take(&nodes[1]); len(first) != 2 || len(second) != 1 {
		t.Errorf("the nodes may become any of %d and %d machines, want 2 and 1", len(first), len(second))
	}
}
