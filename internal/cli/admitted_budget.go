package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/nodeautoprovision/nap/internal/model"
)

// checkBudget is what an API server would refuse of a PodDisruptionBudget, as
// k8s.io/kubernetes/pkg/apis/policy/validation does; ignored is what its file holds and its
// kind does not know. One with a UID was taken by a server.
func checkBudget(b *policyv1.PodDisruptionBudget, ignored []string) []error {
	if b.UID != "" {
		return nil
	}
	var problems []error
	say := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("PodDisruptionBudget %s/%s: "+format, append([]any{b.Namespace, b.Name}, args...)...))
	}
	for _, why := range apivalidation.NameIsDNSSubdomain(b.Name, false) {
		say("metadata.name: got %q: %s", b.Name, why)
	}
	for _, text := range ignored {
		say("%s", unknownOfBudget(text))
	}
	if b.Spec.MinAvailable != nil && b.Spec.MaxUnavailable != nil {
		say("spec: got minAvailable %s and maxUnavailable %s, allowed: one of them", b.Spec.MinAvailable, b.Spec.MaxUnavailable)
	}
	for _, f := range []struct {
		name  string
		value *intstr.IntOrString
	}{{"minAvailable", b.Spec.MinAvailable}, {"maxUnavailable", b.Spec.MaxUnavailable}} {
		if f.value != nil && !countsPods(f.value) {
			say("spec.%s: got %q, allowed: a number of pods from 0 on, or 0%% to 100%%", f.name, f.value)
		}
	}
	if p := b.Spec.UnhealthyPodEvictionPolicy; p != nil && *p != policyv1.IfHealthyBudget && *p != policyv1.AlwaysAllow {
		say("spec.unhealthyPodEvictionPolicy: got %q, allowed: %s, %s", *p, policyv1.IfHealthyBudget, policyv1.AlwaysAllow)
	}
	for _, e := range metav1validation.ValidateLabelSelector(b.Spec.Selector, metav1validation.LabelSelectorValidationOptions{},
		field.NewPath("spec", "selector")) {
		if e.Detail == "not a valid selector operator" {
			e.Detail += ", allowed: In, NotIn, Exists, DoesNotExist"
		}
		say("%v", e)
	}
	return problems
}

// countsPods reports whether a value is a number of pods, or a part of them.
func countsPods(v *intstr.IntOrString) bool {
	if v.Type == intstr.Int {
		return v.IntVal >= 0
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(v.StrVal, "%"))
	return len(validation.IsValidPercent(v.StrVal)) == 0 && err == nil && percent <= 100
}

// unknownField is how the decoder names a field that a kind does not have.
var unknownField = regexp.MustCompile(`^unknown field "(.+)"$`)

// unknownOfBudget says of a field that a PodDisruptionBudget does not have which was meant.
func unknownOfBudget(text string) string {
	found := unknownField.FindStringSubmatch(text)
	if found == nil {
		return text
	}
	path := found[1]
	at := strings.LastIndex(path, ".") + 1
	fields := []string{"minAvailable", "maxUnavailable", "selector", "unhealthyPodEvictionPolicy"}
	if path[:at] != "spec." {
		return path + ": there is no such field"
	}
	if meant := model.Alike(path[at:], fields); meant != "" {
		return fmt.Sprintf("%s: there is no such field, use: %s", path, meant)
	}
	slices.Sort(fields)
	return fmt.Sprintf("%s: there is no such field, allowed: %s", path, strings.Join(fields, ", "))
}
