package kube

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Pods of files get what AKS's admission plugins give them; pods that exist keep what they have.
func TestPodsOfFilesAreAdmittedAsByAKS(t *testing.T) {
	const gpus = "nodeSelector: {b: mine}, containers: [{name: c, image: x, resources: {limits: {nvidia.com/gpu: 1, cpu: 1}}}]"
	workload := func(kind, name, more string) string {
		return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: %s
metadata: {name: %s, namespace: team}
spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {%s}}}`, kind, name, more)
	}
	manifests, err := Decode(strings.NewReader(`
apiVersion: v1
kind: Namespace
metadata: {name: team, annotations: {scheduler.alpha.kubernetes.io/node-selector: "a=1, b=mine"}}
---
apiVersion: v1
kind: Namespace
metadata: {name: wrong, annotations: {scheduler.alpha.kubernetes.io/node-selector: "a in (1)"}}
---
apiVersion: v1
kind: Pod
metadata: {name: new, namespace: team}
spec: {`+gpus+`}
---
apiVersion: v1
kind: Pod
metadata: {name: there, namespace: team, uid: u}
spec: {`+gpus+`}
---
apiVersion: v1
kind: Pod
metadata: {name: unreadable, namespace: wrong}
spec: {containers: [{name: c, image: x}]}
---
apiVersion: v1
kind: Pod
metadata: {name: plain}
spec: {initContainers: [{name: i, image: x, resources: {requests: {example.com/nic: 1}}}],
  tolerations: [{key: example.com/nic, operator: Exists, effect: NoSchedule}], containers: [{name: c, image: x}]}`+
		workload("Deployment", "web", gpus)+workload("Deployment", "other", "nodeSelector: {a: '2'}, containers: [{name: c, image: x}]")+
		workload("DaemonSet", "agent", gpus)), "f")
	if err != nil {
		t.Fatal(err)
	}
	expanded := Expand(manifests)
	added := []string{"map[a:1 b:mine]", "[nvidia.com/gpu Exists NoSchedule]"}
	want := map[string][]string{
		"new": added, "web-0": added, "agent": added, "there": {"map[b:mine]", "[]"},
		"plain": {"map[]", "[example.com/nic Exists NoSchedule]"},
	}
	pods := map[string]*corev1.PodSpec{}
	for _, o := range expanded.Objects.List() {
		switch o := o.(type) {
		case *corev1.Pod:
			pods[o.Name] = &o.Spec
		case *appsv1.DaemonSet:
			pods[o.Name] = &o.Spec.Template.Spec
		}
	}
	for name, s := range pods {
		var tolerations []string
		for i := range s.Tolerations {
			tolerations = append(tolerations, fmt.Sprint(s.Tolerations[i].Key, " ", s.Tolerations[i].Operator, " ", s.Tolerations[i].Effect))
		}
		if got := []string{fmt.Sprint(s.NodeSelector), fmt.Sprint(tolerations)}; fmt.Sprint(got) != fmt.Sprint(want[name]) {
			t.Errorf("%s has %q, want %q", name, got, want[name])
		}
	}
	if len(pods) != len(want) {
		t.Errorf("there are %d pods, want %d", len(pods), len(want))
	}
	notes := strings.Join(expanded.Notes, "\n")
	for _, said := range []string{
		"Deployment team/other: the pod that it lacks is held back: Namespace team allows a=1 alone, by its annotation " +
			"scheduler.alpha.kubernetes.io/node-selector, and the pod's nodeSelector has 2",
		`Pod wrong/unreadable: is held back: Namespace wrong has the annotation scheduler.alpha.kubernetes.io/node-selector: "a in (1)"`,
	} {
		if !strings.Contains(notes, said) {
			t.Errorf("the notes do not say %q:\n%s", said, notes)
		}
	}
}
