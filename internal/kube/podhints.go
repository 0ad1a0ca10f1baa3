package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// podHint is the first field of an object of a kind that nap does not know which looks as if pods came
// of it, "" where none does: a container with an image, or a number of instances beside an image or
// what each takes. It is no more than a hint: operators read such fields each in its own way, as those
// of Spark, Argo Workflows and CloudNativePG do.
func podHint(u *unstructured.Unstructured) string {
	if patternOnly(u) {
		return ""
	}
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	return hintIn(spec, "spec")
}

// patternOnly reports whether objects of a kind describe pods that others make: policies, templates,
// definitions, and what deploys other objects.
func patternOnly(u *unstructured.Unstructured) bool {
	group, kind := u.GroupVersionKind().Group, u.GetKind()
	for _, suffix := range []string{
		"apiextensions.k8s.io", "admissionregistration.k8s.io", "kyverno.io", "gatekeeper.sh", "cluster.x-k8s.io", "fluxcd.io", "crossplane.io",
	} {
		if group == suffix || strings.HasSuffix(group, "."+suffix) {
			return true
		}
	}
	for _, suffix := range []string{
		"Template", "Policy", "Constraint", "Profile", "Class", "Provider", "Config", "Configuration", "Definition", "Monitor", "Runtime",
		"Application", "Set",
	} {
		if strings.HasSuffix(kind, suffix) && kind != "SparkApplication" {
			return true
		}
	}
	return false
}

// hintIn looks for a hint in a field and those below it, in the order of their names.
func hintIn(v any, path string) string {
	switch v := v.(type) {
	case []any:
		for i := range v {
			if at := hintIn(v[i], fmt.Sprintf("%s[%d]", path, i)); at != "" {
				return at
			}
		}
	case map[string]any:
		if runs(v) || isContainer(v["container"]) || hasContainers(map[string]any{"spec": v}) {
			return path
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if at := hintIn(v[key], path+"."+key); at != "" {
				return at
			}
		}
	}
	return ""
}

// runs reports whether a map has a number of instances, and an image or what each of them takes.
func runs(m map[string]any) bool {
	counted := false
	for _, key := range []string{"instances", "replicas"} {
		n, set := integer(m[key])
		counted = counted || set && n > 0
	}
	if !counted {
		return false
	}
	resources, _ := m["resources"].(map[string]any)
	for _, key := range []string{"requests", "limits"} {
		if _, set := resources[key].(map[string]any); set {
			return true
		}
	}
	for _, key := range []string{"image", "imageName", "memory"} {
		if text, _ := m[key].(string); text != "" {
			return true
		}
	}
	return false
}

// isContainer reports whether a field is a container with an image.
func isContainer(v any) bool {
	m, _ := v.(map[string]any)
	image, _ := m["image"].(string)
	return image != ""
}
