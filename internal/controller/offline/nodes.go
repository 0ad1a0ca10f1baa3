package offline

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/model"
)

// LabelPriority is AKS's label of nodes of an agent pool that are spot machines.
const LabelPriority = "kubernetes.azure.com/scalesetpriority"

// OfferingOf is what a node was bought as, by its size, zone and capacity type, and whether
// the catalogue has a price for it; without one of its zone it is that of another zone.
// Nodes of agent pools say of spot in a label of AKS's.
func (s *Source) OfferingOf(n *corev1.Node) (model.Offering, bool) {
	catalog := s.ForClass(s.ClassOf(n.Labels[v1.NodePoolLabelKey]))
	wanted := model.OnDemand
	if n.Labels[v1.CapacityTypeLabelKey] == v1.CapacityTypeSpot || n.Labels[LabelPriority] == "spot" {
		wanted = model.Spot
	}
	for i := range catalog.InstanceTypes {
		t := &catalog.InstanceTypes[i]
		if !strings.EqualFold(t.Name, n.Labels[corev1.LabelInstanceTypeStable]) {
			continue
		}
		found, sold := model.Offering{}, false
		for j := range t.Offerings {
			o := &t.Offerings[j]
			if o.CapacityType != wanted {
				continue
			}
			if o.Zone == n.Labels[corev1.LabelTopologyZone] {
				return *o, true
			}
			found, sold = *o, true
		}
		return found, sold
	}
	return model.Offering{}, false
}

// PriceOf is what a node costs per hour, see [Source.OfferingOf].
func (s *Source) PriceOf(n *corev1.Node) (model.Money, bool) {
	o, known := s.OfferingOf(n)
	return o.Price, known
}

// NodePoolNote says that [DefaultNodePool] is planned with.
const NodePoolNote = "planning with the default one (linux, amd64, on-demand, D family)"

// DefaultNodePool is the NodePool that AKS creates by default.
func DefaultNodePool() *v1.NodePool {
	in := func(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
		return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	np := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	np.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"}
	np.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{
		in(corev1.LabelArchStable, "amd64"), in(corev1.LabelOSStable, "linux"),
		in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand), in("karpenter.azure.com/sku-family", "D"),
	}
	return np
}
