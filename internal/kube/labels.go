package kube

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/model"
)

// CSIZoneLabel is the zone under the name that the Azure disk driver gives it.
// The driver writes an empty value for machines without a zone.
const CSIZoneLabel = "topology.disk.csi.azure.com/zone"

// regionalZone is the zone label's value for machines without a zone.
const regionalZone = "0"

// NormalizeLabel returns the stable name of a label that has several.
func NormalizeLabel(key string) string {
	switch key {
	case corev1.LabelFailureDomainBetaZone, CSIZoneLabel:
		return corev1.LabelTopologyZone
	case corev1.LabelFailureDomainBetaRegion:
		return corev1.LabelTopologyRegion
	case corev1.LabelInstanceType:
		return corev1.LabelInstanceTypeStable
	case "beta.kubernetes.io/arch":
		return corev1.LabelArchStable
	case "beta.kubernetes.io/os":
		return corev1.LabelOSStable
	}
	return key
}

// normalizeValue returns the value that a normalised key uses.
func normalizeValue(key, value string) string {
	if key == corev1.LabelTopologyZone && value == "" {
		return regionalZone
	}
	return value
}

// nodeLabels adds the stable names of aliases that a node carries without them.
// The map is copied only where something is missing.
func nodeLabels(labels map[string]string) map[string]string {
	out, copied := labels, false
	for k, v := range labels {
		stable := NormalizeLabel(k)
		if _, present := out[stable]; present && stable != k || stable == k {
			continue
		}
		if !copied {
			out, copied = maps.Clone(labels), true
		}
		out[stable] = normalizeValue(stable, v)
	}
	return out
}

func taints(in []corev1.Taint) []model.Taint {
	if len(in) == 0 {
		return nil
	}
	out := make([]model.Taint, len(in))
	for i, t := range in {
		out[i] = model.Taint{Key: t.Key, Value: t.Value, Effect: model.TaintEffect(t.Effect)}
	}
	return out
}
