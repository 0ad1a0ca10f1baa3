package differential

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// podRules draws where pods may go: what they ask of their node and of the pods
// around it.
type podRules struct {
	rng
	// late draws what came later, so that all else of a seed stays as it was.
	late rng
}

// placeByNode draws what a pod wants of its node.
func (r podRules) placeByNode(spec *corev1.PodSpec) {
	selector := map[string]string{}
	if r.maybe(0.12) {
		selector[corev1.LabelTopologyZone] = r.zone()
	}
	if r.maybe(0.08) {
		selector[v1.CapacityTypeLabelKey] = pick(r.rng, "spot", "on-demand")
	}
	if r.maybe(0.08) {
		selector[familyLabel] = pick(r.rng, "general", "memory", "compute")
	}
	if r.maybe(0.08) {
		selector[teamLabel] = pick(r.rng, "red", "blue")
	}
	if len(selector) > 0 {
		spec.NodeSelector = selector
	}
	if r.maybe(0.3) {
		spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	}
	if !r.maybe(0.2) {
		return
	}
	// "OR-ed node affinity terms are exact": Karpenter tries the first term alone
	// and goes on only when nothing fits, so that its price is never below ours.
	var terms []corev1.NodeSelectorTerm
	for range 1 + r.IntN(2) {
		terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r.nodeRule()}})
	}
	affinity(spec).NodeAffinity = &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}
}

func (r podRules) nodeRule() corev1.NodeSelectorRequirement {
	return pick(r.rng,
		corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"zone-1", "zone-2"}},
		corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpNotIn, Values: []string{r.zone()}},
		corev1.NodeSelectorRequirement{Key: cpuLabel, Operator: corev1.NodeSelectorOpGt, Values: []string{pick(r.rng, "3", "7")}},
		corev1.NodeSelectorRequirement{Key: cpuLabel, Operator: corev1.NodeSelectorOpLt, Values: []string{pick(r.rng, "9", "17")}},
		corev1.NodeSelectorRequirement{Key: teamLabel, Operator: corev1.NodeSelectorOpExists},
		corev1.NodeSelectorRequirement{Key: teamLabel, Operator: corev1.NodeSelectorOpDoesNotExist},
		corev1.NodeSelectorRequirement{Key: familyLabel, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"general"}},
	)
}

// placeByPods draws what a pod wants of the pods around it.
func (r podRules) placeByPods(spec *corev1.PodSpec, own map[string]string, apps int) {
	self := &metav1.LabelSelector{MatchLabels: own}
	other := &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("app-%d", r.IntN(apps))}}
	if r.maybe(0.2) {
		r.spread(spec, corev1.LabelTopologyZone, self)
	}
	if r.maybe(0.12) {
		r.spread(spec, corev1.LabelHostname, self)
	}
	anti := func(selector *metav1.LabelSelector, key string) {
		a := affinity(spec)
		if a.PodAntiAffinity == nil {
			a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		required := &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*required = append(*required, corev1.PodAffinityTerm{LabelSelector: selector, TopologyKey: key})
	}
	if r.maybe(0.15) {
		anti(self, corev1.LabelHostname)
	}
	if r.maybe(0.08) {
		anti(other, corev1.LabelHostname)
	}
	if r.maybe(0.03) {
		anti(self, corev1.LabelTopologyZone)
	}
	if r.maybe(0.1) {
		affinity(spec).PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: pick(r.rng, self, self, other), TopologyKey: pick(r.rng, corev1.LabelTopologyZone, corev1.LabelHostname),
		}}}
	}
}

func (r podRules) spread(spec *corev1.PodSpec, key string, selector *metav1.LabelSelector) {
	c := corev1.TopologySpreadConstraint{
		MaxSkew: int32(1 + r.IntN(2)), TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector,
	}
	if key == corev1.LabelTopologyZone && r.maybe(0.2) {
		least := int32(1 + r.IntN(3))
		c.MinDomains = &least
	}
	if r.maybe(0.15) {
		honor := corev1.NodeInclusionPolicyHonor
		c.NodeTaintsPolicy = &honor
	}
	if r.late.maybe(0.15) {
		ignore := corev1.NodeInclusionPolicyIgnore
		c.NodeAffinityPolicy = &ignore
	}
	spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, c)
}

func affinity(spec *corev1.PodSpec) *corev1.Affinity {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	return spec.Affinity
}
