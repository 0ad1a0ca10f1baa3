package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
)

// checkNodePool lists everything in a NodePool that can match nothing on Azure, each with
// its field, its value and what is allowed. What Kubernetes or Karpenter refuses of it
// otherwise is for package kube to say.
func checkNodePool(np *v1.NodePool) []error {
	var problems []error
	say := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("NodePool %s: "+format, append([]any{np.Name}, args...)...))
	}
	policies := model.ConsolidationPolicies()
	if p := string(np.Spec.Disruption.ConsolidationPolicy); p != "" && !slices.Contains(policies, p) {
		say("spec.disruption.consolidationPolicy: got %q, allowed: %s", p, strings.Join(policies, ", "))
	}
	if ref := np.Spec.Template.Spec.NodeClassRef; ref != nil && ref.Group == v1beta1.LabelDomain && ref.Kind != nodeClassKind {
		say("spec.template.spec.nodeClassRef.kind: got %q, allowed: %s", ref.Kind, nodeClassKind)
	}
	if _, err := kube.FrozenUntil(np); err != nil {
		say("%w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(np.Spec.Limits)) {
		if amount := np.Spec.Limits[name]; amount.Sign() < 0 {
			say("spec.limits.%s: got %s, must not be negative", name, amount.String())
		}
	}
	for i := range np.Spec.Template.Spec.Requirements {
		r := &np.Spec.Template.Spec.Requirements[i]
		field := fmt.Sprintf("spec.template.spec.requirements[%d]", i)
		if today, preview := previewKey(r.Key); preview {
			say("%s.key: got %q of the preview, which restricts nothing any more, use %s; nap convert -f FILE writes it so", field, r.Key, today)
			continue
		}
		if instead, foreign := foreignKey(r.Key); foreign {
			say("%s.key: got %q, which Azure does not have%s", field, r.Key, instead)
			continue
		}
		if fault := wrongValues(r); fault != "" {
			say("%s%s", field, fault)
		}
		if r.Operator != corev1.NodeSelectorOpIn && r.Operator != corev1.NodeSelectorOpNotIn {
			continue
		}
		for _, value := range r.Values {
			if allowed := closedValues(r.Key); !allowed.matches(value) {
				say("%s.values: %s: got %q, allowed: %s", field, r.Key, value, allowed.words)
			}
		}
	}
	return problems
}

// wrongValues is the field of a requirement whose operator does not take its values, and why;
// empty for none. The rules of the definition speak of all requirements together.
func wrongValues(r *v1.NodeSelectorRequirementWithMinValues) string {
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		if len(r.Values) == 0 {
			return ".values: got none, operator In must have at least one"
		}
		if r.MinValues != nil && *r.MinValues > len(r.Values) {
			return fmt.Sprintf(".minValues: got %d, must be at most the number of values, %d", *r.MinValues, len(r.Values))
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt, v1.NodeSelectorOpGte, v1.NodeSelectorOpLte:
		if len(r.Values) == 1 {
			if n, err := strconv.Atoi(r.Values[0]); err == nil && n >= 0 {
				return ""
			}
		}
		return fmt.Sprintf(".values: got %q, operator %s must have one whole number from 0 on", r.Values, r.Operator)
	default: // the others take any
	}
	return ""
}

// longName says that the name of a NodePool is too long for plain machines, or nothing.
func longName(name string) string {
	if most := azure.LongestPoolName(); len(name) > most {
		return fmt.Sprintf("NodePool %s: its name has %d characters; where nap makes plain machines, it leaves out NodePools with more than %d",
			name, len(name), most)
	}
	return ""
}

// checkOverlay lists the requirements of a NodeOverlay on labels that no machine on Azure
// has: it would change nothing.
func checkOverlay(o *v1alpha1.NodeOverlay) []error {
	var problems []error
	for i, r := range o.Spec.Requirements {
		if instead, foreign := foreignKey(r.Key); foreign {
			problems = append(problems, fmt.Errorf("NodeOverlay %s: spec.requirements[%d].key: got %q, which Azure does not have%s",
				o.Name, i, r.Key, instead))
		}
	}
	return problems
}

// foreignKey reports whether a label is another cloud's, and which key to use instead.
func foreignKey(key string) (instead string, foreign bool) {
	azure, foreign := model.ForeignLabel(key)
	if azure != "" {
		return ", use: " + azure, true
	}
	return "; nap catalog -o json shows the labels of sizes", foreign
}

// previewKey reports whether a label is one of AKS's preview, and what says the same today.
func previewKey(key string) (today string, preview bool) {
	domain, name, _ := strings.Cut(key, "/")
	if domain != v1beta1.PreviewLabelDomain {
		return "", false
	}
	for _, l := range v1beta1.PreviewLabels() {
		if l[0] == name {
			return l[1], true
		}
	}
	return v1beta1.LabelDomain, true
}

// closed are all values that a label can have: in words, and as a test.
type closed struct {
	words   string
	matches func(value string) bool
}

// closedValues are the values of a label; where any may come, each matches.
func closedValues(key string) closed {
	oneOf := func(values ...string) closed {
		return closed{strings.Join(values, ", "), func(v string) bool { return slices.Contains(values, v) }}
	}
	switch key {
	case v1.CapacityTypeLabelKey:
		return oneOf(v1.CapacityTypeOnDemand, v1.CapacityTypeSpot, v1.CapacityTypeReserved)
	case corev1.LabelArchStable:
		return oneOf(v1.ArchitectureAmd64, v1.ArchitectureArm64)
	case instancetype.LabelSKUFamily:
		return closed{"one capital letter, such as D, E, F or N", func(v string) bool { return len(v) == 1 && v >= "A" && v <= "Z" }}
	default:
		return closed{matches: func(string) bool { return true }}
	}
}
