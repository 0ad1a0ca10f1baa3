package kube

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/nodeautoprovision/nap/internal/model"
)

// ownKinds are the kinds of Karpenter and nap, with their groups.
func ownKinds() map[string]string {
	return map[string]string{
		"NodePool": "karpenter.sh", "NodeClaim": "karpenter.sh", "NodeOverlay": "karpenter.sh",
		"AKSNodeClass": "karpenter.azure.com", "NodeAutoProvisioning": "karpenter.azure.com", "Snapshot": "karpenter.azure.com",
		"SnapshotShard": "karpenter.azure.com", "LedgerPage": "karpenter.azure.com",
	}
}

// mistyped says which kind or API group was meant where a misspelled one is given. Groups of
// others may have any kind; Kubernetes' own, Karpenter's and nap's are known.
func (h *head) mistyped() error {
	group := h.GroupVersionKind().Group
	if right, own := ownKinds()[h.Kind]; own && group != right && strings.Contains(group, "karpenter") {
		return fmt.Errorf("apiVersion: got %q, which has no kind %s, use: %s", h.APIVersion, h.Kind, right+"/"+ownVersion(right))
	}
	var kinds, groups []string
	for kind, of := range ownKinds() {
		if of == group {
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

// ownVersion is the version of a group that commands read.
func ownVersion(group string) string {
	for _, known := range slices.Sorted(maps.Keys(kinds())) {
		if version, found := strings.CutPrefix(known, group+"/"); found {
			version, _, _ = strings.Cut(version, " ")
			return version
		}
	}
	return "v1beta1"
}
