package differential

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/bench/workload"
)

// Shrink takes objects, sizes and single rules away as long as the cluster still
// fails, and returns what is left.
func Shrink(in *workload.Input, fails func(*workload.Input) bool) *workload.Input {
	for {
		smaller := shrinkOnce(in, fails)
		if smaller == nil {
			return in
		}
		in = smaller
	}
}

// shrinkOnce goes over everything once; nil when nothing can go.
func shrinkOnce(in *workload.Input, fails func(*workload.Input) bool) *workload.Input {
	start := in
	// Halves first, then ever smaller runs, since pods of one app are neighbours.
	for run := max(1, len(in.Objects)/2); run >= 1; run /= 2 {
		for i := len(in.Objects) - run; i >= 0; i -= run {
			next := *in
			next.Objects = slices.Delete(slices.Clone(in.Objects), i, i+run)
			if fails(&next) {
				in = &next
			}
			i = min(i, len(in.Objects))
		}
	}
	for i := len(in.InstanceTypes) - 1; i >= 0; i-- {
		next := *in
		next.InstanceTypes = slices.Delete(slices.Clone(in.InstanceTypes), i, i+1)
		if fails(&next) {
			in = &next
		}
	}
	for i := range in.InstanceTypes {
		for j := len(in.InstanceTypes[i].Offerings) - 1; j >= 0; j-- {
			next := *in
			next.InstanceTypes = slices.Clone(in.InstanceTypes)
			next.InstanceTypes[i] = withoutOffering(in.InstanceTypes[i], j)
			if fails(&next) {
				in = &next
			}
		}
	}
	for i := range in.Objects {
		for _, simpler := range simplify(in, i) {
			if fails(simpler) {
				in = simpler
			}
		}
	}
	if in == start {
		return nil
	}
	return in
}

// withoutOffering is a size with one offering less, whose zones and capacity types
// are those that are left.
func withoutOffering(old *cloudprovider.InstanceType, i int) *cloudprovider.InstanceType {
	t := &cloudprovider.InstanceType{
		Name: old.Name, Capacity: old.Capacity, Overhead: old.Overhead,
		Offerings:    slices.Delete(slices.Clone(old.Offerings), i, i+1),
		Requirements: scheduling.NewRequirements(old.Requirements.Values()...),
	}
	var zones, capacityTypes []string
	for _, o := range t.Offerings.Available() {
		zones, capacityTypes = append(zones, o.Zone()), append(capacityTypes, o.CapacityType())
	}
	t.Requirements[corev1.LabelTopologyZone] = scheduling.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, zones...)
	t.Requirements[v1.CapacityTypeLabelKey] = scheduling.NewRequirement(v1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, capacityTypes...)
	return t
}

// simplify returns the cluster with one rule less of the i-th object, for every
// rule that it has.
func simplify(in *workload.Input, i int) []*workload.Input {
	var out []*workload.Input
	add := func(o client.Object) {
		next := *in
		next.Objects = slices.Clone(in.Objects)
		next.Objects[i] = o
		out = append(out, &next)
	}
	switch o := in.Objects[i].(type) {
	case *corev1.Pod:
		for _, part := range podParts() {
			if p := o.DeepCopy(); !part(p) {
				add(p)
			}
		}
		for c := range o.Spec.TopologySpreadConstraints {
			p := o.DeepCopy()
			p.Spec.TopologySpreadConstraints = slices.Delete(p.Spec.TopologySpreadConstraints, c, c+1)
			add(p)
		}
	case *v1.NodePool:
		for _, part := range poolParts() {
			if p := o.DeepCopy(); !part(p) {
				add(p)
			}
		}
		for r := range o.Spec.Template.Spec.Requirements {
			p := o.DeepCopy()
			p.Spec.Template.Spec.Requirements = slices.Delete(p.Spec.Template.Spec.Requirements, r, r+1)
			add(p)
		}
	}
	return out
}

// without clears a field, and reports whether there was nothing in it.
func without[T any](field *T) bool {
	var none T
	empty := reflect.DeepEqual(*field, none)
	*field = none
	return empty
}

