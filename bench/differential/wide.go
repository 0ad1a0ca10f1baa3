package differential

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/bench/workload"
)

// What only clusters of [GenerateWide] have.
const (
	diskLabel   = "example.com/disk"
	gpuResource = "nvidia.com/gpu"
)

// traits are those of [Traits] that a cluster has.
type traits map[string]bool

// Traits name what GenerateWide adds to clusters.
func Traits() []string {
	return []string{
		"preferences", "minValues", "reservations", "priorities", "namespaces", "disks", "containers", "devices",
		"starting", "operators", "topologies", "limits", "ports", "revisions", "taints", "choices", "daemons",
	}
}

// drawTraits draws which traits the cluster of a seed has. Each cluster has some, so
// that they meet each other in all combinations and what is left of a finding stays
// small.
func drawTraits(seed uint64) traits {
	r := newRNG(seed, 3)
	has := traits{}
	for _, trait := range Traits() {
		has[trait] = r.maybe(0.3)
	}
	return has
}

// GenerateWide draws the cluster of a seed with what Karpenter understands besides:
// preferences, minValues, reservations, priorities, namespaces, disks of all kinds,
// pods of several containers, devices, nodes that are starting, further operators and
// topologies, and limits of every resource.
func GenerateWide(seed uint64) (*workload.Input, error) {
	d, has := newDrawer(seed), drawTraits(seed)
	d.drawCatalog()
	pools := &widePools{rng: d.rng, has: has, catalog: d.catalog}
	pools.widenCatalog()
	d.drawPools()
	for i, p := range d.pools {
		pools.widenPool(p, i)
	}
	d.drawDaemons()
	if has["daemons"] {
		widenDaemons(d.rng, d.objects.all)
	}
	d.drawApps()
	d.drawNodes()
	apps := waitingApps(d.objects.all)
	rules := &wideRules{podRules: d.rules, has: has, catalog: d.catalog, apps: len(apps)}
	disks := &wideDisks{rng: d.rng, objects: d.objects}
	pods := &widePods{rng: d.rng, has: has, rules: rules, disks: disks}
	pods.widen(apps)
	if has["namespaces"] {
		d.objects.add(namespaces()...)
	}
	if has["disks"] {
		disks.storageClasses()
	}
	nodes := &wideNodes{rng: d.rng, has: has, rules: rules, disks: disks, objects: d.objects}
	nodes.widen()
	return d.input(seed)
}

// widenDaemons lets DaemonSets take ports and choose their nodes.
func widenDaemons(r rng, objects []client.Object) {
	for _, o := range objects {
		ds, ok := o.(*appsv1.DaemonSet)
		if !ok {
			continue
		}
		spec := &ds.Spec.Template.Spec
		switch r.IntN(5) {
		case 0:
			spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: int32(8000 + r.IntN(2)), Protocol: corev1.ProtocolTCP}}
		case 1:
			mustHave(spec, corev1.NodeSelectorRequirement{Key: cpuLabel, Operator: corev1.NodeSelectorOpGt, Values: []string{"4"}})
		case 2:
			mustHave(spec, corev1.NodeSelectorRequirement{Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"spot"}})
		case 3:
			mustHave(spec, corev1.NodeSelectorRequirement{
				Key: teamLabel, Operator: pick(r, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist),
			})
		case 4:
			moreContainers(r, spec)
			spec.Resources = nil
		}
	}
}
