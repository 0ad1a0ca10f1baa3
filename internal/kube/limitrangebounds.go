package kube

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// boundItem is an item of a LimitRange, with the name of that.
type boundItem struct {
	of   string
	item *corev1.LimitRangeItem
}

// boundsOf are the items of a namespace's LimitRanges that bound containers and pods, in the order of
// names, without those that say what one before them says.
func boundsOf(ranges map[string]*corev1.LimitRange) []boundItem {
	var out []boundItem
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(ranges)) {
		for i := range ranges[name].Spec.Limits {
			item := &ranges[name].Spec.Limits[i]
			if text := item.String(); !seen[text] {
				seen[text] = true
				out = append(out, boundItem{qualified(ranges[name].Namespace, name), item})
			}
		}
	}
	return out
}

// outOfRange says why a LimitRange of its namespace refuses a pod which has been admitted
// otherwise, "" where none does, as the API server does by
// k8s.io/kubernetes/plugin/pkg/admission/limitranger.
func outOfRange(bounds []boundItem, s *corev1.PodSpec) string {
	for _, b := range bounds {
		if why := outOf(b.item, s); why != "" {
			return fmt.Sprintf("LimitRange %s %s", b.of, why)
		}
	}
	return ""
}

// outOf says why an item of a LimitRange refuses a pod.
func outOf(item *corev1.LimitRangeItem, s *corev1.PodSpec) string {
	switch item.Type {
	case corev1.LimitTypeContainer:
		for _, containers := range [][]corev1.Container{s.Containers, s.InitContainers} {
			for i := range containers {
				b := &bounds{item: item, of: "container " + containers[i].Name, has: containers[i].Resources}
				if why := b.broken(); why != "" {
					return why
				}
			}
		}
	case corev1.LimitTypePersistentVolumeClaim: // has nothing to say of pods
	case corev1.LimitTypePod:
		pod := &corev1.Pod{Spec: *s}
		options := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
		b := &bounds{item: item, of: "the pod", has: corev1.ResourceRequirements{
			Requests: resourcehelper.PodRequests(pod, options), Limits: resourcehelper.PodLimits(pod, options),
		}}
		return b.broken()
	}
	return ""
}

// bounds are an item of a LimitRange, and what has to keep to it.
type bounds struct {
	item *corev1.LimitRangeItem
	of   string
	has  corev1.ResourceRequirements
}

// broken says which bound is broken first, "" for none.
func (b *bounds) broken() string {
	for _, name := range slices.Sorted(maps.Keys(b.item.Min)) {
		if why := b.below(name, b.item.Min[name]); why != "" {
			return why
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.item.Max)) {
		if why := b.above(name, b.item.Max[name]); why != "" {
			return why
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.item.MaxLimitRequestRatio)) {
		if why := b.apart(name, b.item.MaxLimitRequestRatio[name]); why != "" {
			return why
		}
	}
	return ""
}

func (b *bounds) below(name corev1.ResourceName, least resource.Quantity) string {
	request, requested := b.has.Requests[name]
	limit, limited := b.has.Limits[name]
	switch {
	case !requested:
		return fmt.Sprintf("wants a request of at least %s %s, and %s has none", name, least.String(), b.of)
	case request.Cmp(least) < 0:
		return fmt.Sprintf("wants a request of at least %s %s, and %s has %s", name, least.String(), b.of, request.String())
	case limited && limit.Cmp(least) < 0:
		return fmt.Sprintf("wants a limit of at least %s %s, and %s has %s", name, least.String(), b.of, limit.String())
	}
	return ""
}

// above looks at the request first. A container which asks for more than the limit by default
// is counted without it ([limitsFor]), and what helps it is a smaller request.
func (b *bounds) above(name corev1.ResourceName, most resource.Quantity) string {
	request := b.has.Requests[name]
	limit, limited := b.has.Limits[name]
	switch {
	case request.Cmp(most) > 0:
		return fmt.Sprintf("allows a request of at most %s %s, and %s has %s", name, most.String(), b.of, request.String())
	case limited && limit.Cmp(most) > 0:
		return fmt.Sprintf("allows a limit of at most %s %s, and %s has %s", name, most.String(), b.of, limit.String())
	case !limited && b.item.Type == corev1.LimitTypePod:
		return fmt.Sprintf("wants a limit of at most %s %s, and %s has none", name, most.String(), b.of)
	}
	return ""
}

func (b *bounds) apart(name corev1.ResourceName, ratio resource.Quantity) string {
	request, limit := b.has.Requests[name], b.has.Limits[name]
	has := fmt.Sprintf("%s has request %s and limit %s", b.of, request.String(), limit.String())
	switch {
	case request.IsZero() || limit.IsZero():
		return fmt.Sprintf("allows a limit of %s times the request of %s, and both must be set: %s", ratio.String(), name, has)
	case limit.AsApproximateFloat64()/request.AsApproximateFloat64() > ratio.AsApproximateFloat64():
		return fmt.Sprintf("allows a limit of at most %s times the request of %s, and %s", ratio.String(), name, has)
	}
	return ""
}