// podParts take something away from a pod and report whether there was nothing to
// take.
func podParts() []func(*corev1.Pod) bool {
	return []func(*corev1.Pod) bool{
		func(p *corev1.Pod) bool { return without(&p.Spec.NodeSelector) },
		func(p *corev1.Pod) bool { return without(&p.Spec.Tolerations) },
		func(p *corev1.Pod) bool { return without(&p.Spec.Volumes) },
		func(p *corev1.Pod) bool { return without(&p.Spec.TopologySpreadConstraints) },
		func(p *corev1.Pod) bool { return without(&p.Spec.Containers[0].Ports) },
		func(p *corev1.Pod) bool { return without(&p.Spec.InitContainers) },
		func(p *corev1.Pod) bool { return without(&p.Spec.Overhead) },
		func(p *corev1.Pod) bool { return without(&p.Spec.Resources) },
		func(p *corev1.Pod) bool { return without(&p.Spec.Priority) },
		func(p *corev1.Pod) bool {
			single := len(p.Spec.Containers) == 1
			p.Spec.Containers = p.Spec.Containers[:1]
			return single
		},
		func(p *corev1.Pod) bool { return without(&p.Spec.Affinity) },
		func(p *corev1.Pod) bool { return p.Spec.Affinity == nil || without(&p.Spec.Affinity.NodeAffinity) },
		func(p *corev1.Pod) bool { return p.Spec.Affinity == nil || without(&p.Spec.Affinity.PodAffinity) },
		func(p *corev1.Pod) bool {
			return p.Spec.Affinity == nil || without(&p.Spec.Affinity.PodAntiAffinity)
		},
		func(p *corev1.Pod) bool {
			a := p.Spec.Affinity
			return a == nil || a.NodeAffinity == nil || without(&a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		},
		func(p *corev1.Pod) bool {
			a := p.Spec.Affinity
			return a == nil || a.NodeAffinity == nil || without(&a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		},
		func(p *corev1.Pod) bool {
			a := p.Spec.Affinity
			return a == nil || a.PodAffinity == nil || without(&a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		},
		func(p *corev1.Pod) bool {
			a := p.Spec.Affinity
			return a == nil || a.PodAntiAffinity == nil || without(&a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		},
	}
}

// poolParts do the same with NodePools.
func poolParts() []func(*v1.NodePool) bool {
	return []func(*v1.NodePool) bool{
		func(p *v1.NodePool) bool { return without(&p.Spec.Limits) },
		func(p *v1.NodePool) bool { return without(&p.Spec.Weight) },
		func(p *v1.NodePool) bool { return without(&p.Spec.Template.Labels) },
		func(p *v1.NodePool) bool { return without(&p.Spec.Template.Spec.Taints) },
		func(p *v1.NodePool) bool { return without(&p.Spec.Template.Spec.StartupTaints) },
	}
}

// YAML prints the objects of a cluster, then a line per offering.
func YAML(in *workload.Input) string {
	var b bytes.Buffer
	for _, o := range in.Objects {
		raw, err := json.Marshal(o)
		if err != nil {
			continue
		}
		text, err := yaml.JSONToYAML(raw)
		if err != nil {
			continue
		}
		b.WriteString("---\n")
		b.Write(text)
	}
	for _, t := range in.InstanceTypes {
		cpu, memory, pods := t.Allocatable()[corev1.ResourceCPU], t.Allocatable()[corev1.ResourceMemory], t.Allocatable()[corev1.ResourcePods]
		for _, o := range t.Offerings {
			if o.Available {
				b.WriteString("# " + t.Name + " " + o.Zone() + " " + o.CapacityType() + " cpu " + cpu.String() + " memory " + memory.String() +
					" pods " + pods.String() + " arch " + t.Requirements.Get(corev1.LabelArchStable).Any() + " $" + jsonNumber(o.Price) + "\n")
			}
		}
	}
	return b.String()
}

func jsonNumber(f float64) string {
	raw, err := json.Marshal(f)
	if err != nil {
		return "?"
	}
	return string(raw)
}
