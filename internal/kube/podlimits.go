package kube

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// PodLimit is the most that a pod may state of one thing for nap to plan it. The API
// server has no such limits but the size of the whole object (1.5 MB), and the work of
// planning a pod grows faster than the number of its rules: without limits one pod could
// take the memory of the controller and the time of all other pods.
type PodLimit struct {
	// What names what is counted, as users write it.
	What string
	// Most is the largest number that is planned.
	Most int
}

// countedRule is a limit and how a pod is counted against it.
type countedRule struct {
	PodLimit
	of func(*podCounts) int
}

// countedRules are the limits on what one pod states, in the order in which they are
// looked at. docs/differences.md lists them.
func countedRules() []countedRule {
	return []countedRule{
		{PodLimit{"preferred terms of node affinity, pod affinity and pod anti-affinity", 64}, func(c *podCounts) int { return c.preferred }},
		{PodLimit{"required terms of pod affinity and pod anti-affinity", 64}, func(c *podCounts) int { return c.required }},
		{PodLimit{"topology spread constraints", 32}, func(c *podCounts) int { return c.spread }},
		{PodLimit{"required node selector terms", 128}, func(c *podCounts) int { return c.alternatives }},
		{PodLimit{"requirements on nodes, in node selector and node affinity", 512}, func(c *podCounts) int { return c.nodeRules }},
		{PodLimit{"values in requirements on nodes", 5000}, func(c *podCounts) int { return c.nodeValues }},
		{PodLimit{"requirements in label selectors, their label keys included", 1024}, func(c *podCounts) int { return c.selectorRules }},
		{PodLimit{"values in label selectors and names of namespaces", 5000}, func(c *podCounts) int { return c.selectorValues }},
		{PodLimit{"tolerations", 256}, func(c *podCounts) int { return c.tolerations }},
		{PodLimit{"resources by name", 64}, func(c *podCounts) int { return c.resources }},
		{PodLimit{"host ports", 1024}, func(c *podCounts) int { return c.hostPorts }},
	}
}

// tooMuch says which limit a pod goes beyond, empty for a pod within all of them.
// It takes time in proportion to the size of the pod.
func tooMuch(pod *corev1.Pod) string {
	counts := countPod(pod)
	for _, rule := range countedRules() {
		if n := rule.of(&counts); n > rule.Most {
			return fmt.Sprintf("the pod states %d %s; at most %d are planned", n, rule.What, rule.Most)
		}
	}
	return ""
}

// podCounts are the numbers of what a pod states, each as its rule in countedRules
// names it.
type podCounts struct {
	preferred, required, spread, alternatives int
	nodeRules, nodeValues                     int
	selectorRules, selectorValues             int
	tolerations, resources, hostPorts         int
}

func countPod(pod *corev1.Pod) podCounts {
	spec := &pod.Spec
	c := podCounts{
		spread:      len(spec.TopologySpreadConstraints),
		tolerations: len(spec.Tolerations),
		nodeRules:   len(spec.NodeSelector),
		nodeValues:  len(spec.NodeSelector),
		hostPorts:   len(hostPorts(spec)),
	}
	for i := range spec.TopologySpreadConstraints {
		s := &spec.TopologySpreadConstraints[i]
		c.selector(s.LabelSelector)
		c.selectorRules += len(s.MatchLabelKeys)
	}
	if a := spec.Affinity; a != nil {
		c.affinity(a)
	}
	c.requests(spec)
	return c
}

func (c *podCounts) affinity(a *corev1.Affinity) {
	if n := a.NodeAffinity; n != nil {
		if required := n.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			c.alternatives += len(required.NodeSelectorTerms)
			for i := range required.NodeSelectorTerms {
				c.nodeTerm(&required.NodeSelectorTerms[i])
			}
		}
		c.preferred += len(n.PreferredDuringSchedulingIgnoredDuringExecution)
		for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			c.nodeTerm(&n.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference)
		}
	}
	if p := a.PodAffinity; p != nil {
		c.podTerms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		c.podTerms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func (c *podCounts) nodeTerm(t *corev1.NodeSelectorTerm) {
	for _, list := range [2][]corev1.NodeSelectorRequirement{t.MatchExpressions, t.MatchFields} {
		c.nodeRules += len(list)
		for i := range list {
			c.nodeValues += len(list[i].Values)
		}
	}
}

func (c *podCounts) podTerms(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	c.required += len(required)
	c.preferred += len(preferred)
	for i := range required {
		c.podTerm(&required[i])
	}
	for i := range preferred {
		c.podTerm(&preferred[i].PodAffinityTerm)
	}
}

func (c *podCounts) podTerm(t *corev1.PodAffinityTerm) {
	c.selector(t.LabelSelector)
	c.selector(t.NamespaceSelector)
	c.selectorRules += len(t.MatchLabelKeys) + len(t.MismatchLabelKeys)
	c.selectorValues += len(t.Namespaces)
}

func (c *podCounts) selector(s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	c.selectorRules += len(s.MatchLabels) + len(s.MatchExpressions)
	c.selectorValues += len(s.MatchLabels)
	for i := range s.MatchExpressions {
		c.selectorValues += len(s.MatchExpressions[i].Values)
	}
}

// requests counts the names of resources. Those of a single container, which most pods
// have, are not put together first.
func (c *podCounts) requests(spec *corev1.PodSpec) {
	names := map[corev1.ResourceName]bool{}
	count := func(list corev1.ResourceList) {
		c.resources = max(c.resources, len(list))
		if len(list) <= 2 {
			return // cpu and memory, or hardly more
		}
		for name := range list {
			names[name] = true
		}
	}
	for i := range spec.Containers {
		count(spec.Containers[i].Resources.Requests)
	}
	for i := range spec.InitContainers {
		count(spec.InitContainers[i].Resources.Requests)
	}
	count(spec.Overhead)
	if spec.Resources != nil {
		count(spec.Resources.Requests)
	}
	c.resources = max(c.resources, len(names))
}

// readTooMuch is what is read of a pod which states too much to be planned, as tooMuch
// says. Where it runs it takes its cpu, memory and storage, and keeps off the pods that
// its required anti-affinity names; it is neither planned nor moved. The other resources
// are not counted: no node offers so many.
func readTooMuch(pod *corev1.Pod, why string) *fleet.PodSpec {
	c := &specReader{pod: withoutExtended(pod), out: &fleet.PodSpec{TooMuch: why}}
	c.resources()
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		c.out.AntiAffinity = c.terms(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, "spec.affinity.podAntiAffinity")
	}
	c.out.SetKey()
	return c.out
}

// withoutExtended is a pod that asks for cpu, memory and storage alone.
func withoutExtended(pod *corev1.Pod) *corev1.Pod {
	out := *pod
	out.Spec.Containers, out.Spec.InitContainers = slices.Clone(pod.Spec.Containers), slices.Clone(pod.Spec.InitContainers)
	for _, list := range [2][]corev1.Container{out.Spec.Containers, out.Spec.InitContainers} {
		for i := range list {
			list[i].Resources.Requests = basic(list[i].Resources.Requests)
		}
	}
	out.Spec.Overhead = basic(pod.Spec.Overhead)
	if pod.Spec.Resources != nil {
		whole := *pod.Spec.Resources
		whole.Requests = basic(whole.Requests)
		out.Spec.Resources = &whole
	}
	return &out
}

func basic(list corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if q, asked := list[name]; asked {
			out[name] = q
		}
	}
	return out
}
