package kubelet

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/container"
)

// Annotations by which a pod says how its containers end. Without them
// containers run until they are stopped.
const (
	// AnnotationRunFor is how long the containers run, a Go duration such as
	// 5s. Zero when only the exit code is given.
	AnnotationRunFor = "lab.nap/run-for"
	// AnnotationExitCode is what the containers exit with, 0 to 255. Zero when
	// only the duration is given.
	AnnotationExitCode = "lab.nap/exit-code"
)

// action is what a kubelet does to a pod.
type action string

const (
	wait   action = "wait"   // nothing, or nothing yet
	start  action = "start"  // containers run
	heal   action = "heal"   // readiness that the control plane took away is put right
	resize action = "resize" // containers are to hold more or less
	finish action = "finish" // containers ended for good
	crash  action = "crash"  // containers ended and start again later
	remove action = "remove" // the object goes away
)

// step is an action, or when to ask again.
type step struct {
	do       action
	after    time.Duration // wait: zero until something changes
	exitCode int32         // finish, crash
	reason   string        // finish
	message  string
}

// podRecord is what a kubelet remembers about a pod beyond the pod's own status.
type podRecord struct {
	startAt  time.Time // when the containers are to start
	started  time.Time // when they started; zero: they do not run
	stopFrom time.Time // when graceful deletion was first seen
	resizeAt time.Time // when to look again whether there is room to grow
	restarts int32
}

// A container that keeps ending waits longer each time, as in a real kubelet.
const (
	firstBackOff = 10 * time.Second
	lastBackOff  = 5 * time.Minute
)

// crashed notes that the containers ended and when they start again.
func (r *podRecord) crashed(now time.Time) {
	r.restarts++
	r.started = time.Time{}
	r.startAt = now.Add(min(firstBackOff<<min(r.restarts-1, 8), lastBackOff))
}

// decide says what is to be done for a pod now. It notes in the record the
// moments from which delays count. network says whether the node's network is
// there, without which only pods on the host network start.
func decide(pod *corev1.Pod, r *podRecord, network bool, d Delays, now time.Time) step {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	runs := containersRun(pod)
	switch {
	case pod.DeletionTimestamp != nil:
		return decideStop(pod, r, ended, runs || !r.started.IsZero(), d, now)
	case ended:
		return step{do: wait}
	case runs && r.restarts > restartCount(pod), !runs && !r.started.IsZero():
		return step{do: wait} // our last write is not in this view yet
	case !runs:
		return decideStart(pod, r, network, d, now)
	}
	ran := now.Sub(runningSince(pod, r))
	lifetime, exitCode, ends, err := lifetimeOf(pod)
	ends = ends && err == nil
	if ends && lifetime <= ran {
		return endOf(pod, exitCode)
	}
	ready, later := readyInFact(pod, ran)
	if readyInStatus(pod) != ready {
		return step{do: heal}
	}
	if left := lifetime - ran; ends && (later == 0 || left < later) {
		later = left
	}
	return decideSize(pod, r, later, now)
}

// decideSize has a running pod, for which nothing else is to be done before later, hold
// what it asks for.
func decideSize(pod *corev1.Pod, r *podRecord, later time.Duration, now time.Time) step {
	if container.Resized(pod) {
		return step{do: wait, after: later}
	}
	left := r.resizeAt.Sub(now)
	if left <= 0 {
		return step{do: resize}
	}
	if later == 0 || left < later {
		later = left
	}
	return step{do: wait, after: later}
}

// decideStart waits for the network and for images to be pulled.
func decideStart(pod *corev1.Pod, r *podRecord, network bool, d Delays, now time.Time) step {
	if _, _, _, err := lifetimeOf(pod); err != nil {
		return step{do: finish, exitCode: 128, reason: "InvalidAnnotation", message: err.Error()}
	}
	if !network && !pod.Spec.HostNetwork {
		return step{do: wait}
	}
	if r.startAt.IsZero() {
		r.startAt = now.Add(d.PodStart)
	}
	if left := r.startAt.Sub(now); left > 0 {
		return step{do: wait, after: left}
	}
	return step{do: start}
}

