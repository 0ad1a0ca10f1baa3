package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// nodeRequirement converts one condition on node labels, under the label's
// stable name and with sorted values.
func nodeRequirement(key, operator string, values []string) model.Requirement {
	r := model.Requirement{Key: NormalizeLabel(key), Operator: model.Operator(operator)}
	if len(values) > 0 {
		r.Values = make([]string, len(values))
		for i, v := range values {
			r.Values[i] = normalizeValue(r.Key, v)
		}
		slices.Sort(r.Values)
		r.Values = slices.Compact(r.Values)
	}
	return r
}

// labelRequirements turns fixed labels into In requirements, by key.
func labelRequirements(labels map[string]string) model.Requirements {
	if len(labels) == 0 {
		return nil
	}
	var rs model.Requirements
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		rs = append(rs, nodeRequirement(k, string(model.In), []string{labels[k]}))
	}
	return rs
}

func poolRequirements(in []v1.NodeSelectorRequirementWithMinValues) model.Requirements {
	var rs model.Requirements
	for _, r := range in {
		out := nodeRequirement(r.Key, string(r.Operator), r.Values)
		if r.MinValues != nil {
			out.MinValues = *r.MinValues
		}
		rs = append(rs, out)
	}
	return rs
}

// nodeTerm converts a node selector term. A term without any condition matches
// no node, which the second result tells.
func nodeTerm(t *corev1.NodeSelectorTerm, field string) (rs model.Requirements, matches bool, err error) {
	for i, e := range t.MatchExpressions {
		r := nodeRequirement(e.Key, string(e.Operator), e.Values)
		switch e.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist,
			corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		default: // such as Gte, which NodePools alone have
			return nil, false, fmt.Errorf("%s.matchExpressions[%d].operator: got %q, allowed: In, NotIn, Exists, DoesNotExist, Gt, Lt",
				field, i, e.Operator)
		}
		if err := validateNodeRequirement(r); err != nil {
			return nil, false, fmt.Errorf("%s.matchExpressions[%d]: %w", field, i, err)
		}
		rs = append(rs, r)
	}
	for i, e := range t.MatchFields {
		if e.Key != metav1.ObjectNameField {
			return nil, false, fmt.Errorf("%s.matchFields[%d].key: got %q, allowed: %s", field, i, e.Key, metav1.ObjectNameField)
		}
		r := model.Requirement{Key: fleet.NodeNameField, Operator: model.Operator(e.Operator), Values: e.Values}
		if r.Operator != model.In && r.Operator != model.NotIn || len(r.Values) != 1 {
			return nil, false, fmt.Errorf("%s.matchFields[%d]: got %s, allowed: In or NotIn with one value", field, i, r)
		}
		rs = append(rs, r)
	}
	return rs, len(rs) > 0, nil
}

// validateNodeRequirement allows what NodePools may require, but for NotIn without values.
func validateNodeRequirement(r model.Requirement) error {
	if r.Operator == model.NotIn && len(r.Values) == 0 {
		return fmt.Errorf("requirement %q: operator NotIn needs at least one value", r.Key)
	}
	return r.Validate()
}

// selector converts a label selector, whose field is asked for only to tell what
// is wrong with it. Nil selects nothing.
func selector(in *metav1.LabelSelector, field func() string) (*model.Selector, error) {
	if in == nil {
		return nil, nil
	}
	out := &model.Selector{}
	for k, v := range in.MatchLabels {
		out.Requirements = append(out.Requirements, model.Requirement{Key: k, Operator: model.In, Values: []string{v}})
	}
	slices.SortFunc(out.Requirements, func(a, b model.Requirement) int { return strings.Compare(a.Key, b.Key) })
	for i, e := range in.MatchExpressions {
		r := model.Requirement{Key: e.Key, Operator: model.Operator(e.Operator), Values: slices.Sorted(slices.Values(e.Values))}
		switch r.Operator {
		case model.In, model.NotIn, model.Exists, model.DoesNotExist:
		default:
			return nil, fmt.Errorf("%s.matchExpressions[%d].operator: got %q, allowed: In, NotIn, Exists, DoesNotExist", field(), i, e.Operator)
		}
		if err := validateNodeRequirement(r); err != nil {
			return nil, fmt.Errorf("%s.matchExpressions[%d]: %w", field(), i, err)
		}
		out.Requirements = append(out.Requirements, r)
	}
	return out, nil
}

// withLabelKeys narrows a selector to pods that agree (or, with mismatch, that
// disagree) with the pod's own labels under the given keys. The API server does
// the same for affinity terms when a pod is created; doing it twice changes
// nothing.
func withLabelKeys(s *model.Selector, labels map[string]string, keys []string, mismatch bool) *model.Selector {
	if s == nil || len(keys) == 0 {
		return s
	}
	operator := model.In
	if mismatch {
		operator = model.NotIn
	}
	out := &model.Selector{Requirements: slices.Clone(s.Requirements)}
	for _, k := range keys {
		value, ok := labels[k]
		if !ok {
			continue
		}
		r := model.Requirement{Key: k, Operator: operator, Values: []string{value}}
		same := func(o model.Requirement) bool {
			return o.Key == r.Key && o.Operator == r.Operator && slices.Equal(o.Values, r.Values)
		}
		if !slices.ContainsFunc(out.Requirements, same) {
			out.Requirements = append(out.Requirements, r)
		}
	}
	return out
}
