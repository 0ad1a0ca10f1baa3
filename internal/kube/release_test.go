package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestReleasesReplacePodsOfAnotherTemplate(t *testing.T) {
	const (
		deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 2, selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, spec: ` +
			`{containers: [{name: c, resources: {requests: {cpu: "3"}}}]}}}}`
		// own adds to the metadata of a pod what makes it one of the Deployment's.
		own = `, labels: {pod-template-hash: abc}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: d-abc, ` +
			`controller: true, uid: u}]`
		set = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {replicas: 2, selector: {matchLabels: {app: s}}, template: {metadata: {labels: {app: s}}, spec: ` +
			`{containers: [{name: c, resources: {limits: {cpu: "3"}}}]}}}}`
		ofSet = `, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: s, controller: true, uid: u}]`
		small = `containers: [{name: c, resources: {requests: {cpu: 500m}}}]`
		large = `containers: [{name: c, resources: {requests: {cpu: "3", memory: 1Gi}}}, {name: injected}], nodeSelector: {a: b}`
	)
	pod := func(name, meta, spec string) string {
		return "\n---\n" + `{apiVersion: v1, kind: Pod, metadata: {name: ` + name + meta + `}, spec: {nodeName: node, ` + spec + `}, status: {phase: Running}}`
	}
	replicaSet := func(cpu, rest string) string {
		return "\n---\n" + `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: d-abc, ownerReferences: [{apiVersion: apps/v1, ` +
			`kind: Deployment, name: d, uid: d}]}, spec: {selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, spec: {containers: [{name: c, resources: {requests: {cpu: "` + cpu + `"}}}]` + rest + `}}}}`
	}
	replaced := "Deployment default/d: replaces 1 pod of another template (container c with cpu 500m instead of 3): planned as it ends"
	fewer := func(text string, n int) string {
		return strings.Replace(text, "replicas: 2", fmt.Sprintf("replicas: %d", n), 1)
	}
	fewerOf := func(kind, name string, has, wants int) string {
		return fmt.Sprintf("%s default/%s: has %d pods where the file wants %d: planned without the %d pod that goes", kind, name, has, wants, has-wants)
	}
	for _, c := range []struct {
		name, text string
		want       []string
		note       string
	}{
		{"other requests", deployment + pod("x", own, small), []string{"d-0", "d-1"}, replaced + ", meanwhile it takes room for 1 pod more"},
		{"what admission adds is no change", deployment + pod("x", own, large), []string{"d-1", "x"}, ""},
		{"one pod that was resized is none", deployment + pod("x", own, small) + pod("z", own, large), []string{"x", "z"}, ""},
		{"what a VerticalPodAutoscaler has sized is none", deployment + pod("x", strings.Replace(own, "labels", `annotations: {vpaUpdates: w}, labels`, 1), small),
			[]string{"d-1", "x"}, ""},
		{"the template of the ReplicaSet counts, not the pod", deployment + pod("x", own, small) + replicaSet("3", ""), []string{"d-1", "x"}, ""},
		{"another template of the ReplicaSet", deployment + pod("x", own, large) + replicaSet("2", ""), []string{"d-0", "d-1"},
			"Deployment default/d: replaces 1 pod of another template (container c with cpu 2 instead of 3): planned as it ends, " +
				"meanwhile it takes room for 1 pod more"},
		{"another affinity of the ReplicaSet", strings.Replace(deployment, "containers", "affinity: {podAffinity: {}}, containers", 1) +
			pod("x", own, large) + replicaSet("3", ""), []string{"d-0", "d-1"},
			"Deployment default/d: replaces 1 pod of another template (another affinity): planned as it ends, meanwhile it takes room for 1 pod more"},
		{"another nodeSelector", strings.Replace(deployment, "containers", "nodeSelector: {a: c}, containers", 1) + pod("x", own, large),
			[]string{"d-0", "d-1"}, "Deployment default/d: replaces 1 pod of another template (without a=c in the nodeSelector): planned as it ends, " +
				"meanwhile it takes room for 1 pod more"},
		{"another toleration", strings.Replace(deployment, "containers", "tolerations: [{key: k, operator: Exists}], containers", 1) +
			pod("x", own, large), []string{"d-0", "d-1"}, `Deployment default/d: replaces 1 pod of another template (without the toleration of "k"): ` +
			`planned as it ends, meanwhile it takes room for 1 pod more`},
		{"all at once need no more room", strings.Replace(deployment, "replicas: 2", "strategy: {type: Recreate}, replicas: 2", 1) +
			pod("x", own, small), []string{"d-0", "d-1"}, replaced},
		{"a paused Deployment leaves its pods", strings.Replace(deployment, "replicas: 2", "paused: true, replicas: 2", 1) +
			pod("x", own, small), []string{"d-1", "x"}, ""},
		{"a file without replicas keeps their number", strings.Replace(deployment, "replicas: 2, ", "", 1) + pod("x", own, small) + pod("z", own, small),
			[]string{"d-0", "d-1"}, strings.Replace(replaced, "1 pod", "2 pods", 1) + ", meanwhile it takes room for 1 pod more"},
		{"a StatefulSet from its partition on", strings.Replace(set, "replicas: 2", "updateStrategy: {rollingUpdate: {partition: 1}}, replicas: 2", 1) +
			pod("s-0", ofSet, small) + pod("s-1", ofSet, small), []string{"s-0", "s-1 made"},
			"StatefulSet default/s: replaces 1 pod of another template (container c with cpu 500m instead of 3): planned as it ends"},
		{"a StatefulSet that waits for deletion", strings.Replace(set, "replicas: 2", "updateStrategy: {type: OnDelete}, replicas: 2", 1) +
			pod("s-0", ofSet, small), []string{"s-0", "s-1 made"}, ""},
		{"fewer replicas, and the pod without a node goes first", fewer(deployment, 1) + pod("x", own, large) +
			strings.Replace(pod("a", own, large), "nodeName: node, ", "", 1), []string{"x"}, fewerOf("Deployment", "d", 2, 1)},
		{"the one that is not ready goes first", fewer(deployment, 1) + pod("x", own, large) + strings.Replace(pod("z", own, large),
			"phase: Running", `phase: Running, conditions: [{type: Ready, status: "False"}]`, 1), []string{"x"}, fewerOf("Deployment", "d", 2, 1)},
		{"the one whose deletion costs less goes first", fewer(deployment, 1) + pod("x", own, large) + pod("z", strings.Replace(own, "labels",
			`annotations: {controller.kubernetes.io/pod-deletion-cost: "-1"}, labels`, 1), large), []string{"x"}, fewerOf("Deployment", "d", 2, 1)},
		{"the one that shares its node goes first", fewer(deployment, 2) + pod("x", own, large) + strings.Replace(pod("a", own, large),
			"nodeName: node", "nodeName: other", 1) + pod("z", own, large), []string{"a", "z"}, fewerOf("Deployment", "d", 3, 2)},
		{"no replicas", fewer(deployment, 0) + pod("x", own, large), nil, "Deployment default/d: has 1 pod where the file wants 0: planned without the 1 pod that goes"},
		{"those of another template go first", fewer(deployment, 1) + pod("a", strings.ReplaceAll(own, "abc", "def"), large) + pod("x", own, small),
			[]string{"a"},
			fewerOf("Deployment", "d", 2, 1)},
		{"fewer of another template", fewer(deployment, 1) + pod("x", own, small) + pod("z", own, small), []string{"d-0"},
			fewerOf("Deployment", "d", 2, 1) + "\n" + replaced + ", meanwhile it takes room for 1 pod more"},
		{"an autoscaler decides", fewer(deployment, 1) + pod("x", own, large) + pod("z", own, large) + "\n---\n" +
			`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {minReplicas: 1, maxReplicas: 5, ` +
			`scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}}}`, []string{"x", "z"}, ""},
		{"a StatefulSet loses its last", fewer(set, 1) + pod("s-0", ofSet, small) + pod("s-1", ofSet, large), []string{"s-0 made"},
			fewerOf("StatefulSet", "s", 2, 1) + "\nStatefulSet default/s: replaces 1 pod of another template " +
				"(container c with cpu 500m instead of 3): planned as it ends"},
	} {
		t.Run(c.name, func(t *testing.T) {
			manifests, err := Decode(strings.NewReader(c.text), "file")
			if err != nil {
				t.Fatal(err)
			}
			expanded := Expand(manifests)
			var got []string
			for o := range expanded.Objects.All() {
				if p, is := o.(*corev1.Pod); is && p.Spec.NodeName == "" && strings.HasPrefix(p.Name, "s-") {
					got = append(got, p.Name+" made")
				} else if is {
					got = append(got, p.Name)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("pods differ (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.note, strings.Join(expanded.Notes, "\n")); diff != "" {
				t.Errorf("notes differ (-want +got):\n%s", diff)
			}
		})
	}
}

// Pods of the cluster that the files are for are named, as they are not among the objects.
func TestReleasesReplacePodsOfTheCluster(t *testing.T) {
	decode := func(text string) []Manifest {
		manifests, err := Decode(strings.NewReader(text), "file")
		if err != nil {
			t.Fatal(err)
		}
		return manifests
	}
	running := decode(`{apiVersion: v1, kind: Pod, metadata: {name: d-abc-x, labels: {pod-template-hash: abc}, ownerReferences: [` +
		`{apiVersion: apps/v1, kind: ReplicaSet, name: d-abc, controller: true, uid: u}]}, spec: {nodeName: node, containers: [{name: c}]}}`)[0].Object
	expanded := Expand(decode(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: `+
		`{containers: [{name: c, resources: {requests: {cpu: "3"}}}]}}}}`), running)
	if !expanded.Replaced[running] || len(expanded.Replaced) != 1 {
		t.Errorf("got %d pods that are replaced, want the one that runs", len(expanded.Replaced))
	}
	cluster := ObjectsOf([]client.Object{running, &corev1.Node{}})
	if cluster.Remove(expanded.Replaced); cluster.Len() != 1 || cluster.Distinct()[0] == running {
		t.Errorf("what is replaced is still among the objects: %v", cluster.Distinct())
	}
}
