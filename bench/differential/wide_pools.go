package differential

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/kube"
)

// widePools adds the traits of a cluster to what can be launched in it: to the
// instance types and the NodePools.
type widePools struct {
	rng
	has traits
	// catalog holds the instance types of the cluster.
	catalog *kube.CatalogFile
}

func (w *widePools) widenCatalog() {
	for i := range w.catalog.InstanceTypes {
		t := &w.catalog.InstanceTypes[i]
		if w.has["devices"] && w.maybe(0.4) {
			t.Capacity[gpuResource] = pick(w.rng, "1", "2", "4")
			for j := range t.Offerings {
				t.Offerings[j].Price = cents(t.Offerings[j].Price * 3)
			}
		}
		if w.has["choices"] {
			if t.Labels[diskLabel] = "premium"; w.maybe(0.5) {
				delete(t.Labels, diskLabel)
				t.Choices = map[string][]string{diskLabel: {"premium", "ultra"}}
			}
		}
		if w.has["reservations"] && w.maybe(0.4) {
			w.reserve(t)
		}
	}
}

// reserve adds reserved offerings, which cost less than the same machine on demand.
func (w *widePools) reserve(t *kube.FileInstanceType) {
	for _, o := range slices.Clone(t.Offerings) {
		if o.CapacityType != v1.CapacityTypeOnDemand || w.maybe(0.5) {
			continue
		}
		o.CapacityType, o.Price = v1.CapacityTypeReserved, cents(o.Price*pick(w.rng, 0.001, 0.1, 0.5))
		o.Reservation, o.Remaining = t.Name+"-"+o.Zone, 1+w.IntN(3)
		t.Offerings = append(t.Offerings, o)
	}
}

func (w *widePools) widenPool(p *v1.NodePool, i int) {
	spec := &p.Spec.Template.Spec
	if w.has["reservations"] {
		for j := range spec.Requirements {
			if r := &spec.Requirements[j]; r.Key == v1.CapacityTypeLabelKey && w.maybe(0.7) {
				r.Values = append(slices.Clone(r.Values), v1.CapacityTypeReserved)
			}
		}
	}
	if w.has["operators"] {
		for range w.IntN(3) {
			// "Contradictions place no pod", as with the rules of pods.
			r := w.poolRule()
			again := slices.ContainsFunc(spec.Requirements, func(o v1.NodeSelectorRequirementWithMinValues) bool { return o.Key == r.Key })
			if r.Key != teamLabel || p.Spec.Template.Labels[teamLabel] == "" && !again {
				spec.Requirements = append(spec.Requirements, r)
			}
		}
	}
	if w.has["minValues"] && w.maybe(0.7) {
		w.minValues(p)
	}
	if w.has["preferences"] && w.maybe(0.3) {
		spec.Taints = append(spec.Taints, corev1.Taint{Key: "rather-not", Effect: corev1.TaintEffectPreferNoSchedule})
	}
	if w.has["taints"] && i > 0 && w.maybe(0.5) {
		spec.Taints = append(spec.Taints, corev1.Taint{
			Key: "special", Value: pick(w.rng, "a", "b"), Effect: pick(w.rng, corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule),
		})
	}
	if w.has["limits"] && w.maybe(0.6) {
		w.limit(p)
	}
}

func (w *widePools) poolRule() v1.NodeSelectorRequirementWithMinValues {
	rule := func(key string, op corev1.NodeSelectorOperator, values ...string) v1.NodeSelectorRequirementWithMinValues {
		return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: op, Values: values}
	}
	return pick(w.rng,
		rule(cpuLabel, "Gte", pick(w.rng, "4", "8")),
		rule(cpuLabel, "Lte", pick(w.rng, "8", "16")),
		rule(cpuLabel, corev1.NodeSelectorOpGt, pick(w.rng, "2", "4")),
		rule(cpuLabel, corev1.NodeSelectorOpIn, "4", "8", "16"),
		rule(cpuLabel, corev1.NodeSelectorOpNotIn, "2"),
		rule(familyLabel, corev1.NodeSelectorOpIn, "general", pick(w.rng, "memory", "compute")),
		rule(familyLabel, corev1.NodeSelectorOpExists),
		rule(corev1.LabelTopologyZone, corev1.NodeSelectorOpNotIn, w.zone()),
		rule(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpNotIn, pick(w.rng, w.catalog.InstanceTypes...).Name),
		rule(teamLabel, corev1.NodeSelectorOpIn, "red", "blue"),
		rule(teamLabel, corev1.NodeSelectorOpExists),
		rule(teamLabel, corev1.NodeSelectorOpNotIn, "red"),
		rule(teamLabel, corev1.NodeSelectorOpDoesNotExist),
	)
}

func (w *widePools) minValues(p *v1.NodePool) {
	least := 2 + w.IntN(2)
	key := pick(w.rng, corev1.LabelInstanceTypeStable, corev1.LabelInstanceTypeStable, familyLabel, cpuLabel, corev1.LabelTopologyZone)
	p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements, v1.NodeSelectorRequirementWithMinValues{
		Key: key, Operator: corev1.NodeSelectorOpExists, MinValues: &least,
	})
}

func (w *widePools) limit(p *v1.NodePool) {
	if p.Spec.Limits == nil {
		p.Spec.Limits = v1.Limits{}
	}
	for range 1 + w.IntN(2) {
		switch w.IntN(6) {
		case 0:
			p.Spec.Limits["nodes"] = *resource.NewQuantity(int64(1+w.IntN(5)), resource.DecimalSI)
		case 1:
			p.Spec.Limits[corev1.ResourceMemory] = *resource.NewQuantity(int64(32+w.IntN(400))<<30, resource.BinarySI)
		case 2:
			p.Spec.Limits[corev1.ResourcePods] = *resource.NewQuantity(int64(10+w.IntN(300)), resource.DecimalSI)
		case 3:
			p.Spec.Limits[gpuResource] = *resource.NewQuantity(int64(w.IntN(5)), resource.DecimalSI)
		case 4:
			p.Spec.Limits[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(int64(100+w.IntN(500))<<30, resource.BinarySI)
		case 5:
			p.Spec.Limits[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(4000+w.IntN(60_000)), resource.DecimalSI)
		}
	}
}
