package systemnode

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/internal/lab"
)

// status is the pod's, as its processes are now.
func (w *worker) status(pod *corev1.Pod) corev1.PodStatus {
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &w.started, QOSClass: pod.Status.QOSClass,
		HostIP: nodeIP, HostIPs: []corev1.HostIP{{IP: nodeIP}},
		PodIP: w.address, PodIPs: []corev1.PodIP{{IP: w.address}},
	}
	ready := true
	for _, c := range w.containers() {
		s := c.status(w.started)
		ready = ready && s.Ready
		status.ContainerStatuses = append(status.ContainerStatuses, s)
	}
	status.Conditions = conditions(pod, ready)
	return status
}

// conditions are those of a pod with started containers. The moment of a
// change is that of the status before where the condition has not changed.
func conditions(pod *corev1.Pod, ready bool) []corev1.PodCondition {
	var all []corev1.PodCondition
	for _, t := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
	} {
		c := corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second))}
		if !ready && (t == corev1.ContainersReady || t == corev1.PodReady) {
			c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotReady"
		}
		if i := slices.IndexFunc(pod.Status.Conditions, func(before corev1.PodCondition) bool {
			return before.Type == c.Type && before.Status == c.Status
		}); i >= 0 {
			c.LastTransitionTime = pod.Status.Conditions[i].LastTransitionTime
		}
		all = append(all, c)
	}
	return all
}

// waiting is the status of a pod with containers that cannot be started, and why.
func waiting(pod *corev1.Pod, why error) corev1.PodStatus {
	status := corev1.PodStatus{Phase: corev1.PodPending, HostIP: nodeIP, HostIPs: []corev1.HostIP{{IP: nodeIP}}}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: why.Error()}},
		})
	}
	return status
}

// status is the container's.
func (c *container) status(started metav1.Time) corev1.ContainerStatus {
	yes := true
	s := corev1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image, ImageID: c.spec.Image, ContainerID: "process://" + string(c.worker.uid),
		Started: &yes, RestartCount: c.restarts,
	}
	if c.program == nil { // played
		s.Ready, s.State.Running = true, &corev1.ContainerStateRunning{StartedAt: started}
		return s
	}
	state := c.now()
	s.Ready = state.Status == lab.StatusReady
	s.RestartCount += int32(state.Restarts) //nolint:gosec // a few
	if state.Process.PID != 0 {
		s.ContainerID = "process://" + strconv.Itoa(state.Process.PID)
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(state.StartedAt.Truncate(time.Second))}
	} else {
		reason := "ContainerCreating"
		if state.Status == lab.StatusBackingOff {
			reason = "CrashLoopBackOff"
		}
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: state.LastExit}
	}
	if state.LastExit != "" {
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: exitCode(state.LastExit), Reason: "Error", Message: state.LastExit,
		}
	}
	return s
}

// exitCode reads how a process ended, as the lab says it: "ended with exit status 1".
func exitCode(said string) int32 {
	const killed = 137
	if _, status, ok := strings.Cut(said, "exit status "); ok {
		if n, err := strconv.ParseInt(status, 10, 32); err == nil {
			return int32(n)
		}
	}
	return killed
}
