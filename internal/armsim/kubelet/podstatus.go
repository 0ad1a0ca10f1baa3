package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/container"
)

// podStatus builds the patches of a pod's status. Patches hold only what
// changes: conditions are merged by type, container statuses replaced.
type podStatus struct {
	pod      *corev1.Pod
	now      metav1.Time
	restarts int32
	// ran is how long the containers have run; zero when they have just started.
	ran    time.Duration
	hostIP string
	podIP  string
}

// running is the status of a pod whose containers have just started.
func (s podStatus) running() corev1.PodStatus {
	started := s.pod.Status.StartTime
	if started == nil {
		started = &s.now
	}
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: started,
		HostIP: s.hostIP, HostIPs: []corev1.HostIP{{IP: s.hostIP}},
		PodIP: s.podIP, PodIPs: []corev1.PodIP{{IP: s.podIP}},
		Conditions: append(s.conditionsOfReadiness(),
			s.condition(corev1.PodReadyToStartContainers, true, ""), s.condition(corev1.PodInitialized, true, "")),
	}
	for _, c := range s.pod.Spec.InitContainers {
		// A sidecar goes on running, any other init container has done its work.
		state := s.exited(0, "Completed")
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			state = s.up()
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, s.container(c, state, true))
	}
	for _, c := range s.pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, s.container(c, s.up(), s.passes(c)))
	}
	return status
}

// readiness says whether a pod whose containers run is ready.
func (s podStatus) readiness() corev1.PodStatus {
	status := corev1.PodStatus{Conditions: s.conditionsOfReadiness()}
	for i, c := range s.pod.Spec.Containers {
		if i < len(s.pod.Status.ContainerStatuses) {
			of := s.pod.Status.ContainerStatuses[i]
			of.Ready = s.passes(c)
			status.ContainerStatuses = append(status.ContainerStatuses, of)
		}
	}
	return status
}

func (s podStatus) conditionsOfReadiness() []corev1.PodCondition {
	containers := s.condition(corev1.ContainersReady, true, "")
	for _, c := range s.pod.Spec.Containers {
		if !s.passes(c) {
			containers = s.condition(corev1.ContainersReady, false, "ContainersNotReady")
		}
	}
	ready := s.condition(corev1.PodReady, true, "")
	if now, _ := readyInFact(s.pod, s.ran); !now {
		ready = s.condition(corev1.PodReady, false, "ReadinessGatesNotReady")
		if containers.Status == corev1.ConditionFalse {
			ready.Reason = containers.Reason
		}
	}
	return []corev1.PodCondition{containers, ready}
}

// passes reports whether a container that runs passes its readiness probe now.
func (s podStatus) passes(c corev1.Container) bool {
	after, ever := container.ReadyAfter(c)
	return ever && after <= s.ran
}

// finished is the status of a pod whose containers ended for good.
func (s podStatus) finished(exitCode int32, reason, message string) corev1.PodStatus {
	phase, containerReason, conditionReason := corev1.PodSucceeded, "Completed", "PodCompleted"
	if exitCode != 0 {
		phase, containerReason, conditionReason = corev1.PodFailed, "Error", "PodFailed"
	}
	status := corev1.PodStatus{
		Phase: phase, Reason: reason, Message: message,
		Conditions: []corev1.PodCondition{
			s.condition(corev1.ContainersReady, false, conditionReason), s.condition(corev1.PodReady, false, conditionReason),
		},
	}
	for _, c := range s.pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, s.container(c, s.exited(exitCode, containerReason), false))
	}
	return status
}

// crashed is the status of a pod whose containers wait to start again.
func (s podStatus) crashed(exitCode int32) corev1.PodStatus {
	status := corev1.PodStatus{Conditions: []corev1.PodCondition{
		s.condition(corev1.ContainersReady, false, "ContainersNotReady"), s.condition(corev1.PodReady, false, "ContainersNotReady"),
	}}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	for _, c := range s.pod.Spec.Containers {
		cs := s.container(c, waiting, false)
		cs.LastTerminationState = s.exited(exitCode, "Error")
		status.ContainerStatuses = append(status.ContainerStatuses, cs)
	}
	return status
}

func (s podStatus) condition(t corev1.PodConditionType, holds bool, reason string) corev1.PodCondition {
	status := corev1.ConditionFalse
	if holds {
		status = corev1.ConditionTrue
	}
	return corev1.PodCondition{Type: t, Status: status, Reason: reason, LastTransitionTime: s.now}
}

func (s podStatus) container(c corev1.Container, state corev1.ContainerState, ready bool) corev1.ContainerStatus {
	started := state.Running != nil
	out := corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, State: state, Ready: ready, Started: &started, RestartCount: s.restarts,
	}
	if started {
		out.Resources, out.AllocatedResources = container.Given(c)
	}
	return out
}

// up is the state of a container that starts now.
func (s podStatus) up() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: s.now}}
}

// exited is the state of a container that ends now.
func (s podStatus) exited(exitCode int32, reason string) corev1.ContainerState {
	from := s.now
	if cs := s.pod.Status.ContainerStatuses; len(cs) > 0 && cs[0].State.Running != nil {
		from = cs[0].State.Running.StartedAt
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: exitCode, Reason: reason, StartedAt: from, FinishedAt: s.now,
	}}
}
