package kube

import (
	"math"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// pod converts a pod. With everyPod, pods count as waiting although no
// scheduler has said so, as in files, and those which no API server has given a UID are
// checked as it would.
func (in *interner) pod(pod *corev1.Pod, everyPod bool) *fleet.Pod {
	out := new(fleet.Pod)
	in.read(pod, everyPod, out)
	return out
}

func (in *interner) read(pod *corev1.Pod, everyPod bool, out *fleet.Pod) {
	*out = fleet.Pod{
		Ref:         model.PodRef{Namespace: pod.Namespace, Name: pod.Name},
		UID:         string(pod.UID),
		Revision:    pod.ResourceVersion,
		Spec:        in.spec(pod),
		Labels:      in.labelSet(pod.Labels),
		Owner:       ownerOf(pod),
		Node:        pod.Spec.NodeName,
		Nominated:   pod.Status.NominatedNodeName,
		Terminal:    pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded,
		Terminating: pod.DeletionTimestamp != nil,
		Uncounted:   pod.Status.Phase == corev1.PodSucceeded && slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer),
		Leaving:     leaving(pod),
		Daemon:      ownedBy(pod, "apps/v1", "DaemonSet"),
		Static:      ownedBy(pod, "v1", "Node"),
		KeepUntil:   keepUntil(pod),
		Claims:      claimNames(pod),
		Created:     pod.CreationTimestamp.Time,

		EvictionCost: evictionCost(pod, in.settings.DeletionCostManaged),
	}
	out.Unready, out.ReadyAfter = readiness(pod)
	if everyPod && pod.UID == "" && pod.Spec.NodeName == "" && out.Spec.Invalid == "" && out.Spec.TooMuch == "" {
		if why := in.refusals.of(pod); why != "" {
			out.Spec = in.refused(out.Spec, why)
		}
	}
	out.OwnerUID = ownerUID(pod)
	out.Gated = len(pod.Spec.SchedulingGates) > 0
	out.OwnDeviceClaims = ownDeviceClaims(pod)
	planned := out.Spec.Invalid == "" && out.Spec.TooMuch == "" && !out.Spec.AvoidsPools
	out.Pattern = !everyPod && IsPattern(pod) && planned
	out.Unjudged = !everyPod && Unjudged(pod)
	out.Wanted = wanted(pod, out, everyPod)
}

// IsPattern reports whether the pods that the owner of this pod is about to create can be
// planned after it. They cannot where a pod has volume claims, which say where it may go
// and do not exist yet, shares a resource claim, waits for a gate, or is left to another
// scheduler.
func IsPattern(pod *corev1.Pod) bool {
	return ownerUID(pod) != "" && !ownedBy(pod, "apps/v1", "DaemonSet") && !ownedBy(pod, "v1", "Node") &&
		len(pod.Spec.SchedulingGates) == 0 && len(claimNames(pod)) == 0 && OfDefaultScheduler(pod) &&
		!slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool { return c.ResourceClaimName != nil })
}

// ownDeviceClaims are the ResourceClaims that were made for a pod, by its words for them.
func ownDeviceClaims(pod *corev1.Pod) map[string]string {
	var out map[string]string
	for i := range pod.Status.ResourceClaimStatuses {
		s := &pod.Status.ResourceClaimStatuses[i]
		if s.ResourceClaimName == nil {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[s.Name] = *s.ResourceClaimName
	}
	return out
}

// Unjudged reports whether a pod waits for the default scheduler, which has said nothing
// about it yet, not even that it does not look at it (scheduling gates). Pods that a
// DaemonSet or a node brings along do not count, nor those with volume claims, which may
// not be there yet.
func Unjudged(pod *corev1.Pod) bool {
	if ownedBy(pod, "apps/v1", "DaemonSet") || ownedBy(pod, "v1", "Node") ||
		pod.Spec.NodeName != "" || len(claimNames(pod)) > 0 ||
		pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 || !OfDefaultScheduler(pod) ||
		pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" || pod.Status.NominatedNodeName != "" {
		return false
	}
	return !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
}

