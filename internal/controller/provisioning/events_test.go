package provisioning

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

func TestTrap21EventNamesPoolThatMatchesNoSize(t *testing.T) {
	none := nodePool(func(np *karpv1.NodePool) {
		np.Spec.Template.Spec.Requirements = append(np.Spec.Template.Spec.Requirements,
			karpv1.NodeSelectorRequirementWithMinValues{
				Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"Standard_A1_v2"},
			})
	})
	w := newWorld(t, objects(none, waitingPods(1, "1"))...)
	w.plan()
	w.wantClaims(0)
	got := w.recorder.of("FailedScheduling")
	if len(got) != 1 || !strings.Contains(got[0], "NodePool general") || !strings.Contains(got[0], "Standard_A1_v2") {
		t.Errorf("the events are %q, want one that names the NodePool and what it asks for", got)
	}
}
