package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/nodeautoprovision/nap/internal/model"
)

// definedKinds are the kinds which nap's custom resource definitions define, with the version
// that commands read.
func definedKinds() map[string]schema.GroupVersion {
	const karpenter, nap = "karpenter.sh", "nap.azure.com"
	return map[string]schema.GroupVersion{
		"NodePool": {Group: karpenter, Version: "v1"}, "NodeClaim": {Group: karpenter, Version: "v1"},
		"NodeOverlay":    {Group: karpenter, Version: "v1alpha1"},
		"AKSNodeClass":   {Group: "karpenter.azure.com", Version: "v1beta1"},
		"CapacityBuffer": {Group: "autoscaling.x-k8s.io", Version: "v1beta1"},

		"NodeAutoProvisioning": {Group: nap, Version: "v1alpha1"}, "Snapshot": {Group: nap, Version: "v1alpha1"},
		"SnapshotShard": {Group: nap, Version: "v1alpha1"}, "LedgerPage": {Group: nap, Version: "v1alpha1"},
		"ShadowReport": {Group: nap, Version: "v1alpha1"},
	}
}

// isDefined reports whether a group has kinds which nap's definitions define.
func isDefined(group string) bool {
	for _, of := range definedKinds() {
		if of.Group == group {
			return true
		}
	}
	return false
}

// mistyped says which kind or API group was meant where a misspelled one is given. Groups of
// others may have any kind; Kubernetes' own, Karpenter's and nap's are known.
func (h *head) mistyped() error {
	group := h.GroupVersionKind().Group
	right, own := definedKinds()[h.Kind]
	if own && group != right.Group && (isDefined(group) || strings.Contains(group, "karpenter")) {
		return fmt.Errorf("apiVersion: got %q, which has no kind %s, use: %s", h.APIVersion, h.Kind, right)
	}
	var kinds, groups []string
	for kind, of := range definedKinds() {
		if of.Group == group {
			kinds = append(kinds, kind)
		}
	}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		switch {
		case gvk.Group == group:
			kinds = append(kinds, gvk.Kind)
		case gvk.Kind == h.Kind && gvk.Group != "" && !strings.Contains(gvk.Group, "."):
			groups = append(groups, gvk.Group)
		}
	}
	slices.Sort(kinds)
	slices.Sort(groups)
	if len(kinds) == 0 && !strings.Contains(group, ".") { // the group of a definition has a dot
		return fmt.Errorf("apiVersion: got %q, which no cluster has%s", h.APIVersion, meant(model.Alike(group, groups)))
	}
	if slices.Contains(kinds, h.Kind) {
		return nil
	}
	if kind := model.Alike(h.Kind, kinds); kind != "" {
		return fmt.Errorf("kind: got %q, which %s does not have, use: %s", h.Kind, cmp.Or(group, "v1"), kind)
	}
	return nil
}

func meant(word string) string {
	if word == "" {
		return ""
	}
	return ", use the group: " + word
}
