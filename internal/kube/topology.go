package kube

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// spread converts the topology spread constraints.
func (c *specReader) spread() {
	for i := range c.pod.Spec.TopologySpreadConstraints {
		in := &c.pod.Spec.TopologySpreadConstraints[i]
		const field = "spec.topologySpreadConstraints"
		if in.TopologyKey == "" {
			c.fail("%s[%d].topologyKey: is empty, must be a label key", field, i)
		}
		if in.MaxSkew <= 0 {
			c.fail("%s[%d].maxSkew: got %d, must be greater than zero", field, i, in.MaxSkew)
		}
		if in.WhenUnsatisfiable != corev1.DoNotSchedule && in.WhenUnsatisfiable != corev1.ScheduleAnyway {
			c.fail("%s[%d].whenUnsatisfiable: got %q, allowed: DoNotSchedule, ScheduleAnyway", field, i, in.WhenUnsatisfiable)
		}
		s, err := selector(in.LabelSelector, func() string { return fmt.Sprintf("%s[%d].labelSelector", field, i) })
		if err != nil {
			c.fail("%v", err)
		}
		out := model.SpreadConstraint{
			TopologyKey:       NormalizeLabel(in.TopologyKey),
			MaxSkew:           in.MaxSkew,
			Selector:          withLabelKeys(s, c.pod.Labels, in.MatchLabelKeys, false),
			Hard:              in.WhenUnsatisfiable == corev1.DoNotSchedule,
			HonorNodeAffinity: in.NodeAffinityPolicy == nil || *in.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor,
			HonorTaints:       in.NodeTaintsPolicy != nil && *in.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor,
		}
		if in.MinDomains != nil {
			if *in.MinDomains <= 0 {
				c.fail("%s[%d].minDomains: got %d, must be greater than zero", field, i, *in.MinDomains)
			}
			out.MinDomains = *in.MinDomains
		}
		c.out.Spread = append(c.out.Spread, out)
	}
}

// affinity converts node affinity, pod affinity and pod anti-affinity.
func (c *specReader) affinity() {
	a := c.pod.Spec.Affinity
	if a == nil {
		return
	}
	if a.NodeAffinity != nil {
		c.nodeAffinity(a.NodeAffinity)
	}
	if a.PodAffinity != nil {
		const field = "spec.affinity.podAffinity"
		c.out.Affinity = c.terms(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, field)
		c.preferredTerms(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, false, field)
	}
	if a.PodAntiAffinity != nil {
		const field = "spec.affinity.podAntiAffinity"
		c.out.AntiAffinity = c.terms(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, field)
		c.preferredTerms(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, true, field)
	}
}

func (c *specReader) nodeAffinity(a *corev1.NodeAffinity) {
	if required := a.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		const field = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
		for i := range required.NodeSelectorTerms {
			rs, matches, err := nodeTerm(&required.NodeSelectorTerms[i], fmt.Sprintf("%s[%d]", field, i))
			if err != nil {
				c.fail("%v", err)
			}
			if matches {
				c.out.NodeAlternatives = append(c.out.NodeAlternatives, rs)
			}
		}
		if len(c.out.NodeAlternatives) == 0 {
			c.fail("%s: every term is empty and an empty term matches no node, at least one needs matchExpressions or matchFields", field)
		}
	}
	for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		p := &a.PreferredDuringSchedulingIgnoredDuringExecution[i]
		rs, matches, err := nodeTerm(&p.Preference,
			fmt.Sprintf("spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[%d].preference", i))
		if err != nil {
			c.fail("%v", err)
		}
		c.weight(p.Weight, func() string {
			return fmt.Sprintf("spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[%d]", i)
		})
		if matches {
			c.out.NodePreferences = append(c.out.NodePreferences, model.NodePreference{Weight: p.Weight, Requirements: rs})
		}
	}
}

// weight checks the weight of a preference.
func (c *specReader) weight(weight int32, field func() string) {
	if weight < 1 || weight > 100 {
		c.fail("%s.weight: got %d, allowed: 1 to 100", field(), weight)
	}
}

func (c *specReader) terms(in []corev1.PodAffinityTerm, field string) []fleet.Term {
	var out []fleet.Term
	for i := range in {
		out = append(out, c.term(&in[i], func() string { return fmt.Sprintf("%s.requiredDuringSchedulingIgnoredDuringExecution[%d]", field, i) }))
	}
	return out
}

func (c *specReader) preferredTerms(in []corev1.WeightedPodAffinityTerm, anti bool, field string) {
	for i := range in {
		term := c.term(&in[i].PodAffinityTerm, func() string {
			return fmt.Sprintf("%s.preferredDuringSchedulingIgnoredDuringExecution[%d].podAffinityTerm", field, i)
		})
		c.weight(in[i].Weight, func() string {
			return fmt.Sprintf("%s.preferredDuringSchedulingIgnoredDuringExecution[%d]", field, i)
		})
		c.out.Preferences = append(c.out.Preferences, fleet.PreferredTerm{Weight: in[i].Weight, Anti: anti, Term: term})
	}
}

func (c *specReader) term(in *corev1.PodAffinityTerm, field func() string) fleet.Term {
	if in.TopologyKey == "" {
		c.fail("%s.topologyKey: is empty, must be a label key", field())
	}
	s, err := selector(in.LabelSelector, func() string { return field() + ".labelSelector" })
	if err != nil {
		c.fail("%v", err)
	}
	s = withLabelKeys(s, c.pod.Labels, in.MatchLabelKeys, false)
	s = withLabelKeys(s, c.pod.Labels, in.MismatchLabelKeys, true)
	spaces, err := selector(in.NamespaceSelector, func() string { return field() + ".namespaceSelector" })
	if err != nil {
		c.fail("%v", err)
	}
	return fleet.Term{
		TopologyKey:       NormalizeLabel(in.TopologyKey),
		Selector:          s,
		Namespaces:        slices.Sorted(slices.Values(in.Namespaces)),
		NamespaceSelector: spaces,
	}
}
