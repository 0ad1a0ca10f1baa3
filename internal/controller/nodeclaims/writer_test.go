package nodeclaims

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Karpenter waits until a node reports all that its NodeClaim asks for. What a driver may
// bring in place of a device plugin is never reported.
func TestClaimAsksForWhatKubeletsReport(t *testing.T) {
	p := &model.Problem{
		Axes: model.NewAxes("example.com/gpu", "example.com/nic"), ByDriver: []string{"example.com/gpu"},
		Pools: []model.Pool{{Name: "general", NodeLimit: -1}},
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{{
			Name: "D4", Capacity: model.Resources{4000, 0, 0, 110, 1, 1}, Offerings: []model.Offering{{Zone: "1", CapacityType: model.OnDemand}},
		}}}},
	}
	nodes := []model.NewNode{{Offerings: []model.OfferingRef{{}}, Requests: model.Resources{1000, 0, 0, 1, 1, 1}, Daemons: model.Resources{}}}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1beta1.Group, Kind: "AKSNodeClass", Name: "default"}
	claim, _ := NewWriter(p, nodes, map[string]*karpv1.NodePool{"general": pool}).Write(&nodes[0], "general-1")
	asked := claim.Spec.Resources.Requests
	if _, gpu := asked["example.com/gpu"]; gpu || len(asked) != 3 {
		t.Errorf("the NodeClaim asks for %v, want cpu, pods and example.com/nic", asked)
	}
}
