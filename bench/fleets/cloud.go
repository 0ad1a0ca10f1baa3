package fleets

import (
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// cloud is what the cloud does to a cluster: it interrupts nodes and changes prices.
type cloud struct {
	cluster *Cluster
	// interruptions and market draw apart, so that neither changes the other.
	interruptions, market *rand.Rand
}

// movePrices makes a tenth of the instance types up to a fifth cheaper or dearer.
func (c *cloud) movePrices() {
	for _, t := range c.cluster.Types {
		if c.market.IntN(10) > 0 {
			continue
		}
		factor := 0.8 + 0.4*c.market.Float64()
		for _, o := range t.Offerings {
			o.Price *= factor
		}
	}
	for _, m := range c.cluster.nodes {
		i := slices.IndexFunc(c.cluster.Types, func(t *cloudprovider.InstanceType) bool {
			return t.Name == m.node.Labels[corev1.LabelInstanceTypeStable]
		})
		price, _ := c.cluster.Types[i].OfferingPrice(m.node.Labels[corev1.LabelTopologyZone], m.node.Labels[v1.CapacityTypeLabelKey])
		m.price = price
	}
}

// interrupt removes a node now and then; its pods wait. It returns how many pods.
func (c *cloud) interrupt() (pods int) {
	const perMinute = 0.002
	for _, name := range sorted(c.cluster.nodes) {
		if c.interruptions.Float64() >= perMinute {
			continue
		}
		for key, p := range c.cluster.pods {
			if p.Spec.NodeName == name {
				pods++
				c.cluster.wait(key)
			}
		}
		c.cluster.giveBack(name)
	}
	return pods
}
