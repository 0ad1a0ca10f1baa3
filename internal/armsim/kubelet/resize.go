package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// resizePoll is how often a kubelet looks whether there is room now for a pod that is to
// grow.
const resizePoll = time.Second

// resized reports whether the containers of a running pod hold what the pod asks for. It
// may be changed while they run, by the subresource resize.
func resized(pod *corev1.Pod) bool {
	for _, s := range pod.Status.ContainerStatuses {
		i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == s.Name })
		if i >= 0 && s.Resources != nil && !holds(s.Resources, &pod.Spec.Containers[i].Resources) {
			return false
		}
	}
	return true
}

func holds(has, wants *corev1.ResourceRequirements) bool {
	return equality.Semantic.DeepEqual(has.Requests, wants.Requests) && equality.Semantic.DeepEqual(has.Limits, wants.Limits)
}

// resize gives the containers of a pod what the pod asks for, where the node has it, and
// says why not where it has not. It returns when to look again, zero if a change of the pod
// comes first.
func (r *pods) resize(ctx context.Context, v *vm, pod *corev1.Pod, rec *podRecord, now time.Time) (time.Duration, error) {
	total := allocatable(capacity(v.machine, v.boot.Flags.MaxPods, r.cfg.MemoryOverhead, true), v.boot.Flags)
	reason, message := shortage(pod, total, r.others(pod))
	rec.resizeAt = now.Add(resizePoll)
	if reason == "" {
		return 0, r.patchStatus(ctx, pod, map[string]any{
			"containerStatuses": statusesAfter(pod),
			"conditions":        []any{map[string]any{"type": corev1.PodResizePending, "$patch": "delete"}},
		})
	}
	if pendingReason(pod) == reason {
		return resizePoll, nil
	}
	return resizePoll, r.patchStatus(ctx, pod, map[string]any{"conditions": []corev1.PodCondition{{
		Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
	}}})
}

// others is what the other pods of a pod's node hold.
func (r *pods) others(pod *corev1.Pod) corev1.ResourceList {
	bound, err := r.informer.GetIndexer().ByIndex(byNodeIndex, pod.Spec.NodeName)
	if err != nil {
		return nil // cannot happen: the index exists
	}
	out := corev1.ResourceList{}
	for _, o := range bound {
		p := o.(*corev1.Pod)
		if p.UID == pod.UID || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		add(out, held(p))
	}
	return out
}

// held is what a pod's containers hold: what they were given, or ask for where they have
// not been given anything yet.
func held(pod *corev1.Pod) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		has := c.Resources.Requests
		for _, s := range pod.Status.ContainerStatuses {
			if s.Name == c.Name && s.AllocatedResources != nil {
				has = s.AllocatedResources
			}
		}
		add(out, has)
	}
	return out
}

func add(to, more corev1.ResourceList) {
	for name, q := range more {
		sum := to[name]
		sum.Add(q)
		to[name] = sum
	}
}

// shortage says why a pod cannot have what it asks for: because no node of the size could
// give it, or because the others of the node leave too little now. The words are a real
// kubelet's.
func shortage(pod *corev1.Pod, total, others corev1.ResourceList) (reason, message string) {
	wants := corev1.ResourceList{}
	for i := range pod.Spec.Containers {
		add(wants, pod.Spec.Containers[i].Resources.Requests)
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		want, has, used := wants[name], total[name], others[name]
		amount := func(q resource.Quantity) int64 {
			if name == corev1.ResourceCPU {
				return q.MilliValue()
			}
			return q.Value()
		}
		if want.Cmp(has) > 0 {
			return corev1.PodReasonInfeasible, fmt.Sprintf("Node didn't have enough capacity: %s, requested: %d, capacity: %d",
				name, amount(want), amount(has))
		}
		if amount(want)+amount(used) > amount(has) && reason == "" {
			reason, message = corev1.PodReasonDeferred, fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
				name, amount(want), amount(used), amount(has))
		}
	}
	return reason, message
}

// pendingReason is why the pod's status says that a change waits; empty where none does.
func pendingReason(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodResizePending {
			return c.Reason
		}
	}
	return ""
}

// statusesAfter are the statuses of containers that hold what the pod asks for.
func statusesAfter(pod *corev1.Pod) []corev1.ContainerStatus {
	out := slices.Clone(pod.Status.ContainerStatuses)
	for i := range out {
		for _, c := range pod.Spec.Containers {
			if c.Name == out[i].Name {
				out[i].Resources, out[i].AllocatedResources = given(c)
			}
		}
	}
	return out
}

// given is what a container that runs says it holds; nil where it asks for nothing.
func given(c corev1.Container) (*corev1.ResourceRequirements, corev1.ResourceList) {
	if len(c.Resources.Requests) == 0 && len(c.Resources.Limits) == 0 {
		return nil, nil
	}
	return &corev1.ResourceRequirements{Requests: c.Resources.Requests, Limits: c.Resources.Limits}, c.Resources.Requests
}

// patchStatus writes a part of a pod's status. A pod that is gone or was replaced needs
// none.
func (r *pods) patchStatus(ctx context.Context, pod *corev1.Pod, status any) error {
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encoding the status of pod %s: %w", podKey(pod), err)
	}
	_, err = r.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, raw, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("writing the status of pod %s: %w", podKey(pod), err)
	}
	return nil
}
