package differential

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/kube"
)

// wideRules draws further rules about where pods may go.
type wideRules struct {
	podRules
	has traits
	// catalog holds the instance types that rules name.
	catalog *kube.CatalogFile
	// apps is how many apps there are for rules to select, at least one.
	apps int
}

// widen adds rules of the cluster's traits to a pod; self selects the pod's copies.
func (w *wideRules) widen(spec *corev1.PodSpec, self *metav1.LabelSelector) {
	if w.has["preferences"] {
		for range 1 + w.IntN(2) {
			w.prefer(spec, self)
		}
		if w.maybe(0.2) {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: "rather-not", Operator: corev1.TolerationOpExists})
		}
	}
	if w.has["operators"] && w.maybe(0.5) {
		mustHave(spec, consistent(spec, w.podRule))
	}
	if w.has["choices"] && w.maybe(0.3) {
		mustHave(spec, corev1.NodeSelectorRequirement{Key: diskLabel,
			Operator: pick(w.rng, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), Values: []string{pick(w.rng, "premium", "ultra")}})
	}
	if w.has["topologies"] && w.maybe(0.5) {
		w.topology(spec, self)
	}
	if w.has["taints"] && w.maybe(0.5) {
		spec.Tolerations = append(spec.Tolerations, pick(w.rng,
			corev1.Toleration{Key: "special", Operator: corev1.TolerationOpEqual, Value: "a"},
			corev1.Toleration{Key: "special", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
			corev1.Toleration{Key: "special", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
			corev1.Toleration{Operator: corev1.TolerationOpExists},
		))
	}
	if w.has["reservations"] && w.maybe(0.15) {
		mustHave(spec, corev1.NodeSelectorRequirement{
			Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{v1.CapacityTypeReserved},
		})
	}
}

// mustHave adds a condition to each alternative of the pod's node affinity.
func mustHave(spec *corev1.PodSpec, r corev1.NodeSelectorRequirement) {
	a := affinity(spec)
	if a.NodeAffinity == nil {
		a.NodeAffinity = &corev1.NodeAffinity{}
	}
	if a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	}
	terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchExpressions = append(terms[i].MatchExpressions, r)
	}
}

// consistent draws until what it drew can be asked of the pod's node besides.
//
// "Contradictions place no pod": of a label that the pod asks for already, nothing
// else is asked.
func consistent(spec *corev1.PodSpec, draw func() corev1.NodeSelectorRequirement) corev1.NodeSelectorRequirement {
	for {
		r := draw()
		_, asked := spec.NodeSelector[r.Key]
		if a := spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
				asked = asked || slices.ContainsFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return e.Key == r.Key })
			}
		}
		if !asked || r.Key != teamLabel {
			return r
		}
	}
}

func (w *wideRules) podRule() corev1.NodeSelectorRequirement {
	rule := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	return pick(w.rng,
		w.nodeRule(),
		rule(cpuLabel, corev1.NodeSelectorOpNotIn, "2", "4"),
		rule(cpuLabel, corev1.NodeSelectorOpIn, "8", "16"),
		rule(teamLabel, corev1.NodeSelectorOpNotIn, "red"),
		rule(teamLabel, corev1.NodeSelectorOpIn, "red", "blue"),
		rule(familyLabel, corev1.NodeSelectorOpExists),
		rule(corev1.LabelArchStable, corev1.NodeSelectorOpIn, pick(w.rng, "amd64", "arm64")),
		rule(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpNotIn, pick(w.rng, w.catalog.InstanceTypes...).Name),
		rule(v1.NodePoolLabelKey, corev1.NodeSelectorOpIn, "pool-0", "pool-1"),
		rule(v1.NodePoolLabelKey, corev1.NodeSelectorOpNotIn, "pool-0"),
		rule(v1.CapacityTypeLabelKey, corev1.NodeSelectorOpNotIn, "spot"),
		rule("example.com/nobody", corev1.NodeSelectorOpDoesNotExist),
		rule("example.com/nobody", corev1.NodeSelectorOpNotIn, "x"),
	)
}

// prefer adds a preference of some kind.
func (w *wideRules) prefer(spec *corev1.PodSpec, self *metav1.LabelSelector) {
	a := affinity(spec)
	weight := pick(w.rng, int32(1), 10, 50, 100)
	term := corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: corev1.PodAffinityTerm{
		LabelSelector: pick(w.rng, self, self, w.app()), TopologyKey: pick(w.rng, corev1.LabelTopologyZone, corev1.LabelHostname),
	}}
	switch w.IntN(4) {
	case 0:
		if a.NodeAffinity == nil {
			a.NodeAffinity = &corev1.NodeAffinity{}
		}
		list := &a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, corev1.PreferredSchedulingTerm{
			Weight: weight, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{consistent(spec, w.nodeRule)}},
		})
	case 1:
		if a.PodAffinity == nil {
			a.PodAffinity = &corev1.PodAffinity{}
		}
		list := &a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, term)
	case 2:
		if a.PodAntiAffinity == nil {
			a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		list := &a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, term)
	case 3:
		key := pick(w.rng, corev1.LabelTopologyZone, corev1.LabelHostname)
		if slices.ContainsFunc(spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool { return c.TopologyKey == key }) {
			return
		}
		spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: int32(1 + w.IntN(2)), TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: self,
		})
	}
}

// topology adds a rule over domains other than zones and hosts.
func (w *wideRules) topology(spec *corev1.PodSpec, self *metav1.LabelSelector) {
	key := pick(w.rng, v1.CapacityTypeLabelKey, familyLabel, corev1.LabelArchStable, teamLabel, v1.NodePoolLabelKey)
	a := affinity(spec)
	switch w.IntN(4) {
	case 0, 1:
		w.spread(spec, key, self)
	case 2:
		if a.PodAffinity == nil {
			a.PodAffinity = &corev1.PodAffinity{}
		}
		list := &a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, corev1.PodAffinityTerm{LabelSelector: self, TopologyKey: key})
	case 3:
		if a.PodAntiAffinity == nil {
			a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		list := &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, corev1.PodAffinityTerm{LabelSelector: w.app(), TopologyKey: key})
	}
}

// lookAround lets terms select pods of other namespaces.
func (w *wideRules) lookAround(spec *corev1.PodSpec) {
	if spec.Affinity == nil {
		return
	}
	change := func(t *corev1.PodAffinityTerm) {
		switch w.IntN(5) {
		case 0:
			t.Namespaces = []string{pick(w.rng, "default", "east", "west")}
		case 1:
			t.NamespaceSelector = &metav1.LabelSelector{}
		case 2:
			t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"side": pick(w.rng, "left", "right")}}
		case 3:
			t.Namespaces = []string{"default"}
			t.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: "side", Operator: metav1.LabelSelectorOpExists,
			}}}
		}
	}
	for _, t := range everyTerm(spec) {
		change(t)
	}
}

// everyTerm lists the terms of the pod's affinity to pods.
func everyTerm(spec *corev1.PodSpec) []*corev1.PodAffinityTerm {
	var out []*corev1.PodAffinityTerm
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			out = append(out, &required[i])
		}
		for i := range preferred {
			out = append(out, &preferred[i].PodAffinityTerm)
		}
	}
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		add(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		add(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return out
}

// app selects the pods of one app.
func (w *wideRules) app() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("app-%d", w.IntN(w.apps))}}
}
