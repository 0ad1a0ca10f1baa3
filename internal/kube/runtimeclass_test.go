package kube

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

func sandbox() *nodev1.RuntimeClass {
	return &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "sandbox"},
		Overhead:   &nodev1.Overhead{PodFixed: cpus("250m")},
		Scheduling: &nodev1.Scheduling{
			NodeSelector: map[string]string{"sandbox": "true"},
			Tolerations:  []corev1.Toleration{{Key: "sandbox", Operator: corev1.TolerationOpExists}},
		},
	}
}

// The API server adds a RuntimeClass's overhead to pods, but not to the templates of
// DaemonSets; the order in which a cluster shows the two does not matter.
func TestRuntimeClassAppliesToDaemonSetTemplates(t *testing.T) {
	name := "sandbox"
	daemon := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent"}}
	daemon.Spec.Template.Spec.RuntimeClassName = &name
	daemon.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: cpus("1")}}}
	for _, objects := range [][]client.Object{{sandbox(), daemon}, {daemon, sandbox()}} {
		store := fleet.NewStore()
		mirror := NewMirror(store, Settings{})
		for _, o := range objects {
			if !mirror.Apply(o) {
				t.Fatalf("%T is ignored", o)
			}
		}
		if got := daemonCPU(t, store, mirror); got != 1250 {
			t.Errorf("the DaemonSet requests %dm, want 1250m", got)
		}
		mirror.Delete(sandbox())
		if got := daemonCPU(t, store, mirror); got != 1000 {
			t.Errorf("without its RuntimeClass the DaemonSet requests %dm, want 1000m", got)
		}
	}
}

func TestRuntimeClassAppliesToPodsOfFiles(t *testing.T) {
	const class = `{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: sandbox}, handler: x,
 overhead: {podFixed: {cpu: 250m}}, scheduling: {nodeSelector: {sandbox: "true"}, tolerations: [{key: sandbox, operator: Exists}]}}
---
`
	expand := func(text string) Expanded {
		manifests, err := Decode(strings.NewReader(text), "f")
		if err != nil {
			t.Fatal(err)
		}
		return Expand(manifests)
	}
	pod := `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {runtimeClassName: sandbox, nodeSelector: {SELECTOR}, containers: [{name: c}]}}`
	for _, o := range expand(class + strings.Replace(pod, "SELECTOR", "a: b", 1)).Objects.List() {
		p, is := o.(*corev1.Pod)
		if !is {
			continue
		}
		spec := readSpec(p)
		if spec.Requests.CPU != 250 || len(spec.NodeRequirements) != 2 || len(spec.Tolerations) != 1 {
			t.Errorf("got %dm cpu, requirements %v, tolerations %v; want the class's overhead, selector and toleration",
				spec.Requests.CPU, spec.NodeRequirements, spec.Tolerations)
		}
	}
	contradicts := expand(class + strings.Replace(pod, "SELECTOR", `sandbox: "false"`, 1)).Problems
	if len(contradicts) != 1 || !strings.Contains(contradicts[0].Error(), `spec.nodeSelector[sandbox]: got "false", but RuntimeClass sandbox allows: true`) {
		t.Errorf("a pod that contradicts its class: got %v", contradicts)
	}
	if notes := expand(strings.Replace(pod, "SELECTOR", "", 1)).Notes; len(notes) != 1 || !strings.Contains(notes[0], "RuntimeClass sandbox") {
		t.Errorf("a class that the input lacks: notes %q", notes)
	}
}

func TestPodsThatCannotBeCountedAreAProblem(t *testing.T) {
	for name, text := range map[string]string{
		"replicas without a template": `{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: k8s}, spec: {replicas: 2}}`,
		"a template of another name": `{apiVersion: example.com/v1, kind: Group, metadata: {name: l},
  spec: {replicas: 2, groupTemplate: {size: 4, workerTemplate: {spec: {containers: [{name: c}]}}}}}`,
		"a DaemonSet of another group": `{apiVersion: apps.kruise.io/v1alpha1, kind: DaemonSet, metadata: {name: d},
  spec: {template: {spec: {containers: [{name: c}]}}}}`,
		"a LeaderWorkerSet without a template": `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: l},
  spec: {replicas: 2, leaderWorkerTemplate: {size: 4}}}`,
	} {
		manifests, err := Decode(strings.NewReader(text), "f")
		if err != nil {
			t.Fatal(err)
		}
		if problems := Expand(manifests).Problems; len(problems) != 1 || !strings.Contains(problems[0].Error(), "its pods are not planned for") {
			t.Errorf("%s: got %v, want one problem", name, problems)
		}
	}
}
