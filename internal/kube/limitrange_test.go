package kube

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

func cpus(quantity string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}
}

func limitRange(name string, item corev1.LimitRangeItem) *corev1.LimitRange {
	return &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}},
	}
}

// Before a DaemonSet's first pod exists, its requests are what admission will make of
// the template, in whatever order a live cluster shows the objects.
func TestLimitRangeAppliesToDaemonSetTemplates(t *testing.T) {
	container := corev1.LimitTypeContainer
	tests := map[string]struct {
		template corev1.ResourceRequirements
		ranges   []*corev1.LimitRange
		want     int64 // thousandths of a CPU
	}{
		"none":             {want: 0},
		"default request":  {ranges: []*corev1.LimitRange{limitRange("a", corev1.LimitRangeItem{Type: container, DefaultRequest: cpus("1")})}, want: 1000},
		"default limit":    {ranges: []*corev1.LimitRange{limitRange("a", corev1.LimitRangeItem{Type: container, Default: cpus("2")})}, want: 2000},
		"maximum":          {ranges: []*corev1.LimitRange{limitRange("a", corev1.LimitRangeItem{Type: container, Max: cpus("4")})}, want: 4000},
		"minimum":          {ranges: []*corev1.LimitRange{limitRange("a", corev1.LimitRangeItem{Type: container, Min: cpus("500m")})}, want: 500},
		"of pods, not set": {ranges: []*corev1.LimitRange{limitRange("a", corev1.LimitRangeItem{Type: corev1.LimitTypePod, Min: cpus("3")})}, want: 0},
		"a request stays": {corev1.ResourceRequirements{Requests: cpus("100m")},
			[]*corev1.LimitRange{limitRange("a", corev1.LimitRangeItem{Type: container, DefaultRequest: cpus("1")})}, 100},
		"a limit is the request": {corev1.ResourceRequirements{Limits: cpus("1500m")},
			[]*corev1.LimitRange{limitRange("a", corev1.LimitRangeItem{Type: container, DefaultRequest: cpus("1")})}, 1500},
		"the first of two": {ranges: []*corev1.LimitRange{
			limitRange("b", corev1.LimitRangeItem{Type: container, DefaultRequest: cpus("2")}),
			limitRange("a", corev1.LimitRangeItem{Type: container, DefaultRequest: cpus("1")}),
		}, want: 1000},
	}
	for name, tc := range tests {
		for _, rangesFirst := range []bool{true, false} {
			store := fleet.NewStore()
			mirror := NewMirror(store, Settings{})
			daemon := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent"}}
			daemon.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Resources: tc.template}}
			var objects []client.Object
			for _, r := range tc.ranges {
				objects = append(objects, r)
			}
			if rangesFirst {
				objects = append(objects, daemon)
			} else {
				objects = append([]client.Object{daemon}, objects...)
			}
			for _, o := range objects {
				if !mirror.Apply(o) {
					t.Fatalf("%s: %T is ignored", name, o)
				}
			}
			if got := daemonCPU(t, store, mirror); got != tc.want {
				t.Errorf("%s (LimitRanges first: %v): the DaemonSet requests %dm, want %dm", name, rangesFirst, got, tc.want)
			}
			for _, r := range tc.ranges {
				mirror.Delete(r)
			}
			requestLimits(&daemon.Spec.Template.Spec)
			if got, want := daemonCPU(t, store, mirror), daemon.Spec.Template.Spec.Containers[0].Resources.Requests.Cpu().MilliValue(); got != want {
				t.Errorf("%s: without LimitRanges the DaemonSet requests %dm, want %dm", name, got, want)
			}
			mirror.Delete(daemon)
			if len(mirror.admitting.daemons)+len(mirror.admitting.ranges) != 0 {
				t.Errorf("%s: deleted objects are kept", name)
			}
		}
	}
}

// Pods of files get what a LimitRange of the same files gives; pods which have a node
// were admitted before.
func TestLimitRangeAppliesToPodsOfFiles(t *testing.T) {
	manifests, err := Decode(strings.NewReader(`
apiVersion: v1
kind: LimitRange
metadata: {name: lr}
spec: {limits: [{type: Container, defaultRequest: {cpu: "1"}, default: {cpu: "2"}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: a, image: a}, {name: b, image: b, resources: {requests: {cpu: 100m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: runs}
spec: {nodeName: node-1, containers: [{name: a, image: a}]}
---
apiVersion: v1
kind: Pod
metadata: {name: elsewhere, namespace: other}
spec: {containers: [{name: a, image: a}]}
`), "f")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"web-0": "1100m", "runs": "0", "elsewhere": "0"}
	for _, o := range Expand(manifests).Objects.List() {
		pod, is := o.(*corev1.Pod)
		if !is {
			continue
		}
		sum := resource.Quantity{}
		for _, c := range pod.Spec.Containers {
			sum.Add(*c.Resources.Requests.Cpu())
		}
		if sum.String() != want[pod.Name] {
			t.Errorf("pod %s requests %s CPU, want %s", pod.Name, sum.String(), want[pod.Name])
		}
		delete(want, pod.Name)
	}
	if len(want) > 0 {
		t.Errorf("pods are missing: %v", want)
	}
}
