package nodeclaims

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/nodeautoprovision/nap/internal/model"
)

// intersect returns the requirements of a claim's pool and its labels, intersected
// with what the pods of the node need.
func intersect(claim *karpv1.NodeClaim, needs model.Requirements) scheduling.Requirements {
	reqs := scheduling.NewRequirements()
	reqs.Add(scheduling.NewNodeSelectorRequirementsWithMinValues(claim.Spec.Requirements...).Values()...)
	reqs.Add(scheduling.NewLabelRequirements(claim.Labels).Values()...)
	for _, n := range needs {
		reqs.Add(scheduling.NewRequirement(n.Key, corev1.NodeSelectorOperator(n.Operator), n.Values...))
	}
	return reqs
}

// mayLack returns, by label key, whether the requirements are met by a node without
// the label, as team NotIn [red] is. The plan counts on the absence of such labels.
func mayLack(claim *karpv1.NodeClaim, needs model.Requirements) map[string]bool {
	out := map[string]bool{}
	observe := func(key string, operator corev1.NodeSelectorOperator) {
		lacks := operator == corev1.NodeSelectorOpNotIn || operator == corev1.NodeSelectorOpDoesNotExist
		before, known := out[key]
		out[key] = lacks && (before || !known)
	}
	for _, r := range claim.Spec.Requirements {
		observe(r.Key, r.Operator)
	}
	for _, r := range needs {
		observe(r.Key, corev1.NodeSelectorOperator(r.Operator))
	}
	for key := range claim.Labels {
		out[key] = false
	}
	return out
}

// customLabels returns a value for every required label that users define and that
// no property of a virtual machine decides. It is the first allowed value by name,
// so that equal plans make equal nodes. A label that the node may lack is left out.
func customLabels(reqs scheduling.Requirements, lacks map[string]bool) map[string]string {
	labels := map[string]string{}
	for key, r := range reqs {
		if karpv1.WellKnownLabels.Has(key) || karpv1.RestrictedLabels.Has(key) || lacks[key] {
			continue
		}
		if r.Operator() == corev1.NodeSelectorOpIn {
			labels[key] = slices.Min(r.Values())
			continue
		}
		// An open requirement is satisfied by any value, and some value is needed.
		if value := r.Any(); value != "" {
			labels[key] = value
		}
	}
	return labels
}

// withOfferings adds what can be bought: the instance types in the order of
// their price, the zones and the capacity types. Nothing else may be launched.
func withOfferings(reqs scheduling.Requirements, catalog model.Catalog,
	offerings []model.OfferingRef) []karpv1.NodeSelectorRequirementWithMinValues {
	var types, zones, capacities []string
	for _, ref := range offerings {
		it := &catalog.InstanceTypes[ref.InstanceType]
		offering := &it.Offerings[ref.Offering]
		types = appendNew(types, it.Name)
		zones = appendNew(zones, offering.Zone)
		capacities = appendNew(capacities, string(offering.CapacityType))
	}
	minTypes := reqs.Get(corev1.LabelInstanceTypeStable).MinValues()
	reqs.Add(scheduling.NewRequirement(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, capacities...))
	if !slices.Contains(zones, "") {
		reqs.Add(scheduling.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, zones...))
	}
	var out []karpv1.NodeSelectorRequirementWithMinValues
	for _, r := range reqs.NodeSelectorRequirements() {
		if r.Key != corev1.LabelInstanceTypeStable {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b karpv1.NodeSelectorRequirementWithMinValues) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator))
	})
	// Karpenter's algebra keeps sets; the order of the types is the ranking, so
	// they are written past it.
	return append(out, karpv1.NodeSelectorRequirementWithMinValues{
		Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: types, MinValues: minTypes,
	})
}

func appendNew(list []string, value string) []string {
	if slices.Contains(list, value) {
		return list
	}
	return append(list, value)
}
