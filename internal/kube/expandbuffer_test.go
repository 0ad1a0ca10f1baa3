package kube

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// bufferFile has a PodTemplate of a core, a Deployment of seven pods, and a buffer.
func bufferFile(spec string) string {
	return `
apiVersion: v1
kind: PodTemplate
metadata: {name: spare}
template: {spec: {containers: [{name: c, image: i, resources: {limits: {cpu: "1", memory: 1Gi}}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 7
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 500m}}}]}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: room}
spec: ` + spec + "\n"
}

func TestExpandMakesVirtualPodsOfBuffers(t *testing.T) {
	for spec, want := range map[string]struct {
		pods    int
		problem string
	}{
		`{podTemplateRef: {name: spare}, replicas: 3}`:                                              {pods: 3},
		`{podTemplateRef: {name: spare}, limits: {cpu: "2500m", memory: 8Gi}}`:                      {pods: 2},
		`{podTemplateRef: {name: spare}, replicas: 3, limits: {cpu: "1"}}`:                          {pods: 1},
		`{podTemplateRef: {name: spare}}`:                                                           {pods: 0},
		`{scalableRef: {apiGroup: apps, kind: Deployment, name: web}, percentage: 20}`:              {pods: 2},
		`{scalableRef: {apiGroup: apps, kind: Deployment, name: web}, percentage: 1}`:               {pods: 1},
		`{scalableRef: {apiGroup: apps, kind: Deployment, name: web}, percentage: 20, replicas: 4}`: {pods: 4},
		`{podTemplateRef: {name: other}, replicas: 3}`:                                              {problem: "PodTemplate default/other is not in the input"},
		`{scalableRef: {apiGroup: apps, kind: StatefulSet, name: web}, replicas: 3}`:                {problem: "StatefulSet default/web is not in the input"},
		`{podTemplateRef: {name: spare}, replicas: 3, provisioningStrategy: buffer.x-k8s.io/other}`: {problem: "allowed is buffer.x-k8s.io/active-capacity"},
	} {
		manifests, err := Decode(strings.NewReader(bufferFile(spec)), "test")
		if err != nil {
			t.Fatal(err)
		}
		out := Expand(manifests)
		var virtual []*corev1.Pod
		for _, o := range out.Objects.List() {
			if pod, is := o.(*corev1.Pod); is && ownerOf(pod).Kind == "CapacityBuffer" {
				virtual = append(virtual, pod)
			}
		}
		if len(virtual) != want.pods {
			t.Errorf("%s: %d virtual pods, want %d", spec, len(virtual), want.pods)
		}
		for _, pod := range virtual {
			cpu := pod.Spec.Containers[0].Resources.Requests.Cpu()
			if pod.Spec.Priority == nil || *pod.Spec.Priority >= 0 || cpu.IsZero() || pod.Namespace != "default" {
				t.Errorf("%s: virtual pod %s has priority %v and asks for %s", spec, pod.Name, pod.Spec.Priority, cpu)
			}
		}
		problem := ""
		for _, p := range out.Problems {
			problem += p.Error()
		}
		if (want.problem == "") != (problem == "") || !strings.Contains(problem, want.problem) {
			t.Errorf("%s: problems %q, want %q", spec, problem, want.problem)
		}
	}
}
