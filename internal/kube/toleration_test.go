package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/model"
)

func TestTolerationsThatCompareAreRead(t *testing.T) {
	for _, c := range []struct {
		operator corev1.TolerationOperator
		value    string
		want     model.Toleration
		invalid  bool
	}{
		{corev1.TolerationOpGt, "950", model.Toleration{Key: "sla", Compare: model.Gt, Value: "950"}, false},
		{corev1.TolerationOpLt, "-1", model.Toleration{Key: "sla", Compare: model.Lt, Value: "-1"}, false},
		{corev1.TolerationOpGt, "high", model.Toleration{}, true},
		{"Near", "1", model.Toleration{}, true},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "sla", Operator: c.operator, Value: c.value}}}}
		spec := readSpec(pod)
		if (spec.Invalid != "") != c.invalid {
			t.Errorf("%s %s: invalid %q", c.operator, c.value, spec.Invalid)
		}
		if !c.invalid && (len(spec.Tolerations) != 1 || spec.Tolerations[0] != c.want) {
			t.Errorf("%s %s is read as %+v, want %+v", c.operator, c.value, spec.Tolerations, c.want)
		}
	}
}
