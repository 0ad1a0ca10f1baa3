package cloudprovider

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Pods may use old names of labels, and volumes "" for the zone of a regional disk.
func TestOrderHasCanonicalRequirementsAndAllTaints(t *testing.T) {
	c := claim("general-a", need("beta.kubernetes.io/arch", "amd64"), need(corev1.LabelFailureDomainBetaZone, "", "eastus-1"),
		need("team", ""))
	c.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
	c.Spec.StartupTaints = []corev1.Taint{{Key: "cni", Effect: corev1.TaintEffectNoExecute}}
	o, err := OrderOf(c, &nodeclass.NodeClass{}, &instancetype.Built{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range o.Requirements {
		got = append(got, r.Key)
		got = append(got, r.Values...)
	}
	want := []string{"kubernetes.io/arch", "amd64", corev1.LabelTopologyZone, instancetype.RegionalZone, "eastus-1", "team", ""}
	if !slices.Equal(got, want) {
		t.Errorf("requirements %q, want %q", got, want)
	}
	if c.Spec.Requirements[1].Values[0] != "" {
		t.Error("the claim itself was changed")
	}
	taints := []model.Taint{{Key: "gpu", Value: "yes", Effect: model.NoSchedule}, {Key: "cni", Effect: model.NoExecute}}
	if !slices.Equal(o.Taints, taints) {
		t.Errorf("taints %v, want %v", o.Taints, taints)
	}
}
