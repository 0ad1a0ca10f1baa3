package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	resourcehelper "k8s.io/component-helpers/resource"
)

// resources refuses what the containers, or the pod as a whole, cannot ask for.
func (c *refusal) resources() {
	for i := range c.spec.Containers {
		c.requirements(&c.spec.Containers[i].Resources, func() string { return fmt.Sprintf("spec.containers[%d].resources", i) }, false)
	}
	for i := range c.spec.InitContainers {
		c.requirements(&c.spec.InitContainers[i].Resources, func() string { return fmt.Sprintf("spec.initContainers[%d].resources", i) }, false)
	}
	if c.spec.Resources == nil {
		return
	}
	c.requirements(c.spec.Resources, func() string { return "spec.resources" }, true)
	together := resourcehelper.AggregateContainerRequests(&corev1.Pod{Spec: *c.spec}, resourcehelper.PodResourcesOptions{})
	for _, name := range slices.Sorted(maps.Keys(together)) {
		sum := together[name]
		if whole, set := c.spec.Resources.Requests[name]; set && sum.Cmp(whole) > 0 {
			c.fail("spec.resources.requests[%s]: got %s, must be at least what the containers ask for together, %s",
				name, whole.String(), sum.String())
		}
	}
	for i := range c.spec.Containers {
		limits := c.spec.Containers[i].Resources.Limits
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			limit := limits[name]
			if whole, set := c.spec.Resources.Limits[name]; set && limit.Cmp(whole) > 0 {
				c.fail("spec.containers[%d].resources.limits[%s]: got %s, must be at most that of the pod, %s", i, name, limit.String(), whole.String())
			}
		}
	}
}

// requirements refuses single requests and limits: names that there are not, parts of what is
// counted whole, and requests that differ from their limit where nothing can be shared, or are
// above it.
func (c *refusal) requirements(r *corev1.ResourceRequirements, field func() string, whole bool) {
	for _, name := range slices.Sorted(maps.Keys(r.Limits)) {
		c.amount(name, r.Limits, field()+".limits", whole)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		c.amount(name, r.Requests, field()+".requests", whole)
		request := r.Requests[name]
		limit, limited := r.Limits[name]
		switch shared := !isExtended(name) && !isHugePages(name); {
		case !limited && !shared:
			c.fail("%s.limits[%s]: is missing, must be as the request, %s: it cannot be overcommitted", field(), name, request.String())
		case limited && !shared && request.Cmp(limit) != 0:
			c.fail("%s.requests[%s]: got %s, must be as the limit, %s: it cannot be overcommitted", field(), name, request.String(), limit.String())
		case limited && request.Cmp(limit) > 0:
			c.fail("%s.requests[%s]: got %s, must be at most the limit, %s", field(), name, request.String(), limit.String())
		}
	}
}

// amount refuses a resource that a container, or the pod as a whole, cannot have.
func (c *refusal) amount(name corev1.ResourceName, list corev1.ResourceList, field string, whole bool) {
	switch quantity := list[name]; {
	case whole && !resourcehelper.IsSupportedPodLevelResource(name):
		c.fail("%s[%s]: got %s, allowed for the pod as a whole: cpu, memory and hugepages-SIZE", field, name, quantity.String())
	case isExtended(name):
		if quantity.MilliValue()%1000 != 0 {
			c.fail("%s[%s]: got %s, must be a whole number", field, name, quantity.String())
		}
	case !nativeResource(name):
		c.fail("%s[%s]: there is no such resource, allowed: cpu, memory, ephemeral-storage, hugepages-SIZE, "+
			"or a name with a domain such as nvidia.com/gpu", field, name)
	}
}

// nativeResource reports whether a resource is one of Kubernetes' own that containers can ask
// for.
func nativeResource(name corev1.ResourceName) bool {
	own := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	return slices.Contains(own, name) || isHugePages(name) ||
		strings.Contains(string(name), "/") && strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// isExtended reports whether a resource has a domain of its own, as devices have.
func isExtended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}
