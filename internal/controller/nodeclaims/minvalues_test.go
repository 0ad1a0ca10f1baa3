package nodeclaims

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/model"
)

// write writes the claim of a node that may be D2, D4, D8 or D16, from a NodePool that
// asks for so many instance types and has a limit of 4 CPUs. The node needs D2.
func write(t *testing.T, minValues int, relax bool) (types []string, claim *karpv1.NodeClaim) {
	t.Helper()
	p := &model.Problem{Axes: model.NewAxes(), Catalogs: []model.Catalog{{}}, Policy: model.Policy{RelaxMinValues: relax}}
	node := &model.NewNode{}
	for i, cpu := range []int64{2, 4, 8, 16} {
		p.Catalogs[0].InstanceTypes = append(p.Catalogs[0].InstanceTypes, model.InstanceType{
			Name: []string{"D2", "D4", "D8", "D16"}[i], Capacity: model.Resources{cpu * 1000, cpu << 32, 0, 110},
			Offerings: []model.Offering{{Zone: "eastus-1", CapacityType: model.OnDemand}},
		})
		// Dearest of the alternatives first in size: the order is that of prices, not of sizes.
		node.Offerings = append(node.Offerings, model.OfferingRef{InstanceType: []int{0, 3, 2, 1}[i], Price: model.USD(float64(i))})
	}
	p.Pools = []model.Pool{{
		Name: "strict", Limits: []model.Limit{{Axis: model.CPU, Value: 4000}}, Usage: model.Resources{0, 0, 0, 0},
		Requirements: model.Requirements{{Key: model.LabelInstanceType, Operator: model.Exists, MinValues: minValues}},
	}}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "strict"}}
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"}
	pool.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
		{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpExists, MinValues: ptr.To(minValues)},
	}
	nodes := []model.NewNode{*node}
	claim, _ = NewWriter(p, nodes, map[string]*karpv1.NodePool{"strict": pool}).Write(&nodes[0], "strict-1")
	for _, r := range claim.Spec.Requirements {
		if r.Key == corev1.LabelInstanceTypeStable {
			return r.Values, claim
		}
	}
	t.Fatal("the claim names no instance types")
	return nil, nil
}

func minValuesOf(claim *karpv1.NodeClaim) int {
	for _, r := range claim.Spec.Requirements {
		if r.Key == corev1.LabelInstanceTypeStable && r.MinValues != nil {
			return *r.MinValues
		}
	}
	return 0
}

func TestStrictMinValuesOutweighLimitHeadroom(t *testing.T) {
	types, claim := write(t, 3, false)
	// The smallest that the limit does not leave is added, in the order of prices.
	if want := []string{"D2", "D8", "D4"}; !slices.Equal(types, want) {
		t.Errorf("the claim names %v, want %v", types, want)
	}
	if got := minValuesOf(claim); got != 3 || claim.Annotations[karpv1.NodeClaimMinValuesRelaxedAnnotationKey] != "" {
		t.Errorf("minValues is %d, annotations %v, want 3 and none", got, claim.Annotations)
	}
	if types, _ := write(t, 1, false); !slices.Equal(types, []string{"D2", "D4"}) {
		t.Errorf("where it need not, the claim names %v, want those within the limit", types)
	}
}

func TestBestEffortLowersMinValues(t *testing.T) {
	types, claim := write(t, 5, true)
	if got := minValuesOf(claim); got != len(types) || got != 2 {
		t.Errorf("minValues is %d for %v, want as many as there are", got, types)
	}
	if claim.Annotations[karpv1.NodeClaimMinValuesRelaxedAnnotationKey] != "true" {
		t.Errorf("the annotations are %v, want the one that says so", claim.Annotations)
	}
	if _, claim := write(t, 2, true); claim.Annotations[karpv1.NodeClaimMinValuesRelaxedAnnotationKey] != "" || minValuesOf(claim) != 2 {
		t.Errorf("where it is met, minValues is %d, annotations %v", minValuesOf(claim), claim.Annotations)
	}
}
