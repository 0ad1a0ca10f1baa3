package nodeclaims

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
)

// Karpenter makes the first nodes of a static pool, nap their replacements: their
// claims ask for the same machines.
func TestWholeAsksAsKarpenterDoes(t *testing.T) {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "static"}}
	pool.Spec.Replicas = ptr.To(int64(2))
	pool.Spec.Template.Labels = map[string]string{"kubernetes.azure.com/mode": "system", "team": "blue"}
	pool.Spec.Template.Spec = karpv1.NodeClaimTemplateSpec{
		NodeClassRef: &karpv1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"},
		Requirements: []karpv1.NodeSelectorRequirementWithMinValues{
			{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"on-demand"}},
			{Key: "kubernetes.azure.com/mode", Operator: corev1.NodeSelectorOpExists},
			{Key: "tier", Operator: corev1.NodeSelectorOpIn, Values: []string{"gold"}},
		},
	}
	ours, theirs := Whole(pool, "static-1"), scheduling.NewNodeClaimTemplate(pool).ToNodeClaim()
	byKey := cmpopts.SortSlices(func(a, b karpv1.NodeSelectorRequirementWithMinValues) bool { return a.Key < b.Key })
	// These two say nothing of the machine: Karpenter adds them to match DaemonSets.
	theirs.Spec.Requirements = slices.DeleteFunc(theirs.Spec.Requirements, func(r karpv1.NodeSelectorRequirementWithMinValues) bool {
		return r.Key == karpv1.NodeRegisteredLabelKey || r.Key == karpv1.NodeInitializedLabelKey
	})
	if diff := cmp.Diff(theirs.Spec.Requirements, ours.Spec.Requirements, byKey); diff != "" {
		t.Errorf("requirements (-Karpenter's +nap's):\n%s", diff)
	}
	if diff := cmp.Diff(theirs.Labels, ours.Labels); diff != "" {
		t.Errorf("labels (-Karpenter's +nap's):\n%s", diff)
	}
}