// decideStop lets containers end within the grace period. Pods that are meant
// to end first report that they did, because the Job controller waits for it.
func decideStop(pod *corev1.Pod, r *podRecord, ended, started bool, d Delays, now time.Time) step {
	if r.stopFrom.IsZero() {
		r.stopFrom = now
	}
	if started && !ended {
		grace := container.PreStop(pod) + d.PodStop
		if s := pod.DeletionGracePeriodSeconds; s != nil {
			grace = min(grace, time.Duration(*s)*time.Second)
		}
		if left := r.stopFrom.Add(grace).Sub(now); left > 0 {
			return step{do: wait, after: left}
		}
	}
	if !ended && pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		return step{do: finish, exitCode: 143} // SIGTERM
	}
	return step{do: remove}
}

// endOf says what the end of the containers means under the restart policy.
func endOf(pod *corev1.Pod, exitCode int32) step {
	policy := pod.Spec.RestartPolicy
	if policy == corev1.RestartPolicyNever || policy == corev1.RestartPolicyOnFailure && exitCode == 0 {
		return step{do: finish, exitCode: exitCode}
	}
	return step{do: crash, exitCode: exitCode}
}

// lifetimeOf reads the annotations, and without them the command; ends is false when the
// containers run on.
func lifetimeOf(pod *corev1.Pod) (lifetime time.Duration, exitCode int32, ends bool, err error) {
	if s, ok := pod.Annotations[AnnotationRunFor]; ok {
		ends = true
		if lifetime, err = time.ParseDuration(s); err != nil || lifetime < 0 {
			return 0, 0, true, fmt.Errorf("annotation %s is %q: want a duration such as 5s", AnnotationRunFor, s)
		}
	}
	if s, ok := pod.Annotations[AnnotationExitCode]; ok {
		code, err := strconv.ParseUint(s, 10, 8)
		if err != nil {
			return 0, 0, true, fmt.Errorf("annotation %s is %q: want 0 to 255", AnnotationExitCode, s)
		}
		return lifetime, int32(code), true, nil
	}
	if !ends {
		end, known := container.EndOf(pod)
		return end.After, end.ExitCode, known, nil
	}
	return lifetime, 0, ends, nil
}

// containersRun reports whether the status says that the containers run.
func containersRun(pod *corev1.Pod) bool {
	s := pod.Status.ContainerStatuses
	return len(s) > 0 && s[0].State.Running != nil
}

// runningSince is when the containers started: to the nanosecond when this
// process started them, else as the status says.
func runningSince(pod *corev1.Pod, r *podRecord) time.Time {
	if !r.started.IsZero() {
		return r.started
	}
	return pod.Status.ContainerStatuses[0].State.Running.StartedAt.Time
}

func restartCount(pod *corev1.Pod) int32 {
	if s := pod.Status.ContainerStatuses; len(s) > 0 {
		return s[0].RestartCount
	}
	return 0
}

// readyInFact reports whether a pod whose containers run for that long is ready: when all
// its readiness gates and probes are. later is when a probe will pass, counted from now;
// zero if nothing will change by itself.
func readyInFact(pod *corev1.Pod, ran time.Duration) (ready bool, later time.Duration) {
	ready = true
	for _, gate := range pod.Spec.ReadinessGates {
		ready = ready && hasCondition(pod, gate.ConditionType)
	}
	for _, c := range pod.Spec.Containers {
		after, passes := container.ReadyAfter(c)
		if passes && after > ran && (later == 0 || after-ran < later) {
			later = after - ran
		}
		ready = ready && passes && after <= ran
	}
	return ready, later
}

func readyInStatus(pod *corev1.Pod) bool { return hasCondition(pod, corev1.PodReady) }

func hasCondition(pod *corev1.Pod, t corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == t {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
