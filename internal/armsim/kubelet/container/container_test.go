package container

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func podOf(c ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: c}}
}

func TestCommandsEndAsTheySay(t *testing.T) {
	for _, c := range []struct {
		command []string
		want    End
		ends    bool
	}{
		{nil, End{}, false},
		{[]string{"/server", "--port=80"}, End{}, false},
		{[]string{"sleep", "infinity"}, End{}, false},
		{[]string{"sleep", "30"}, End{After: 30 * time.Second}, true},
		{[]string{"/bin/false"}, End{ExitCode: 1}, true},
		{[]string{"/bin/sh", "-c", "sleep 2; exit 3"}, End{After: 2 * time.Second, ExitCode: 3}, true},
		{[]string{"/bin/bash", "-ec", "sleep 2 && true\nsleep 1"}, End{After: 3 * time.Second}, true},
		{[]string{"/bin/sh", "-c", "exit 1; sleep 5"}, End{ExitCode: 1}, true},
		{[]string{"/bin/sh", "-c", "./serve; exit 1"}, End{}, false},
	} {
		got, ends := EndOf(podOf(corev1.Container{Command: c.command}))
		if ends != c.ends || ends && got != c.want {
			t.Errorf("%q ends %v as %+v, want %v, %+v", c.command, ends, got, c.ends, c.want)
		}
	}
	if _, ends := EndOf(podOf(corev1.Container{Command: []string{"false"}}, corev1.Container{})); ends {
		t.Error("a pod with a second container ends with its first")
	}
}

func TestLongestPreStopHookCounts(t *testing.T) {
	hook := func(h corev1.LifecycleHandler) corev1.Container {
		return corev1.Container{Lifecycle: &corev1.Lifecycle{PreStop: &h}}
	}
	pod := podOf(
		corev1.Container{},
		hook(corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 7}}),
		hook(corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "sleep 12"}}}),
		hook(corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/drain"}}}),
	)
	if got := PreStop(pod); got != 12*time.Second {
		t.Errorf("%s, want 12s", got)
	}
}

func TestProbesSeeDeclaredPortsAndExitCodes(t *testing.T) {
	listening := []corev1.ContainerPort{{Name: "web", ContainerPort: 80}}
	for name, c := range map[string]struct {
		probe corev1.ProbeHandler
		ports []corev1.ContainerPort
		want  bool
	}{
		"declared by number":     {corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}, listening, true},
		"declared by name":       {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("web")}}, listening, true},
		"another port":           {corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 81}}, listening, false},
		"no port":                {corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}, nil, false},
		"a command that fails":   {corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"false"}}}, nil, false},
		"a command of its own":   {corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/healthy"}}}, nil, true},
		"a command that is fine": {corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}, nil, true},
	} {
		probe := &corev1.Probe{ProbeHandler: c.probe, InitialDelaySeconds: 4}
		after, ready := ReadyAfter(corev1.Container{Ports: c.ports, ReadinessProbe: probe})
		if ready != c.want || after != 4*time.Second {
			t.Errorf("%s: ready %v after %s, want %v after 4s", name, ready, after, c.want)
		}
	}
}
