package nodeclaims

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
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

// The drivers whose devices a node's pods claim are named once each, in order.
func TestClaimNamesTheDriversOfItsDevices(t *testing.T) {
	axes := append(model.NewAxes(), model.DeviceAxis("z.example.com"), model.WholeDeviceAxis("z.example.com"), model.DeviceAxis("a.example.com"),
		model.DeviceAxis("unused.example.com"))
	node := &model.NewNode{Requests: model.Resources{1000, 1 << 30, 0, 3, 1, 1, 2, 0}}
	if got := deviceDrivers(node, axes); got != "a.example.com,z.example.com" {
		t.Errorf("got %q", got)
	}
	if got := deviceDrivers(&model.NewNode{Requests: model.Resources{1000, 1 << 30, 0, 3}}, axes); got != "" {
		t.Errorf("a node without claims names %q", got)
	}
}

// Labels that a NodePool asks for are given to the node; those that Kubernetes sets are not.
func TestClaimHasTheLabelsThatItsPoolAsksFor(t *testing.T) {
	p := &model.Problem{
		Axes: model.NewAxes(), Pools: []model.Pool{{Name: "general", NodeLimit: -1}},
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{{
			Name: "D4", Capacity: model.Resources{4000, 0, 0, 110}, Offerings: []model.Offering{{Zone: "1", CapacityType: model.OnDemand}},
		}}}},
	}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1beta1.Group, Kind: "AKSNodeClass", Name: "default"}
	in := func(key, value string) karpv1.NodeSelectorRequirementWithMinValues {
		return karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
	}
	pool.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{in("team", "blue"), in(corev1.LabelHostname, "a")}
	nodes := []model.NewNode{{Offerings: []model.OfferingRef{{}}, Requests: model.Resources{1000, 0, 0, 1}, Daemons: model.Resources{}}}
	claim, _ := NewWriter(p, nodes, map[string]*karpv1.NodePool{"general": pool}).Write(&nodes[0], "general-1")
	if claim.Labels["team"] != "blue" {
		t.Errorf("the labels are %v, want team blue", claim.Labels)
	}
	if host, has := claim.Labels[corev1.LabelHostname]; has {
		t.Errorf("the node is to have the hostname %q of another", host)
	}
}

// Karpenter's annotations tell that a NodeOverlay decides a price or a size.
func TestClaimSaysThatOverlaysDecide(t *testing.T) {
	types := []model.InstanceType{
		{Name: "D2", Offerings: []model.Offering{{}, {PriceOverlaid: true}}}, {Name: "D4", CapacityOverlaid: true, Offerings: []model.Offering{{}}},
	}
	for _, c := range []struct {
		offerings []model.OfferingRef
		want      map[string]string
	}{
		{[]model.OfferingRef{{}}, map[string]string{}},
		{[]model.OfferingRef{{}, {Offering: 1}}, map[string]string{"karpenter.sh/price-overlay-applied": "true"}},
		{[]model.OfferingRef{{}, {InstanceType: 1}}, map[string]string{"karpenter.sh/capacity-overlay-applied": "true"}},
	} {
		got := map[string]string{}
		noteOverlays(got, &model.Catalog{InstanceTypes: types}, c.offerings)
		if !maps.Equal(got, c.want) {
			t.Errorf("%v: got %v, want %v", c.offerings, got, c.want)
		}
	}
}
