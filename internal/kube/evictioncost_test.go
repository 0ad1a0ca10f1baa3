package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEvictionCostOfAnnotations(t *testing.T) {
	const unit = 1.0 / (1 << 27)
	const disruption, deletion = "karpenter.sh/disruption-cost", "controller.kubernetes.io/pod-deletion-cost"
	for name, row := range map[string]struct {
		annotations          map[string]string
		unmanaged, ofManaged float64
	}{
		"none":              {nil, 1, 1},
		"disruption cost":   {map[string]string{disruption: "500"}, 1 + 500*unit, 1 + 500*unit},
		"deletion cost":     {map[string]string{deletion: "-500"}, 1 - 500*unit, 1},
		"both":              {map[string]string{disruption: "7", deletion: "500"}, 1 + 7*unit, 1 + 7*unit},
		"no number":         {map[string]string{disruption: "much", deletion: "500"}, 1, 1},
		"fraction":          {map[string]string{deletion: "1.5"}, 1, 1},
		"more than 32 bits": {map[string]string{deletion: "3000000000"}, 1, 1},
		"at most ten":       {map[string]string{disruption: "2147483647"}, 10, 10},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: row.annotations}}
		for managed, want := range map[bool]float64{false: row.unmanaged, true: row.ofManaged} {
			in := newInterner(Settings{DeletionCostManaged: managed})
			if got := in.pod(pod, false).EvictionCost; got != want {
				t.Errorf("%s, deletion costs managed %t: %g, want %g", name, managed, got, want)
			}
		}
	}
}
