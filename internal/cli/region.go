package cli

import (
	"fmt"
	"maps"
	"slices"
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

// otherRegion is a note on nodes that are in other regions than the one that is chosen for the prices,
// or "": most of them have no price then, and the others a wrong one.
func (f *catalogFlags) otherRegion(objects *kube.Objects) string {
	if f.file != "" || f.region == "" {
		return ""
	}
	region, nodes := f.region, map[string]int{}
	for _, node := range objectsOf[*corev1.Node](objects.Distinct()) {
		in := node.Labels[corev1.LabelTopologyRegion]
		if in == "" {
			in = regionOfZones([]string{node.Labels[corev1.LabelTopologyZone]})
		}
		if in != "" && in != region {
			nodes[in]++
		}
	}
	var where []string
	for _, in := range slices.Sorted(maps.Keys(nodes)) {
		where = append(where, fmt.Sprintf("%s in %s", plural(nodes[in], "node"), in))
	}
	if len(where) == 0 {
		return ""
	}
	return fmt.Sprintf("the input has %s, and prices are of %s: leave --region out, or give that of the nodes",
		strings.Join(where, " and "), region)
}
