package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// aPod is a bound pod; change functions make it what a case needs.
func aPod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	for _, f := range change {
		f(p)
	}
	return p
}

func running(ready corev1.ConditionStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon)}}}}
	}
}

func policy(r corev1.RestartPolicy) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.RestartPolicy = r }
}

func annotated(kv ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for i := 0; i < len(kv); i += 2 {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, kv[i], kv[i+1])
		}
	}
}

func deleted(grace int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: noon}
		p.DeletionGracePeriodSeconds = &grace
	}
}

func with(c corev1.Container) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{c} }
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func TestPodSteps(t *testing.T) {
	delays := Delays{PodStart: 2 * time.Second, PodStop: 5 * time.Second}
	const never, onFailure = corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure
	cases := map[string]struct {
		pod       *corev1.Pod
		rec       podRecord
		noNetwork bool
		at        time.Duration // after noon
		want      step
	}{
		"a bound pod waits for its images":      {pod: aPod(), want: step{do: wait, after: 2 * time.Second}},
		"and starts then":                       {pod: aPod(), rec: podRecord{startAt: noon}, at: time.Second, want: step{do: start}},
		"without network it waits for an event": {pod: aPod(), noNetwork: true, want: step{do: wait}},
		"a host network pod needs no network": {
			pod: aPod(func(p *corev1.Pod) { p.Spec.HostNetwork = true }), rec: podRecord{startAt: noon}, noNetwork: true, want: step{do: start},
		},
		"a start that is not seen yet is not done twice": {pod: aPod(), rec: podRecord{startAt: noon, started: noon}, want: step{do: wait}},
		"a running pod is left alone":                    {pod: aPod(running("True")), want: step{do: wait}},
		"one marked unready is put right":                {pod: aPod(running("False")), want: step{do: heal}},
		"unless its readiness gate says so": {pod: aPod(running("False"), func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
		}), want: step{do: wait}},
		"it runs as long as its annotation says": {pod: aPod(running("True"), policy(never), annotated(AnnotationRunFor, "5s")),
			at: 2 * time.Second, want: step{do: wait, after: 3 * time.Second}},
		"and succeeds": {
			pod: aPod(running("True"), policy(never), annotated(AnnotationRunFor, "5s")), at: 5 * time.Second, want: step{do: finish},
		},
		"the precise start counts": {pod: aPod(running("True"), policy(never), annotated(AnnotationRunFor, "5s")),
			rec: podRecord{started: noon.Add(time.Second / 2)}, at: 5 * time.Second, want: step{do: wait, after: time.Second / 2}},
		"an exit code fails it": {
			pod: aPod(running("True"), policy(never), annotated(AnnotationExitCode, "3")), want: step{do: finish, exitCode: 3},
		},
		"a good exit ends OnFailure": {
			pod: aPod(running("True"), policy(onFailure), annotated(AnnotationExitCode, "0")), want: step{do: finish},
		},
		"a bad exit restarts OnFailure": {
			pod: aPod(running("True"), policy(onFailure), annotated(AnnotationExitCode, "1")), want: step{do: crash, exitCode: 1},
		},
		"Always restarts any exit": {pod: aPod(running("True"), annotated(AnnotationRunFor, "0s")), want: step{do: crash}},
		"a crash is not counted twice": {
			pod: aPod(running("True"), annotated(AnnotationRunFor, "0s")), rec: podRecord{restarts: 1, startAt: noon}, want: step{do: wait},
		},
		"an ended pod is left alone":   {pod: aPod(inPhase(corev1.PodSucceeded)), want: step{do: wait}},
		"deletion lets containers end": {pod: aPod(running("True"), deleted(30)), want: step{do: wait, after: 5 * time.Second}},
		"within the grace period": {
			pod: aPod(running("True"), deleted(1)), rec: podRecord{stopFrom: noon}, at: time.Second, want: step{do: remove},
		},
		"readiness no longer matters": {
			pod: aPod(running("False"), deleted(30)), rec: podRecord{stopFrom: noon}, at: time.Second, want: step{do: wait, after: 4 * time.Second},
		},
		"and then removes the pod": {
			pod: aPod(running("True"), deleted(30)), rec: podRecord{stopFrom: noon}, at: 5 * time.Second, want: step{do: remove},
		},
		"a pod that never ran goes":     {pod: aPod(deleted(30)), want: step{do: remove}},
		"a pod that just started waits": {pod: aPod(deleted(30)), rec: podRecord{started: noon}, want: step{do: wait, after: 5 * time.Second}},
		"a preStop hook comes before the end": {pod: aPod(running("True"), deleted(300), with(corev1.Container{
			Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 60}}}})),
			rec: podRecord{stopFrom: noon}, at: time.Second, want: step{do: wait, after: 64 * time.Second}},
		"but not after the grace period": {pod: aPod(running("True"), deleted(30), with(corev1.Container{
			Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 60}}}})),
			rec: podRecord{stopFrom: noon}, at: 30 * time.Second, want: step{do: remove}},
		"a probe that fails makes it unready": {pod: aPod(running("True"), with(corev1.Container{
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"false"}}}}})),
			want: step{do: heal}},
		"and it stays so": {pod: aPod(running("False"), with(corev1.Container{
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"false"}}}}})),
			want: step{do: wait}},
		"a probe that begins later is awaited": {pod: aPod(running("False"), with(corev1.Container{
			ReadinessProbe: &corev1.Probe{InitialDelaySeconds: 9}})), at: 2 * time.Second, want: step{do: wait, after: 7 * time.Second}},
		"and makes it ready": {pod: aPod(running("False"), with(corev1.Container{
			ReadinessProbe: &corev1.Probe{InitialDelaySeconds: 9}})), at: 9 * time.Second, want: step{do: heal}},
		"a command that fails restarts": {pod: aPod(running("True"), with(corev1.Container{Command: []string{"sh", "-c", "exit 4"}})),
			want: step{do: crash, exitCode: 4}},
		"a job's pod first reports": {pod: aPod(running("True"), policy(never), deleted(30)),
			rec: podRecord{stopFrom: noon}, at: 5 * time.Second, want: step{do: finish, exitCode: 143}},
		"and goes when it has": {pod: aPod(inPhase(corev1.PodFailed), policy(never), deleted(30)), want: step{do: remove}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rec := c.rec
			if got := decide(c.pod, &rec, !c.noNetwork, delays, noon.Add(c.at)); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestMalformedAnnotationsFailThePodAndSayWhy(t *testing.T) {
	for key, value := range map[string]string{AnnotationRunFor: "soon", AnnotationExitCode: "256"} {
		s := decide(aPod(annotated(key, value)), &podRecord{}, true, Delays{}, noon)
		if s.do != finish || s.exitCode == 0 || s.message == "" {
			t.Errorf("%s=%s: %+v", key, value, s)
		}
	}
}

func TestRestartBackOffGrowsToLimit(t *testing.T) {
	var rec podRecord
	for _, want := range []time.Duration{10, 20, 40, 80, 160, 300, 300, 300, 300, 300, 300} {
		rec.crashed(noon)
		if got := rec.startAt.Sub(noon); got != want*time.Second {
			t.Errorf("restart %d after %s, want %s", rec.restarts, got, want*time.Second)
		}
	}
}

func TestStartedPodStatusHasEveryContainer(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := aPod(func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "setup"}, {Name: "sidecar", RestartPolicy: &always}}
		p.Spec.Containers = []corev1.Container{{Name: "a"}, {Name: "b"}}
	})
	s := podStatus{pod: pod, now: metav1.NewTime(noon), hostIP: "10.0.0.4", podIP: "10.128.0.1"}.running()
	if s.Phase != corev1.PodRunning || s.PodIP != "10.128.0.1" || s.HostIP != "10.0.0.4" || !s.StartTime.Time.Equal(noon) {
		t.Errorf("status %+v", s)
	}
	if setup, sidecar := s.InitContainerStatuses[0],
		s.InitContainerStatuses[1]; setup.State.Terminated == nil || sidecar.State.Running == nil {
		t.Errorf("init containers: setup %+v, sidecar %+v", setup.State, sidecar.State)
	}
	if len(s.ContainerStatuses) != 2 || s.ContainerStatuses[1].State.Running == nil || !s.ContainerStatuses[1].Ready {
		t.Errorf("containers: %+v", s.ContainerStatuses)
	}
	conditions := map[corev1.PodConditionType]bool{}
	for _, c := range s.Conditions {
		conditions[c.Type] = c.Status == corev1.ConditionTrue
	}
	for _, want := range []corev1.PodConditionType{corev1.PodReady,
		corev1.ContainersReady, corev1.PodInitialized, corev1.PodReadyToStartContainers} {
		if !conditions[want] {
			t.Errorf("condition %s is not true", want)
		}
	}
}
