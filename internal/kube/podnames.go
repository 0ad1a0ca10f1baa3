package kube

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podNames are the names that pods have, with the pods of the input. A name that the pod of
// a StatefulSet will have, also in the place of one that has ended, or that was made up, has no
// pod. Pods of all workloads share one name space, while workloads of different kinds may have the
// same name.
type podNames map[client.ObjectKey]*corev1.Pod

// reserve keeps the names that the pods of a StatefulSet will have from other workloads:
// its own pods can have no others.
func (e *expander) reserve(s *appsv1.StatefulSet) {
	replicas := e.wants(s.Namespace, "StatefulSet", s.Name, count(s.Spec.Replicas))
	reserved := max(0, min(replicas, MaxExpandedPods-e.counts.reserved)) // of more there are too many pods
	e.counts.reserved += reserved
	for i := range reserved {
		key := client.ObjectKey{Namespace: s.Namespace, Name: ordinalName(s, i)}
		if _, taken := e.names[key]; !taken {
			e.names[key] = nil
		}
	}
}

// ordinalName is the name of a StatefulSet's pod at a place, counted from 0.
func ordinalName(s *appsv1.StatefulSet, place int) string {
	if s.Spec.Ordinals != nil {
		place += int(s.Spec.Ordinals.Start)
	}
	return fmt.Sprintf("%s-%d", s.Name, place)
}

// addNumbered adds pods of a workload that are named after it and numbered, unless they are too
// many. Where a pod has one
// of these names, all of the workload's have its kind in their names, too.
func (e *expander) addNumbered(o client.Object, kind string, numbers []string, template *corev1.PodTemplateSpec) error {
	if err := e.countMade(len(numbers)); err != nil {
		return err
	}
	prefix := o.GetName() + "-"
	taken := func(number string) bool {
		_, taken := e.names[client.ObjectKey{Namespace: o.GetNamespace(), Name: prefix + number}]
		return taken
	}
	for slices.ContainsFunc(numbers, taken) {
		prefix += strings.ToLower(kind) + "-"
	}
	names := make([]string, len(numbers))
	for i, number := range numbers {
		names[i] = prefix + number
		e.names[client.ObjectKey{Namespace: o.GetNamespace(), Name: names[i]}] = nil
	}
	if len(names) > 0 && !slices.ContainsFunc(template.Spec.Volumes, isEphemeral) {
		e.addPods(podFrom(o, kind, names[0], template), names[1:])
		return nil
	}
	for _, name := range names {
		e.addPod(podFrom(o, kind, name, template))
	}
	return nil
}

// isEphemeral reports whether each pod has a claim of its own for the volume.
func isEphemeral(v corev1.Volume) bool { return v.Ephemeral != nil }

// numbersTo are the numbers from one up to another, which is left out, as texts that sort as
// the numbers do.
func numbersTo(from, to int) []string {
	width := len(strconv.Itoa(max(0, to-1)))
	out := make([]string, 0, max(0, to-from))
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("%0*d", width, i))
	}
	return out
}

// lacksOrdinal reports whether a StatefulSet creates the pod of this name. It does not where
// its own is there, or where one that is still being deleted or that it cannot adopt has the name,
// which a note tells. Its own pod that has ended makes way for the new one.
func (e *expander) lacksOrdinal(s *appsv1.StatefulSet, name string) bool {
	key := client.ObjectKey{Namespace: s.Namespace, Name: name}
	switch pod := e.names[key]; {
	case pod == nil:
		return true
	case !adopts(s, pod):
		e.note("StatefulSet %s/%s: its pod %s is not planned: another pod has that name", s.Namespace, s.Name, name)
	case podEnded(pod):
		e.names[key] = nil
		return true
	case pod.DeletionTimestamp != nil:
		e.note("StatefulSet %s/%s: its pod %s is not planned: the one before it is still being deleted", s.Namespace, s.Name, name)
	}
	return false
}

// dropReplaced leaves out the pods of the input that have ended and whose names others have now.
func (e *expander) dropReplaced() {
	e.out.Objects.delete(func(o client.Object) bool {
		pod, is := o.(*corev1.Pod)
		return is && podEnded(pod) && e.names[client.ObjectKeyFromObject(pod)] == nil
	})
}

// adopts reports whether a pod is one of a StatefulSet, or has no controller yet and the
// labels that the StatefulSet selects.
func adopts(s *appsv1.StatefulSet, pod *corev1.Pod) bool {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return owner.Kind == "StatefulSet" && owner.Name == s.Name
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

// hasGone reports whether a pod has ended or is being deleted, so that its workload replaces
// it.
func hasGone(pod *corev1.Pod) bool { return podEnded(pod) || pod.DeletionTimestamp != nil }

// podEnded reports whether a pod runs no more.
func podEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