// OfDefaultScheduler reports whether the scheduler of Kubernetes places a pod, and no other one.
func OfDefaultScheduler(pod *corev1.Pod) bool {
	return pod.Spec.SchedulerName == "" || pod.Spec.SchedulerName == corev1.DefaultSchedulerName
}

// ownerUID is the UID of the pod's controller.
func ownerUID(pod *corev1.Pod) string {
	for i := range pod.OwnerReferences {
		if o := &pod.OwnerReferences[i]; o.Controller != nil && *o.Controller {
			return string(o.UID)
		}
	}
	return ""
}

// leaving is when the deletion of a pod was asked for, and when its grace period is over, which is
// what its timestamp says; nil where it is not deleted.
func leaving(pod *corev1.Pod) *fleet.Leaving {
	if pod.DeletionTimestamp == nil {
		return nil
	}
	out := &fleet.Leaving{Since: pod.DeletionTimestamp.Time, GoneBy: pod.DeletionTimestamp.Time}
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		out.Since = out.Since.Add(-time.Duration(*grace) * time.Second)
	}
	return out
}

// wanted follows what Karpenter provisions for: a pod that the scheduler has
// found no node for, or has not looked at yet, and that no DaemonSet or node brings
// along itself. Whether
// its nomination makes that superfluous depends on the node.
func wanted(pod *corev1.Pod, out *fleet.Pod, everyPod bool) bool {
	if out.Node != "" || out.Terminal || out.Daemon || out.Static {
		return false
	}
	if everyPod {
		return !out.Terminating && len(pod.Spec.SchedulingGates) == 0
	}
	if out.Unjudged {
		return true
	}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			return true
		}
	}
	return false
}

// evictionCost is Karpenter's: a pod is 1, a little more or less by its disruption cost
// and its priority, within 10 of zero. A pod without a disruption cost has its deletion
// cost instead, unless those are managed: then they say what is planned, not what its
// users want. What is no whole number of 32 bits does not count.
func evictionCost(pod *corev1.Pod, deletionCostManaged bool) float64 {
	cost := 1.0
	text, given := pod.Annotations[v1.DisruptionCostAnnotationKey]
	if !given && !deletionCostManaged {
		text = pod.Annotations[corev1.PodDeletionCost]
	}
	if units, err := strconv.ParseInt(text, 10, 32); err == nil {
		cost += float64(units) / (1 << 27)
	}
	if pod.Spec.Priority != nil {
		cost += float64(*pod.Spec.Priority) / (1 << 25)
	}
	return min(max(cost, -10), 10)
}

// readiness is whether a pod says of itself that it does not work, and, where it says that it
// works, since how many seconds after it was created, 1 at least. One that says nothing, as in
// files, is taken to work.
func readiness(pod *corev1.Pod) (unready bool, after int32) {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type != corev1.PodReady {
			continue
		}
		if c.Status != corev1.ConditionTrue {
			return true, 0
		}
		seconds := c.LastTransitionTime.Sub(pod.CreationTimestamp.Time) / time.Second
		return false, int32(min(max(seconds, 1), math.MaxInt32))
	}
	return false, 0
}

func ownedBy(pod *corev1.Pod, apiVersion, kind string) bool {
	for i := range pod.OwnerReferences {
		if o := &pod.OwnerReferences[i]; o.APIVersion == apiVersion && o.Kind == kind {
			return true
		}
	}
	return false
}

// keepUntil reads the do-not-disrupt annotation: "true" protects forever, a
// duration protects from the pod's start. Anything else protects nothing.
func keepUntil(pod *corev1.Pod) time.Time {
	value, ok := pod.Annotations[v1.DoNotDisruptAnnotationKey]
	if !ok {
		return time.Time{}
	}
	if value == "true" {
		return fleet.Forever
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return time.Time{}
	}
	if pod.Status.StartTime == nil {
		return fleet.Forever
	}
	return pod.Status.StartTime.Add(d)
}

// claimNames are the volume claims of a pod; an ephemeral volume's claim is
// named after the pod and the volume.
func claimNames(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, pod.Name+"-"+v.Name)
		}
	}
	return names
}
