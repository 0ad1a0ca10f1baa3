package differential

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/bench/workload"
	"github.com/nodeautoprovision/nap/internal/kube"
)

// What only clusters of [GenerateWide] have.
const (
	diskLabel   = "example.com/disk"
	gpuResource = "nvidia.com/gpu"
	diskDriver  = "disk.csi.azure.com"
)

// wide draws what [Generate] leaves out. Each cluster has some of it, so that its
// kinds meet each other in all combinations and what is left of a finding stays small.
type wide struct {
	*drawer
	// apps are the pods that wait, by what they are copies of.
	apps [][]*corev1.Pod
}

// GenerateWide draws the cluster of a seed with what Karpenter understands besides:
// preferences, minValues, reservations, priorities, namespaces, disks of all kinds,
// pods of several containers, devices, nodes that are starting, further operators and
// topologies, and limits of every resource.
func GenerateWide(seed uint64) (*workload.Input, error) {
	w := &wide{drawer: newDrawer(seed)}
	traits := rand.New(rand.NewPCG(seed, 3))
	has := map[string]bool{}
	for _, trait := range Traits() {
		has[trait] = traits.Float64() < 0.3
	}
	return w.draw(seed, has)
}

// Traits name what GenerateWide adds to clusters.
func Traits() []string {
	return []string{
		"preferences", "minValues", "reservations", "priorities", "namespaces", "disks", "containers", "devices",
		"starting", "operators", "topologies", "limits", "ports", "revisions", "taints", "choices", "daemons",
	}
}

func (w *wide) draw(seed uint64, has map[string]bool) (*workload.Input, error) {
	w.drawCatalog()
	w.widenCatalog(has)
	w.drawPools()
	for i, p := range w.pools {
		w.widenPool(p, i, has)
	}
	w.drawDaemons()
	w.widenDaemons(has)
	w.drawApps()
	w.drawNodes()
	w.widenPods(has)
	w.widenNodes(has)
	return w.input(seed)
}

func (w *wide) widenCatalog(has map[string]bool) {
	for i := range w.catalog.InstanceTypes {
		t := &w.catalog.InstanceTypes[i]
		if has["devices"] && w.maybe(0.4) {
			t.Capacity[gpuResource] = pick(w.drawer, "1", "2", "4")
			for j := range t.Offerings {
				t.Offerings[j].Price = cents(t.Offerings[j].Price * 3)
			}
		}
		if has["choices"] {
			if t.Labels[diskLabel] = "premium"; w.maybe(0.5) {
				delete(t.Labels, diskLabel)
				t.Choices = map[string][]string{diskLabel: {"premium", "ultra"}}
			}
		}
		if has["reservations"] && w.maybe(0.4) {
			w.reserve(t)
		}
	}
}

// reserve adds reserved offerings, which cost less than the same machine on demand.
func (w *wide) reserve(t *kube.FileInstanceType) {
	for _, o := range slices.Clone(t.Offerings) {
		if o.CapacityType != v1.CapacityTypeOnDemand || w.maybe(0.5) {
			continue
		}
		o.CapacityType, o.Price = v1.CapacityTypeReserved, cents(o.Price*pick(w.drawer, 0.001, 0.1, 0.5))
		o.Reservation, o.Remaining = t.Name+"-"+o.Zone, 1+w.IntN(3)
		t.Offerings = append(t.Offerings, o)
	}
}

func (w *wide) widenPool(p *v1.NodePool, i int, has map[string]bool) {
	spec := &p.Spec.Template.Spec
	if has["reservations"] {
		for j := range spec.Requirements {
			if r := &spec.Requirements[j]; r.Key == v1.CapacityTypeLabelKey && w.maybe(0.7) {
				r.Values = append(slices.Clone(r.Values), v1.CapacityTypeReserved)
			}
		}
	}
	if has["operators"] {
		for range w.IntN(3) {
			// "Contradictions place nobody", as with the rules of pods.
			r := w.poolRule()
			again := slices.ContainsFunc(spec.Requirements, func(o v1.NodeSelectorRequirementWithMinValues) bool { return o.Key == r.Key })
			if r.Key != teamLabel || p.Spec.Template.Labels[teamLabel] == "" && !again {
				spec.Requirements = append(spec.Requirements, r)
			}
		}
	}
	if has["minValues"] && w.maybe(0.7) {
		w.minValues(p)
	}
	if has["preferences"] && w.maybe(0.3) {
		spec.Taints = append(spec.Taints, corev1.Taint{Key: "rather-not", Effect: corev1.TaintEffectPreferNoSchedule})
	}
	if has["taints"] && i > 0 && w.maybe(0.5) {
		spec.Taints = append(spec.Taints, corev1.Taint{Key: "special", Value: pick(w.drawer, "a", "b"), Effect: pick(w.drawer, corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule)})
	}
	if has["limits"] && w.maybe(0.6) {
		w.limit(p)
	}
}

func (w *wide) poolRule() v1.NodeSelectorRequirementWithMinValues {
	rule := func(key string, op corev1.NodeSelectorOperator, values ...string) v1.NodeSelectorRequirementWithMinValues {
		return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: op, Values: values}
	}
	return pick(w.drawer,
		rule(cpuLabel, "Gte", pick(w.drawer, "4", "8")),
		rule(cpuLabel, "Lte", pick(w.drawer, "8", "16")),
		rule(cpuLabel, corev1.NodeSelectorOpGt, pick(w.drawer, "2", "4")),
		rule(cpuLabel, corev1.NodeSelectorOpIn, "4", "8", "16"),
		rule(cpuLabel, corev1.NodeSelectorOpNotIn, "2"),
		rule(familyLabel, corev1.NodeSelectorOpIn, "general", pick(w.drawer, "memory", "compute")),
		rule(familyLabel, corev1.NodeSelectorOpExists),
		rule(corev1.LabelTopologyZone, corev1.NodeSelectorOpNotIn, w.zone()),
		rule(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpNotIn, pick(w.drawer, w.catalog.InstanceTypes...).Name),
		rule(teamLabel, corev1.NodeSelectorOpIn, "red", "blue"),
		rule(teamLabel, corev1.NodeSelectorOpExists),
		rule(teamLabel, corev1.NodeSelectorOpNotIn, "red"),
		rule(teamLabel, corev1.NodeSelectorOpDoesNotExist),
	)
}

func (w *wide) minValues(p *v1.NodePool) {
	least := 2 + w.IntN(2)
	key := pick(w.drawer, corev1.LabelInstanceTypeStable, corev1.LabelInstanceTypeStable, familyLabel, cpuLabel, corev1.LabelTopologyZone)
	p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements, v1.NodeSelectorRequirementWithMinValues{
		Key: key, Operator: corev1.NodeSelectorOpExists, MinValues: &least,
	})
}

func (w *wide) limit(p *v1.NodePool) {
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

// owners groups pods that wait by the app that they are of.
func (w *wide) owners() [][]*corev1.Pod {
	byApp := map[string][]*corev1.Pod{}
	for _, o := range w.objects {
		if p, ok := o.(*corev1.Pod); ok && p.Spec.NodeName == "" {
			byApp[p.Labels["app"]] = append(byApp[p.Labels["app"]], p)
		}
	}
	var out [][]*corev1.Pod
	for _, app := range slices.Sorted(maps.Keys(byApp)) {
		out = append(out, byApp[app])
	}
	return out
}

// app selects the pods of one app.
func (w *wide) app() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("app-%d", w.IntN(len(w.apps)))}}
}
