package nodeclaims

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/model"
)

// A machine may cost 5 percent more than planned, and no more than the limit in dollars
// leaves, which the machines of a plan share.
func TestMostPriceKeepsToPlanAndLimit(t *testing.T) {
	for name, c := range map[string]struct {
		limit, cost float64
		want        [2]string
	}{
		"no limit":                {-1, 0, [2]string{"0.21", "0.21"}},
		"room for both":           {1, 0.58, [2]string{"0.21", "0.21"}},
		"room for one":            {1, 0.59, [2]string{"0.21", "0.2"}},
		"room for half of one":    {1, 0.595, [2]string{"0.205", "0.2"}},
		"the plan itself is over": {1, 0.9, [2]string{"0.2", "0.2"}},
	} {
		p := &model.Problem{
			Pools: []model.Pool{{Name: "general", NodeLimit: -1, Cost: model.USD(c.cost)}},
			Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{{
				Name: "D4", Capacity: model.Resources{4000}, Offerings: []model.Offering{{Zone: "1", CapacityType: model.OnDemand, Price: model.USD(0.20)}},
			}}}},
			Axes: model.NewAxes(),
		}
		if c.limit >= 0 {
			limit := model.USD(c.limit)
			p.Pools[0].CostLimit = &limit
		}
		node := model.NewNode{Offerings: []model.OfferingRef{{Price: model.USD(0.20)}}, Requests: model.Resources{1000}, Daemons: model.Resources{0}}
		nodes := []model.NewNode{node, node}
		pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
		pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1beta1.Group, Kind: "AKSNodeClass", Name: "default"}
		w := NewWriter(p, nodes, map[string]*karpv1.NodePool{"general": pool})
		for i := range nodes {
			claim, _ := w.Write(&nodes[i], "general-1")
			if got := claim.Annotations[v1beta1.AnnotationMostPrice]; got != c.want[i] {
				t.Errorf("%s: node %d may cost %s, want %s", name, i, got, c.want[i])
			}
		}
	}
}

// A machine that is planned as paid in advance may not cost what a further one does: where
// others have used that up, another plan may be better. It may have the cover of any line.
func TestMostPriceOfReservedMachineIsNotThatOfFurtherOnes(t *testing.T) {
	p := &model.Problem{
		Pools: []model.Pool{{Name: "general", NodeLimit: -1}},
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{{
			Name: "D4", Capacity: model.Resources{4000}, Offerings: []model.Offering{
				{Zone: "1", CapacityType: model.OnDemand, Price: model.USD(0.01), Uncovered: model.USD(0.20)},
				{Zone: "1", CapacityType: model.OnDemand, Price: model.USD(0.10), Uncovered: model.USD(0.20)},
				{Zone: "1", CapacityType: model.OnDemand, Price: model.USD(0.20)},
			},
		}}}},
		Axes: model.NewAxes(),
	}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1beta1.Group, Kind: "AKSNodeClass", Name: "default"}
	for offering, want := range []string{"0.105", "0.105", "0.21"} {
		ref := model.OfferingRef{Offering: offering, Price: p.Catalogs[0].InstanceTypes[0].Offerings[offering].Price}
		node := model.NewNode{Offerings: []model.OfferingRef{ref}, Requests: model.Resources{1000}, Daemons: model.Resources{0}}
		claim, _ := NewWriter(p, []model.NewNode{node}, map[string]*karpv1.NodePool{"general": pool}).Write(&node, "general-1")
		if most := claim.Annotations[v1beta1.AnnotationMostPrice]; most != want {
			t.Errorf("planned at %s it may cost %s, want %s", ref.Price, most, want)
		}
	}
}
