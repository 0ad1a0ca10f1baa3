package model

import (
	"fmt"
	"slices"
	"strings"
)

// Labels which people select that machines bought here do not carry, or carry under
// another key.
const (
	labelNodePool = "karpenter.sh/nodepool"
	labelOS       = "kubernetes.io/os"
	// fieldName is what matchFields of a node affinity select by, which is no label.
	fieldName = "metadata.name"
)

// LabelMode is AKS's label for what a machine is for: AKS prefers machines of mode system for
// the pods of the system, and pods of users go to those of mode user.
const LabelMode = "kubernetes.azure.com/mode"

// ForeignDomain reports whether a domain of labels, or a group of the API, is another cloud's.
func ForeignDomain(domain string) bool { return slices.Contains(foreignDomains(), domain) }

// foreignDomains are domains of labels that other clouds have and Azure has not.
func foreignDomains() []string {
	return []string{"karpenter.k8s.aws", "eks.amazonaws.com", "k8s.amazonaws.com", "cloud.google.com", "karpenter.k8s.gcp"}
}

// azureKeys are the keys that say on Azure what a label of Karpenter on AWS says there.
func azureKeys() map[string]string {
	return map[string]string{
		"instance-category":         "karpenter.azure.com/sku-family",
		"instance-family":           "karpenter.azure.com/sku-series",
		"instance-generation":       "karpenter.azure.com/sku-version",
		"instance-cpu":              "karpenter.azure.com/sku-cpu",
		"instance-memory":           "karpenter.azure.com/sku-memory",
		"instance-gpu-name":         "karpenter.azure.com/sku-gpu-name",
		"instance-gpu-manufacturer": "karpenter.azure.com/sku-gpu-manufacturer",
		"instance-gpu-count":        "karpenter.azure.com/sku-gpu-count",
		"instance-size":             LabelInstanceType,
		"capacityType":              LabelCapacityType,
	}
}

// ForeignLabel reports whether a label is another cloud's, and the key that says the same
// on Azure, empty where there is none.
func ForeignLabel(key string) (instead string, foreign bool) {
	domain, name, _ := strings.Cut(key, "/")
	if !ForeignDomain(domain) {
		return "", false
	}
	return azureKeys()[name], true
}

// LabelAdvice is what to select instead of a label that no machine of any NodePool can
// match, one sentence, or empty where the key alone does not tell.
func LabelAdvice(r Requirement) string {
	const instead = "Select %s instead of %s%s."
	if key, foreign := ForeignLabel(r.Key); foreign {
		if key == "" {
			return fmt.Sprintf("Drop %s, which Azure does not have; nap catalog -o json shows the labels of sizes.", r.Key)
		}
		return fmt.Sprintf(instead, key, r.Key, ", which Azure does not have")
	}
	switch r.Key {
	case "agentpool", "kubernetes.azure.com/agentpool":
		return fmt.Sprintf(instead, labelNodePool, r.Key, ", which only nodes of AKS agent pools have")
	case "kubernetes.azure.com/scalesetpriority":
		return fmt.Sprintf(instead, LabelCapacityType, r.Key, ", and let a NodePool buy such machines")
	case LabelMode:
		if r.Matches("system", true) && !r.Matches("user", true) {
			return "Create a NodePool with the label " + LabelMode + ": system in its template: no other buys machines of the system."
		}
	case LabelHostname, fieldName:
		return fmt.Sprintf("Drop %s: the name of a machine is not known before it is bought, and no NodePool may set it.", r.Key)
	case labelOS:
		return "Run it on an AKS agent pool of that operating system: nap buys linux machines only."
	}
	return ""
}

// MeantLabel is the one of some labels which a key that is none of them means: it is written
// almost the same, or has the same name in another domain. It is empty where none is so near.
func MeantLabel(key string, known []string) string {
	if meant := Alike(key, known); meant != "" {
		return meant
	}
	domain, name, found := strings.Cut(key, "/")
	if !found || !strings.Contains(domain, "karpenter") && !strings.HasSuffix(domain, "kubernetes.io") &&
		domain != "kubernetes.azure.com" && domain != "k8s.io" {
		return "" // people's own labels may have any name
	}
	for _, k := range known {
		if _, other, _ := strings.Cut(k, "/"); other == name || other == "sku-"+name {
			return k
		}
	}
	return ""
}

// ResourceAdvice says what helps a pod that asks for a resource which no machine on sale has.
func ResourceAdvice(resource string) string {
	return fmt.Sprintf("Drop the request: no machine on sale has %s, unless a NodeOverlay says so.", resource)
}
