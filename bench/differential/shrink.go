package differential

import (
	"bytes"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
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

// simplify returns the cluster with one rule less of the i-th object, for every
// rule that it has.
func simplify(in *workload.Input, i int) []*workload.Input {
	var out []*workload.Input
	switch o := in.Objects[i].(type) {
	case *corev1.Pod:
		for _, drop := range []func(*corev1.Pod) bool{
			func(p *corev1.Pod) bool { had := p.Spec.NodeSelector != nil; p.Spec.NodeSelector = nil; return had },
			func(p *corev1.Pod) bool { had := p.Spec.Tolerations != nil; p.Spec.Tolerations = nil; return had },
			func(p *corev1.Pod) bool { had := p.Spec.Volumes != nil; p.Spec.Volumes = nil; return had },
			func(p *corev1.Pod) bool {
				had := p.Spec.TopologySpreadConstraints != nil
				p.Spec.TopologySpreadConstraints = nil
				return had
			},
			func(p *corev1.Pod) bool {
				had := p.Spec.Containers[0].Ports != nil
				p.Spec.Containers[0].Ports = nil
				return had
			},
			func(p *corev1.Pod) bool { had := p.Spec.Affinity != nil; p.Spec.Affinity = nil; return had },
			func(p *corev1.Pod) bool {
				had := p.Spec.Affinity != nil && p.Spec.Affinity.NodeAffinity != nil
				if had {
					p.Spec.Affinity.NodeAffinity = nil
				}
				return had
			},
			func(p *corev1.Pod) bool {
				had := p.Spec.Affinity != nil && p.Spec.Affinity.PodAntiAffinity != nil
				if had {
					p.Spec.Affinity.PodAntiAffinity = nil
				}
				return had
			},
		} {
			if p := o.DeepCopy(); drop(p) {
				next := *in
				next.Objects = slices.Clone(in.Objects)
				next.Objects[i] = p
				out = append(out, &next)
			}
		}
	case *v1.NodePool:
		for r := range o.Spec.Template.Spec.Requirements {
			p := o.DeepCopy()
			p.Spec.Template.Spec.Requirements = slices.Delete(p.Spec.Template.Spec.Requirements, r, r+1)
			next := *in
			next.Objects = slices.Clone(in.Objects)
			next.Objects[i] = p
			out = append(out, &next)
		}
	}
	return out
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
				b.WriteString("# " + t.Name + " " + o.Zone() + " " + o.CapacityType() + " cpu " + cpu.String() + " memory " + memory.String() + " pods " + pods.String() + " arch " + t.Requirements.Get(corev1.LabelArchStable).Any() + " $" + jsonNumber(o.Price) + "\n")
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
