package cli

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// decidingAnnotations are those of NodePools that decide what is bought, and which nodes go.
var decidingAnnotations = []string{
	v1beta1.AnnotationNodeCost, v1beta1.AnnotationMaxHourlyCost, v1beta1.AnnotationFrozen, v1beta1.AnnotationFrozenUntil,
}

// applyAnnotations gives an edited NodePool those deciding annotations of the old one that
// "kubectl apply" of its file leaves there, and says how it differs in them then.
func applyAnnotations(old, edited *v1.NodePool) []string {
	annotations := maps.Clone(edited.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	var changes []string
	for _, name := range decidingAnnotations {
		before, had := old.Annotations[name]
		after, has := annotations[name]
		switch {
		case had && !has && outlivesApply(old, name):
			annotations[name] = before
		case had && !has:
			changes = append(changes, fmt.Sprintf("has no %s, which was %q", name, before))
		case has && !had:
			changes = append(changes, fmt.Sprintf("has %s %q", name, after))
		case after != before:
			changes = append(changes, fmt.Sprintf("has %s %q, which was %q", name, after, before))
		}
	}
	edited.Annotations = annotations
	return changes
}

// outlivesApply reports whether an annotation of an object stays when a file without it is
// applied: kubectl removes what it has applied itself, and leaves what others wrote, such as nap
// freeze. An object without a UID is of a file, and is taken as applied by kubectl with all that
// it has.
func outlivesApply(o metav1.Object, name string) bool {
	var applied metav1.PartialObjectMetadata
	text, told := o.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
	if !told || json.Unmarshal([]byte(text), &applied) != nil {
		return o.GetUID() != ""
	}
	_, by := applied.Annotations[name]
	return !by
}
