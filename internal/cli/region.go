package cli

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/kube"
)

// regionOfZones is the region whose zones these are, such as westeurope for westeurope-1. It is
// empty where there are none that nap knows, or those of several.
func regionOfZones(zones []string) string {
	found := ""
	for _, zone := range zones {
		region, number, is := strings.Cut(zone, "-")
		if !is || number == "" {
			continue
		}
		if name, err := price.RegionName(region); err != nil || name != region {
			continue
		}
		if found != "" && found != region {
			return ""
		}
		found = region
	}
	return found
}

// zonesNamed are the zones that nodes and NodePools name, some of them several times. Pods do not
// count: where they ask for a zone of another region, the answer must say so.
func zonesNamed(objects *kube.Objects, pools map[string]*v1.NodePool) []string {
	var zones []string
	for _, o := range objects.Distinct() {
		if node, is := o.(*corev1.Node); is {
			zones = append(zones, node.Labels[corev1.LabelTopologyZone])
		}
	}
	for _, pool := range pools {
		for i := range pool.Spec.Template.Spec.Requirements {
			if r := &pool.Spec.Template.Spec.Requirements[i]; r.Key == corev1.LabelTopologyZone && r.Operator == corev1.NodeSelectorOpIn {
				zones = append(zones, r.Values...)
			}
		}
	}
	return zones
}
