package worst

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Feature is a thing that a pod can state any number of.
type Feature struct {
	Name string
	// Planned is about the largest number that is planned.
	Planned int
	// state adds n of them to a pod.
	state func(pod *corev1.Pod, n int)
}

// Features are all of them. Those of one kind differ in what makes each of them dear.
func Features() []Feature {
	return []Feature{
		{"preferred anti-affinity", 64, func(pod *corev1.Pod, n int) {
			a := podAntiAffinity(pod)
			for i := range n {
				a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
					corev1.WeightedPodAffinityTerm{Weight: int32(1 + i%100), PodAffinityTerm: term(corev1.LabelHostname, "a", i)})
			}
		}},
		{"preferred affinity", 64, func(pod *corev1.Pod, n int) {
			a := podAffinity(pod)
			for i := range n {
				a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
					corev1.WeightedPodAffinityTerm{Weight: int32(1 + i%100), PodAffinityTerm: term(corev1.LabelTopologyZone, "b", i)})
			}
		}},
		{"preferred node affinity", 64, func(pod *corev1.Pod, n int) {
			a := nodeAffinity(pod)
			for i := range n {
				a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
					corev1.PreferredSchedulingTerm{Weight: int32(1 + i%100), Preference: corev1.NodeSelectorTerm{
						MatchExpressions: []corev1.NodeSelectorRequirement{rule("c", i, corev1.NodeSelectorOpIn, 1)}}})
			}
		}},
		{"required anti-affinity", 64, func(pod *corev1.Pod, n int) {
			a := podAntiAffinity(pod)
			for i := range n {
				a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution,
					term(corev1.LabelHostname, "d", i))
			}
		}},
		{"required affinity to its like", 64, func(pod *corev1.Pod, n int) {
			a := podAffinity(pod)
			for range n {
				a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution,
					corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname,
						LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": pod.Labels["app"]}}})
			}
		}},
		{"hard spread over zones", 32, spreads(corev1.LabelTopologyZone, corev1.DoNotSchedule)},
		{"hard spread over hosts", 32, spreads(corev1.LabelHostname, corev1.DoNotSchedule)},
		{"soft spread over zones", 32, spreads(corev1.LabelTopologyZone, corev1.ScheduleAnyway)},
		{"soft spread over labels", 32, func(pod *corev1.Pod, n int) {
			for i := range n {
				spreads(fmt.Sprint("e", i), corev1.ScheduleAnyway)(pod, 1)
			}
		}},
		{"node selector terms", 128, func(pod *corev1.Pod, n int) {
			for i := range n {
				addTerm(pod, rule("f", i, corev1.NodeSelectorOpNotIn, 9), rule("g", i, corev1.NodeSelectorOpNotIn, 9))
			}
		}},
		{"node rules", 512, func(pod *corev1.Pod, n int) {
			rules := make([]corev1.NodeSelectorRequirement, n)
			for i := range rules {
				rules[i] = rule("h", i, corev1.NodeSelectorOpNotIn, 1)
			}
			addTerm(pod, rules...)
		}},
		{"values of a node rule", 5000, func(pod *corev1.Pod, n int) {
			r := rule("i", 0, corev1.NodeSelectorOpNotIn, n)
			r.Key = corev1.LabelInstanceTypeStable
			addTerm(pod, r)
		}},
		{"node selector", 512, func(pod *corev1.Pod, n int) {
			pod.Spec.NodeSelector = map[string]string{}
			for i := range n {
				pod.Spec.NodeSelector[fmt.Sprint("j", i)] = "v"
			}
		}},
		{"values of a label selector", 4900, func(pod *corev1.Pod, n int) {
			t := term(corev1.LabelHostname, "k", 0)
			t.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values(n)}}
			a := podAntiAffinity(pod)
			a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, t)
		}},
		{"namespaces", 4900, func(pod *corev1.Pod, n int) {
			t := term(corev1.LabelHostname, "l", 0)
			t.Namespaces = values(n)
			a := podAffinity(pod)
			a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, t)
		}},
		{"tolerations", 256, func(pod *corev1.Pod, n int) {
			for i := range n {
				pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprint("m", i), Operator: corev1.TolerationOpExists})
			}
		}},
		{"resources", 60, func(pod *corev1.Pod, n int) {
			for i := range n {
				pod.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprint("example.com/n", i))] = resource.MustParse("1")
			}
		}},
		{"host ports", 1024, func(pod *corev1.Pod, n int) {
			for i := range n {
				port := int32(1 + i%65535)
				pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports, corev1.ContainerPort{ContainerPort: port, HostPort: port})
			}
		}},
		{"containers", 1000, func(pod *corev1.Pod, n int) {
			for i := range n {
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprint("o", i), Image: "p",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1m")}}})
			}
		}},
		{"claims", 1000, func(pod *corev1.Pod, n int) {
			for i := range n {
				pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("p", i), VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprint("p", i)}}})
			}
		}},
		{"labels", 5000, func(pod *corev1.Pod, n int) {
			for i := range n {
				pod.Labels[fmt.Sprint("q", i)] = "v"
			}
		}},
	}
}

func values(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint("v", i)
	}
	return out
}

func rule(key string, i int, operator corev1.NodeSelectorOperator, n int) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: fmt.Sprint(key, i), Operator: operator, Values: values(n)}
}

func term(topologyKey, key string, i int) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: topologyKey,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: fmt.Sprint("v", i)}}}
}

func spreads(topologyKey string, when corev1.UnsatisfiableConstraintAction) func(*corev1.Pod, int) {
	return func(pod *corev1.Pod, n int) {
		for i := range n {
			pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				TopologyKey: topologyKey, MaxSkew: int32(1 + i), WhenUnsatisfiable: when,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": pod.Labels["app"]}},
			})
		}
	}
}

func affinity(pod *corev1.Pod) *corev1.Affinity {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	return pod.Spec.Affinity
}

func podAffinity(pod *corev1.Pod) *corev1.PodAffinity {
	a := affinity(pod)
	if a.PodAffinity == nil {
		a.PodAffinity = &corev1.PodAffinity{}
	}
	return a.PodAffinity
}

func podAntiAffinity(pod *corev1.Pod) *corev1.PodAntiAffinity {
	a := affinity(pod)
	if a.PodAntiAffinity == nil {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	return a.PodAntiAffinity
}

func nodeAffinity(pod *corev1.Pod) *corev1.NodeAffinity {
	a := affinity(pod)
	if a.NodeAffinity == nil {
		a.NodeAffinity = &corev1.NodeAffinity{}
	}
	return a.NodeAffinity
}

func addTerm(pod *corev1.Pod, rules ...corev1.NodeSelectorRequirement) {
	a := nodeAffinity(pod)
	if a.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		a.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
	}
	terms := &a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	*terms = append(*terms, corev1.NodeSelectorTerm{MatchExpressions: rules})
}
