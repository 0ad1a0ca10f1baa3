package cli

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/azure/price"
)

// regionOfZones is the region whose zones the nodes and NodePools of the input name, such as
// westeurope for westeurope-1. It is empty where they name none that nap knows, or several. Pods
// do not count: where they ask for a zone of another region, the answer must say so.
func (p *planInput) regionOfZones() string {
	found := ""
	for _, zone := range p.namedZones() {
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

// namedZones are the zones that nodes and NodePools name, some of them several times.
func (p *planInput) namedZones() []string {
	var zones []string
	for o := range p.objects.All() {
		if node, is := o.(*corev1.Node); is {
			zones = append(zones, node.Labels[corev1.LabelTopologyZone])
		}
	}
	for _, pool := range p.pools {
		for i := range pool.Spec.Template.Spec.Requirements {
			if r := &pool.Spec.Template.Spec.Requirements[i]; r.Key == corev1.LabelTopologyZone && r.Operator == corev1.NodeSelectorOpIn {
				zones = append(zones, r.Values...)
			}
		}
	}
	return zones
}
