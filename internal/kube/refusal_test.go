package kube

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestPodsOfFilesThatAServerRefuses has what is said of a pod with a spec, without the fields
// around what is written in it; "" is for pods that are taken.
func TestPodsOfFilesThatAServerRefuses(t *testing.T) {
	const c = "containers: [{name: c}]"
	for spec, want := range map[string]string{
		"{" + c + "}":                          "",
		"{}":                                   "spec.containers: is empty, must have at least one container",
		"{containers: [{name: c}, {name: c}]}": `spec.containers[1].name: got "c", which another container of the pod has, must be unique`,
		"{" + c + ", initContainers: [{name: c}]}": `spec.initContainers[0].name: got "c", which another container of the pod has, must be unique`,
		"{" + c + ", restartPolicy: Sometimes}":    `spec.restartPolicy: got "Sometimes", allowed: Always, OnFailure, Never`,
		"{" + c + ", os: {name: macos}}":           `spec.os.name: got "macos", allowed: linux, windows`,

		"{containers: [{name: c, ports: [{hostPort: 80}, {hostPort: 80, protocol: UDP}]}]}": "",
		"{containers: [{name: c, ports: [{hostPort: 80}]}, {name: d, ports: [{hostPort: 80, protocol: TCP}]}]}": "" +
			"spec.containers[1].ports[0].hostPort: got 80, which the pod takes already for TCP, allowed: once for a protocol and hostIP",
		"{" + c + ", initContainers: [{name: i, ports: [{hostPort: 80}]}, {name: j, ports: [{hostPort: 80}]}]}": "",

		"{" + c + ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" +
			"{matchExpressions: [{key: a, operator: Gte, values: ['4']}]}]}}}}": "spec.affinity.nodeAffinity." +
			"requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator: got \"Gte\", " +
			"allowed: In, NotIn, Exists, DoesNotExist, Gt, Lt",

		"{containers: [{name: c, resources: {limits: {nvidia.com/gpu: '1'}}}]}": "",
		"{containers: [{name: c, resources: {limits: {nvidia.com/gpu: '0.5'}}}]}": "" +
			"spec.containers[0].resources.limits[nvidia.com/gpu]: got 500m, must be a whole number",
		"{containers: [{name: c, resources: {requests: {nvidia.com/gpu: '1'}}}]}": "" +
			"spec.containers[0].resources.limits[nvidia.com/gpu]: is missing, must be as the request, 1: it cannot be overcommitted",
		"{containers: [{name: c, resources: {requests: {nvidia.com/gpu: '1'}, limits: {nvidia.com/gpu: '2'}}}]}": "" +
			"spec.containers[0].resources.requests[nvidia.com/gpu]: got 1, must be as the limit, 2: it cannot be overcommitted",
		"{containers: [{name: c, resources: {requests: {cpu: '2'}, limits: {cpu: '1'}}}]}": "" +
			"spec.containers[0].resources.requests[cpu]: got 2, must be at most the limit, 1",
		"{containers: [{name: c, resources: {requests: {cpus: '2'}}}]}": "spec.containers[0].resources.requests[cpus]: " +
			"there is no such resource, allowed: cpu, memory, ephemeral-storage, hugepages-SIZE, or a name with a domain such as nvidia.com/gpu",
		"{resources: {requests: {cpu: '1'}}, containers: [{name: c, resources: {requests: {cpu: '2'}}}]}": "" +
			"spec.resources.requests[cpu]: got 1, must be at least what the containers ask for together, 2",
		"{resources: {limits: {cpu: '1'}}, containers: [{name: c, resources: {requests: {cpu: '1'}, limits: {cpu: '2'}}}]}": "" +
			"spec.containers[0].resources.limits[cpu]: got 2, must be at most that of the pod, 1",
		"{resources: {limits: {nvidia.com/gpu: '1'}}, " + c + "}": "" +
			"spec.resources.limits[nvidia.com/gpu]: got 1, allowed for the pod as a whole: cpu, memory and hugepages-SIZE",

		"{" + c + ", topologySpreadConstraints: [{topologyKey: z, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, minDomains: 2}]}": "" +
			"spec.topologySpreadConstraints[0].minDomains: got 2 with whenUnsatisfiable ScheduleAnyway, allowed with DoNotSchedule alone",
		"{" + c + ", topologySpreadConstraints: [{topologyKey: z, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}, " +
			"{topologyKey: z, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}]}": "spec.topologySpreadConstraints[1]: got topologyKey \"z\" " +
			"with whenUnsatisfiable DoNotSchedule, which spec.topologySpreadConstraints[0] has, allowed: once",
		"{" + c + ", topologySpreadConstraints: [{topologyKey: z, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Obey}]}": "" +
			"spec.topologySpreadConstraints[0].nodeTaintsPolicy: got \"Obey\", allowed: Honor, Ignore",
		"{" + c + ", topologySpreadConstraints: [{topologyKey: z, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [a], " +
			"labelSelector: {matchLabels: {a: b}}}]}": "spec.topologySpreadConstraints[0].matchLabelKeys[0]: got \"a\", " +
			"which is in labelSelector, too, allowed: in one of them",

		"{" + c + ", tolerations: [{operator: Exists}]}":                       "",
		"{" + c + ", tolerations: [{key: a, operator: Exists, value: b}]}":     `spec.tolerations[0].value: got "b", must be empty with operator Exists`,
		"{" + c + ", tolerations: [{operator: Equal, value: b}]}":              `spec.tolerations[0].operator: got "Equal", must be Exists where key is empty`,
		"{" + c + ", tolerations: [{operator: Exists, tolerationSeconds: 5}]}": `spec.tolerations[0].effect: got "", must be NoExecute where tolerationSeconds is set`,

		"{" + c + ", nodeSelector: {a: b}}": "",
		"{" + c + ", nodeSelector: {a: 'b c'}}": `spec.nodeSelector[a]: got "b c", must be a label value: a valid label must be an empty string or ` +
			`consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or ` +
			`'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
	} {
		manifests, err := Decode(strings.NewReader("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: "+spec+"}"), "file")
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		pod := podsOf(Expand(manifests).Objects.List())[0]
		if diff := cmp.Diff(want, newInterner(Settings{}).pod(pod, true).Spec.Invalid); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
	}
}

func TestNamesOfPodsThatAServerRefuses(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
	pod.Name = "My_App"
	want := `metadata.name: got "My_App", must be a DNS subdomain: lower case letters, digits, - and ., up to 253`
	if got := newInterner(Settings{}).pod(pod, true).Spec.Invalid; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A pod that an API server gave a UID was taken by it, perhaps by the rules of another version.
func TestPodsOfClustersAreNotRefused(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c"}}, NodeSelector: map[string]string{"a": "b c"},
	}}
	pod.Name, pod.UID = "p", "u"
	for _, everyPod := range []bool{false, true} {
		if got := newInterner(Settings{}).pod(pod, everyPod).Spec.Invalid; got != "" {
			t.Errorf("every pod %v: got %q, want none", everyPod, got)
		}
	}
	pod.UID = ""
	if got := newInterner(Settings{}).pod(pod, false).Spec.Invalid; got != "" {
		t.Errorf("got %q, want none", got)
	}
}

func podsOf[T any](objects []T) []*corev1.Pod {
	var out []*corev1.Pod
	for _, o := range objects {
		if pod, is := any(o).(*corev1.Pod); is {
			out = append(out, pod)
		}
	}
	return out
}
