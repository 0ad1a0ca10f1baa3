package cloudprovider

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/model"
)

// OrderOf converts a claim for machines of a catalogue. An error means that no machine of
// Azure's could ever be what the claim asks for.
func OrderOf(claim *karpv1.NodeClaim, class *nodeclass.NodeClass, catalog *instancetype.Built) (azure.Order, error) {
	requests, err := vector(claim.Spec.Resources.Requests, catalog.Axes())
	if err != nil {
		return azure.Order{}, err
	}
	o := azure.Order{
		Claim: claim.Name, Pool: claim.Labels[karpv1.NodePoolLabelKey], Class: class, Catalog: catalog,
		Requests: requests, Labels: claim.Labels,
	}
	for _, r := range claim.Spec.Requirements {
		requirement := model.Requirement{Key: r.Key, Operator: model.Operator(r.Operator), Values: slices.Clone(r.Values)}
		if key, ok := karpv1.NormalizedLabels[r.Key]; ok {
			requirement.Key = key
		}
		for i, v := range requirement.Values {
			if normal, ok := karpv1.NormalizedLabelValues[requirement.Key][v]; ok {
				requirement.Values[i] = normal
			}
		}
		if err := requirement.Validate(); err != nil {
			return azure.Order{}, err
		}
		o.Requirements = append(o.Requirements, requirement)
	}
	for _, t := range slices.Concat(claim.Spec.Taints, claim.Spec.StartupTaints) {
		o.Taints = append(o.Taints, model.Taint{Key: t.Key, Value: t.Value, Effect: model.TaintEffect(t.Effect)})
	}
	return o, nil
}

// vector puts requests on the catalogue's axes.
func vector(list corev1.ResourceList, axes model.Axes) (model.Resources, error) {
	out := make(model.Resources, len(axes))
	for name, quantity := range list {
		axis := axes.Index(string(name))
		switch {
		case quantity.IsZero():
		case axis < 0:
			return nil, fmt.Errorf("no VM size of Azure has the resource %s", name)
		case axis == model.CPU:
			out[axis] = quantity.MilliValue()
		default:
			out[axis] = quantity.Value()
		}
	}
	return out, nil
}

// resourceList is the inverse of vector.
func resourceList(r model.Resources, axes model.Axes) corev1.ResourceList {
	out := corev1.ResourceList{}
	for axis, name := range axes {
		amount := r.Get(axis)
		switch {
		case axis == model.CPU:
			out[corev1.ResourceName(name)] = *resource.NewMilliQuantity(amount, resource.DecimalSI)
		case axis == model.Memory:
			out[corev1.ResourceName(name)] = *resource.NewQuantity(amount, resource.BinarySI)
		case amount != 0 || axis <= model.Pods:
			out[corev1.ResourceName(name)] = *resource.NewQuantity(amount, resource.DecimalSI)
		}
	}
	return out
}
