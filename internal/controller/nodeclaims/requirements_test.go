package nodeclaims

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/model"
)

func TestCustomLabelsOmitForbiddenValues(t *testing.T) {
	rule := func(op corev1.NodeSelectorOperator, values ...string) karpv1.NodeSelectorRequirementWithMinValues {
		return karpv1.NodeSelectorRequirementWithMinValues{Key: "team", Operator: op, Values: values}
	}
	for name, c := range map[string]struct {
		pool  []karpv1.NodeSelectorRequirementWithMinValues
		needs model.Requirements
		want  func(value string, has bool) bool
	}{
		"forbidden values": {
			pool: []karpv1.NodeSelectorRequirementWithMinValues{rule(corev1.NodeSelectorOpNotIn, "red")},
			want: func(_ string, has bool) bool { return !has },
		},
		"a value that pods need": {
			pool:  []karpv1.NodeSelectorRequirementWithMinValues{rule(corev1.NodeSelectorOpNotIn, "red")},
			needs: model.Requirements{{Key: "team", Operator: model.In, Values: []string{"blue"}}},
			want:  func(value string, _ bool) bool { return value == "blue" },
		},
		"forbidden values of a label that must exist": {
			pool: []karpv1.NodeSelectorRequirementWithMinValues{rule(corev1.NodeSelectorOpNotIn, "red"), rule(corev1.NodeSelectorOpExists)},
			want: func(value string, has bool) bool { return has && value != "red" },
		},
		"listed values": {
			pool: []karpv1.NodeSelectorRequirementWithMinValues{rule(corev1.NodeSelectorOpIn, "red", "blue")},
			want: func(value string, _ bool) bool { return value == "blue" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "main"}}
			pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"}
			pool.Spec.Template.Spec.Requirements = c.pool
			claim := FromTemplate(pool, "main-1")
			value, has := customLabels(intersect(claim, c.needs), mayLack(claim, c.needs))["team"]
			if !c.want(value, has) {
				t.Errorf("the node gets team %q (%t)", value, has)
			}
		})
	}
}
