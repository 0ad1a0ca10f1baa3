package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// expandNames decodes and expands a document and returns the names of the pods
// and volume claims.
func expandNames(t *testing.T, text string, running ...Manifest) []string {
	t.Helper()
	manifests, err := Decode(strings.NewReader(text), "file")
	if err != nil {
		t.Fatal(err)
	}
	expanded := Expand(manifests)
	if len(running) > 0 {
		expanded = Expand(manifests, running[0].Object)
	}
	for _, err := range expanded.Problems {
		t.Error(err)
	}
	var names []string
	for _, o := range expanded.Objects.List() {
		switch o.(type) {
		case *corev1.Pod, *corev1.PersistentVolumeClaim:
			names = append(names, o.GetName())
		}
	}
	slices.Sort(names)
	return names
}

func TestExpandWorkloadsToMissingPods(t *testing.T) {
	const template = `{metadata: {labels: {a: b}}, spec: {containers: [{name: c}]}}`
	const ending = `{spec: {restartPolicy: Never, containers: [{name: c}]}}`
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"a Deployment without replicas has one",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, template: ` + template + `}}`, []string{"d-0"}},
		{"names sort as numbers",
			`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r}, spec: {selector: {matchLabels: {a: b}}, replicas: 11, template: ` + template + `}}`,
			[]string{"r-00", "r-01", "r-02", "r-03", "r-04", "r-05", "r-06", "r-07", "r-08", "r-09", "r-10"}},
		{"a StatefulSet brings its claims", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {selector: {matchLabels: {a: b}}, replicas: 2, template: ` +
			template + `, volumeClaimTemplates: [{metadata: {name: data}}]}}`,
			[]string{"data-s-0", "data-s-1", "s-0", "s-1"}},
		{"a Job runs as many as it still needs",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 5, completions: 7, template: ` +
				ending + `}, status: {succeeded: 5}}`,
			[]string{"j-0", "j-1"}},
		{"a suspended Job runs none",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {suspend: true, template: ` + ending + `}}`, nil},
		{"a CronJob has no pods until it is due",
			`{apiVersion: batch/v1, kind: CronJob, metadata: {name: c}, spec: {schedule: "* * * * *", jobTemplate: {spec: {template: ` +
				ending + `}}}}`, nil},
		{"a Job that has ended runs none", `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: ` + ending +
			`}, status: {failed: 1, conditions: [{type: Failed, status: "True"}]}}`, nil},
		{"a Job whose queue is empty leaves the rest running", `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 3, template: ` +
			ending + `}, status: {succeeded: 2}}`, nil},
		{"a Job that is about to fail runs none", `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: ` + ending +
			`}, status: {conditions: [{type: FailureTarget, status: "True"}]}}`, nil},
		{"a Job that has done enough runs none", `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: ` + ending +
			`}, status: {conditions: [{type: SuccessCriteriaMet, status: "True"}]}}`, nil},
		{"any kind with a template of pods has as many as it says",
			`{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: r}, spec: {replicas: 2, template: ` + template + `}}`,
			[]string{"r-0", "r-1"}},
		{"templates inside of lists are counted by the fields beside them",
			`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: s}, spec: {replicatedJobs: [{replicas: 2, template: ` +
				`{spec: {parallelism: 2, template: ` + template + `}}}, {template: {spec: {parallelism: 3, completions: 1, template: ` +
				template + `}}}]}}`,
			[]string{"s-0-0", "s-0-1", "s-0-2", "s-0-3", "s-1-0"}},
		{"workers of a RayCluster are within their bounds, each on its hosts",
			`{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r}, spec: {headGroupSpec: {template: ` + template + `}, workerGroupSpecs: [` +
				`{minReplicas: 2, maxReplicas: 5, template: ` + template + `}, {replicas: 9, minReplicas: 0, maxReplicas: 1, numOfHosts: 2, template: ` +
				template + `}, {replicas: 0, minReplicas: 0, template: ` + template + `}, {replicas: 3, suspend: true, template: ` + template + `}]}}`,
			[]string{"r-0-0", "r-1-0", "r-1-1", "r-2-0", "r-2-1"}},
		{"a revision of Knative's begins with what its annotations say",
			`{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: k}, spec: {template: {metadata: {annotations: ` +
				`{autoscaling.knative.dev/min-scale: "2"}}, spec: {containers: [{name: c}]}}}}`, []string{"k-0", "k-1"}},
		{"a revision of Knative's may begin with nothing",
			`{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: k}, spec: {template: {metadata: {annotations: ` +
				`{autoscaling.knative.dev/initial-scale: "0"}}, spec: {containers: [{name: c}]}}}}`, nil},
		{"a set of runners keeps its fewest",
			`{apiVersion: actions.github.com/v1alpha1, kind: AutoscalingRunnerSet, metadata: {name: a}, spec: {maxRunners: 5, template: ` + template + `}}` +
				"\n---\n" + `{apiVersion: actions.github.com/v1alpha1, kind: AutoscalingRunnerSet, metadata: {name: b}, spec: {minRunners: 2, template: ` +
				template + `}}`, []string{"b-0", "b-1"}},
		{"a LeaderWorkerSet has a leader and its workers per group",
			`{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: l}, spec: {replicas: 2, ` +
				`leaderWorkerTemplate: {size: 3, leaderTemplate: ` + template + `, workerTemplate: ` + template + `}}}`,
			[]string{"l-0-0", "l-0-1", "l-1-0", "l-1-1", "l-1-2", "l-1-3"}},
		{"leaders of a LeaderWorkerSet are as workers where nothing else is said",
			`{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: l}, spec: {` +
				`leaderWorkerTemplate: {size: 2, workerTemplate: ` + template + `}}}`,
			[]string{"l-0-0", "l-1-0"}},
		{"an object whose workload is in the input has no pods of its own",
			`{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: r, namespace: a}, spec: {replicas: 2, template: ` + template +
				"}}\n---\n" + `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r-1, namespace: a, ownerReferences: [{apiVersion: ` +
				`argoproj.io/v1alpha1, kind: Rollout, name: r, uid: u, controller: true}]}, spec: {selector: {matchLabels: {a: b}}, replicas: 1, template: ` + template + `}}`,
			[]string{"r-1-0"}},
		{"an autoscaler holds the number of pods", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, template: ` + template +
			"}}\n---\n" + `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {minReplicas: 3, ` +
			`maxReplicas: 5, scaleTargetRef: {kind: Deployment, name: d}}}`, []string{"d-0", "d-1", "d-2"}},
		{"an autoscaler leaves alone what is scaled to zero",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, replicas: 0, template: ` + template +
				"}}\n---\n" + `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {minReplicas: 3, ` +
				`maxReplicas: 5, scaleTargetRef: {kind: Deployment, name: d}}}`, nil},
		{"KEDA holds the number of pods, of Deployments where it names no kind, and wakes what sleeps",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, replicas: 0, template: ` + template +
				"}}\n---\n" + `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: k}, spec: {minReplicaCount: 2, ` +
				`scaleTargetRef: {name: d}}}`, []string{"d-0", "d-1"}},
		{"KEDA may leave nothing, and has bounds of its own",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, replicas: 3, template: ` + template +
				"}}\n---\n" + `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: k}, spec: {maxReplicaCount: 1, ` +
				`scaleTargetRef: {name: d}}}`, []string{"d-0"}},
		{"KEDA which is paused at a number of pods holds it",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, replicas: 3, template: ` + template +
				"}}\n---\n" + `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: k, annotations: ` +
				`{autoscaling.keda.sh/paused-replicas: "0"}}, spec: {minReplicaCount: 2, scaleTargetRef: {name: d}}}`, nil},
		{"KEDA which is paused holds nothing",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, replicas: 1, template: ` + template +
				"}}\n---\n" + `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: k, annotations: ` +
				`{autoscaling.keda.sh/paused: "true"}}, spec: {minReplicaCount: 2, scaleTargetRef: {name: d}}}`, []string{"d-0"}},
		{"pods that are there are not made again", `{apiVersion: v1, kind: List, items: [
			{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, replicas: 2, template: ` + template + `}},
			{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: d-abc, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: d, controller: true, uid: u}]}, spec: {selector: {matchLabels: {a: b}}, replicas: 2, template: ` + template + `}},
			{apiVersion: v1, kind: Pod, metadata: {name: d-abc-x, labels: {pod-template-hash: abc}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: d-abc, controller: true, uid: u}]}, spec: {containers: [{name: c}]}}]}`,
			[]string{"d-1", "d-abc-x"}},
		{"workloads of different kinds may have one name, and a StatefulSet's pods have the names that they will have",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: r}, spec: {selector: {matchLabels: {a: b}}, replicas: 2, template: ` + template + "}}\n---\n" +
				`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: r}, spec: {selector: {matchLabels: {a: b}}, replicas: 1, template: ` + template + "}}\n---\n" +
				`{apiVersion: batch/v1, kind: Job, metadata: {name: r}, spec: {template: ` + ending + `}}`,
			[]string{"r-0", "r-deployment-0", "r-deployment-1", "r-job-0"}},
		{"pods of the input keep their names", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: r}, spec: {selector: {matchLabels: {a: b}}, template: ` + template +
			"}}\n---\n" + `{apiVersion: v1, kind: Pod, metadata: {name: r-0}, spec: {containers: [{name: c}]}}`,
			[]string{"r-0", "r-deployment-0"}},
		{"a StatefulSet lacks the ordinals that are not there", `{apiVersion: v1, kind: List, items: [
			{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {selector: {matchLabels: {a: b}}, replicas: 3, template: ` + template + `, volumeClaimTemplates: [{metadata: {name: data}}]}},
			{apiVersion: v1, kind: Pod, metadata: {name: s-1, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: s, controller: true, uid: u}]}, spec: {nodeName: node, containers: [{name: c}]}},
			{apiVersion: v1, kind: Pod, metadata: {name: s-2, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: s, controller: true, uid: u}]}, spec: {nodeName: node, containers: [{name: c}]}},
			{apiVersion: v1, kind: Pod, metadata: {name: s-7, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: s, controller: true, uid: u}]}, spec: {nodeName: node, containers: [{name: c}]}}]}`,
			[]string{"data-s-0", "s-0", "s-1", "s-2", "s-7"}},
		{"a StatefulSet's ordinals may start later", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {selector: {matchLabels: {a: b}}, replicas: 2, ` +
			`ordinals: {start: 5}, template: ` + template + `}}`, []string{"s-5", "s-6"}},
		{"a StatefulSet adopts a pod that it selects, and waits for the name of another", `{apiVersion: v1, kind: List, items: [
			{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c}]}}}},
			{apiVersion: v1, kind: Pod, metadata: {name: s-0, labels: {a: b}}, spec: {containers: [{name: c}]}},
			{apiVersion: v1, kind: Pod, metadata: {name: s-1}, spec: {containers: [{name: c}]}}]}`, []string{"s-0", "s-1", "s-2"}},
		{"a claim that is there is not made again", `{apiVersion: v1, kind: List, items: [
			{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-s-0}},
			{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {selector: {matchLabels: {a: b}}, template: ` +
			template + `, volumeClaimTemplates: [{metadata: {name: data}}]}}]}`,
			[]string{"data-s-0", "s-0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, expandNames(t, c.text)); diff != "" {
				t.Errorf("objects differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExpandSkipsRunningPods(t *testing.T) {
	running, err := Decode(strings.NewReader(
		`{apiVersion: v1, kind: Pod, metadata: {name: d-abc-x, labels: {pod-template-hash: abc}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: d-abc, controller: true, uid: u}]}, spec: {nodeName: node, containers: [{name: c}]}}`), "cluster")
	if err != nil {
		t.Fatal(err)
	}
	got := expandNames(t,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, replicas: 3, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c}]}}}}`,
		running...)
	if want := []string{"d-1", "d-2"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestExpandNotesANameThatIsTaken(t *testing.T) {
	manifests, err := Decode(strings.NewReader(`{apiVersion: v1, kind: List, items: [
		{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c}]}}}},
		{apiVersion: v1, kind: Pod, metadata: {name: s-0}, spec: {containers: [{name: c}]}}]}`), "file")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"StatefulSet default/s: its pod s-0 is not planned: another pod has that name"}
	if diff := cmp.Diff(want, Expand(manifests).Notes); diff != "" {
		t.Errorf("notes differ (-want +got):\n%s", diff)
	}
}

// A pod that has ended is replaced under its name; one that is still being deleted keeps it. In
// whichever order they come, no two pods have one name, of which a mirror would lose one.
func TestExpandGivesAnOrdinalToOnePod(t *testing.T) {
	const (
		set = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {replicas: 4, selector: {matchLabels: {a: b}}, ` +
			`template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c}]}}}}`
		owned  = `ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: s, controller: true, uid: u}]`
		failed = `{apiVersion: v1, kind: Pod, metadata: {name: s-0, uid: old, ` + owned +
			`}, spec: {nodeName: node, containers: [{name: c}]}, status: {phase: Failed}}`
		done = `{apiVersion: v1, kind: Pod, metadata: {name: s-1, uid: old, ` + owned +
			`}, spec: {nodeName: node, containers: [{name: c}]}, status: {phase: Succeeded}}`
		leaving = `{apiVersion: v1, kind: Pod, metadata: {name: s-2, uid: old, deletionTimestamp: "2026-01-01T00:00:00Z", ` + owned +
			`}, spec: {nodeName: node, containers: [{name: c}]}, status: {phase: Running}}`
		other = `{apiVersion: v1, kind: Pod, metadata: {name: s-3, uid: old}, spec: {nodeName: node, containers: [{name: c}]}, ` +
			`status: {phase: Failed}}`
	)
	for name, items := range map[string][]string{
		"the StatefulSet first": {set, failed, done, leaving, other},
		"the StatefulSet last":  {failed, done, leaving, other, set},
	} {
		manifests, err := Decode(strings.NewReader(strings.Join(items, "\n---\n")), "file")
		if err != nil {
			t.Fatal(err)
		}
		expanded := Expand(manifests)
		var got []string
		for _, o := range expanded.Objects.List() {
			if pod, is := o.(*corev1.Pod); is {
				got = append(got, pod.Name+" "+string(pod.UID))
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff([]string{"s-0 ", "s-1 ", "s-2 old", "s-3 old"}, got); diff != "" {
			t.Errorf("%s: pods differ (-want +got):\n%s", name, diff)
		}
		want := []string{
			"StatefulSet default/s: its pod s-2 is not planned: the one before it is still being deleted",
			"StatefulSet default/s: its pod s-3 is not planned: another pod has that name",
		}
		if diff := cmp.Diff(want, expanded.Notes); diff != "" {
			t.Errorf("%s: notes differ (-want +got):\n%s", name, diff)
		}
	}
}

func TestWorkloadsThatAServerRefuses(t *testing.T) {
	const spec = `spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: c}}, spec: {containers: [{name: c}]}}}}`
	const labels = `spec.template.metadata.labels: got "a=c", must match spec.selector, a=b`
	const nothing = "spec.selector: selects nothing, must select the pods of spec.template by their labels"
	const never = "template: {spec: {restartPolicy: Never, containers: [{name: c}]}}"
	pods := func(policy string) string {
		return "selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {" + policy + "containers: [{name: c}]}}"
	}
	workload := func(kind, spec string) string {
		return "{apiVersion: apps/v1, kind: " + kind + ", metadata: {name: d}, spec: {" + spec + "}}"
	}
	job := func(kind, spec string) string {
		return "{apiVersion: batch/v1, kind: " + kind + ", metadata: {name: d}, spec: {" + spec + "}}"
	}
	autoscaler := func(spec string) string {
		return "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: d}, spec: {" + spec + "}}"
	}
	const removed = "which no API server serves any more, use: apps/v1"
	for text, want := range map[string]string{
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, ` + spec:            "Deployment default/d: " + labels,
		`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: d}, ` + spec:           "StatefulSet default/d: " + labels,
		`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: d}, ` + spec:            "ReplicaSet default/d: " + labels,
		`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, ` + spec:             "DaemonSet default/d: " + labels,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, uid: u}, ` + spec:    "",
		`{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: d}, ` + spec: `Deployment d: apiVersion: got "extensions/v1beta1", ` + removed,
		`{apiVersion: apps/v1beta2, kind: StatefulSet, metadata: {name: d}, ` + spec:      `StatefulSet d: apiVersion: got "apps/v1beta2", ` + removed,
		workload("Deployment", pods("")):                                                  "",
		workload("Deployment", "template: {}"):                                            "Deployment default/d: " + nothing,
		workload("ReplicaSet", "selector: {}, template: {}"):                              "ReplicaSet default/d: " + nothing,
		workload("StatefulSet", "selector: {}, template: {}"):                             "StatefulSet default/d: " + nothing,
		workload("DaemonSet", "template: {}"):                                             "DaemonSet default/d: " + nothing,
		workload("Deployment", pods("restartPolicy: Always, ")):                           "",
		workload("Deployment", pods("restartPolicy: Never, ")):                            `Deployment default/d: spec.template.spec.restartPolicy: got "Never", allowed: Always`,
		workload("DaemonSet", pods("restartPolicy: OnFailure, ")):                         `DaemonSet default/d: spec.template.spec.restartPolicy: got "OnFailure", allowed: Always`,
		workload("StatefulSet", "ordinals: {start: -5}, "+pods("")):                       "StatefulSet default/d: spec.ordinals.start: got -5, must not be negative",

		job("Job", never):                                                      "",
		job("Job", "parallelism: 0, "+never):                                   "",
		job("Job", "parallelism: -1, "+never):                                  "Job default/d: spec.parallelism: got -1, must not be negative",
		job("Job", "completions: -1, "+never):                                  "Job default/d: spec.completions: got -1, must not be negative",
		job("Job", "template: {spec: {}}"):                                     "Job default/d: spec.template.spec.restartPolicy: is missing, allowed: OnFailure, Never",
		job("Job", "template: {spec: {restartPolicy: Always}}"):                `Job default/d: spec.template.spec.restartPolicy: got "Always", allowed: OnFailure, Never`,
		job("CronJob", `schedule: "@daily", jobTemplate: {spec: {`+never+"}}"): "",
		job("CronJob", `schedule: "@daily", jobTemplate: {spec: {parallelism: -1, `+never+"}}"): "" +
			"CronJob default/d: spec.jobTemplate.spec.parallelism: got -1, must not be negative",

		autoscaler("minReplicas: 1, maxReplicas: 1"):  "",
		autoscaler("minReplicas: 0, maxReplicas: 1"):  "",
		autoscaler("minReplicas: 5, maxReplicas: 2"):  "HorizontalPodAutoscaler d: spec.maxReplicas: got 2, must be at least spec.minReplicas, 5",
		autoscaler("minReplicas: -1, maxReplicas: 2"): "HorizontalPodAutoscaler d: spec.minReplicas: got -1, must not be negative",
		autoscaler("maxReplicas: -1"):                 "HorizontalPodAutoscaler d: spec.maxReplicas: got -1, must be 1 or more",

		`{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: r}, spec: {replicas: -1, minReplicas: 0, ` + pods("") + `}}`: "" +
			"Rollout r: spec.replicas: got -1, allowed: 0 to 200000",

		`{apiVersion: v1, kind: Node, metadata: {name: node}, status: {allocatable: {cpu: "-1"}}}`: "" +
			"Node node: status.allocatable[cpu]: got -1, must not be negative",
		`{apiVersion: v1, kind: Node, metadata: {name: node}, status: {capacity: {memory: "-1Gi"}}}`: "" +
			"Node node: status.capacity[memory]: got -1Gi, must not be negative",
		`{apiVersion: v1, kind: LimitRange, metadata: {name: l}, spec: {limits: [{type: Container}, {type: example.com/Thing}]}}`: "",
		`{apiVersion: v1, kind: LimitRange, metadata: {name: l}, spec: {limits: [{type: Pod}, {type: Containers}]}}`: "" +
			`LimitRange default/l: spec.limits[1].type: got "Containers", allowed: Container, Pod, PersistentVolumeClaim`,

		`{apiVersion: batch/v1, kind: CronJob, metadata: {name: d}, spec: {schedule: "at night"}}`: "" +
			`CronJob default/d: spec.schedule: got "at night", must be a schedule such as "*/5 * * * *" or "@daily": ` +
			`expected exactly 5 fields, found 2: [at night]`,
	} {
		manifests, err := Decode(strings.NewReader(text), "file")
		got := ""
		if err != nil {
			got = err.Error()
		}
		for _, err := range Expand(manifests).Problems {
			got += err.Error()
		}
		if got = strings.TrimPrefix(got, "file: document 1: "); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

func TestSuspendedJobsAreNotPlanned(t *testing.T) {
	const template = `template: {spec: {restartPolicy: Never, containers: [{name: c}]}}`
	manifests, err := Decode(strings.NewReader(`{apiVersion: v1, kind: List, items: [
		{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {suspend: true, `+template+`}},
		{apiVersion: batch/v1, kind: CronJob, metadata: {name: c}, spec: {suspend: true, schedule: "@daily", jobTemplate: {spec: {`+template+`}}}}]}`), "file")
	if err != nil {
		t.Fatal(err)
	}
	if Due(manifests[1].Object) != nil {
		t.Error("a suspended CronJob is due")
	}
	want := []string{"Job default/j: is suspended, its pods are not planned", "CronJob default/c: is suspended, its pods are not planned"}
	if diff := cmp.Diff(want, Expand(manifests).Notes); diff != "" {
		t.Errorf("notes differ (-want +got):\n%s", diff)
	}
}

func TestExpandPrioritiesOfClasses(t *testing.T) {
	manifests, err := Decode(strings.NewReader(`{apiVersion: v1, kind: List, items: [
		{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000},
		{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: usual}, value: 5, globalDefault: true},
		{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {priorityClassName: high, containers: [{name: c}]}},
		{apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {containers: [{name: c}]}},
		{apiVersion: v1, kind: Pod, metadata: {name: d}, spec: {priorityClassName: system-node-critical, containers: [{name: c}]}}]}`), "file")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int32{}
	for _, o := range Expand(manifests).Objects.List() {
		if p, ok := o.(*corev1.Pod); ok && p.Spec.Priority != nil {
			got[p.Name] = *p.Spec.Priority
		}
	}
	want := map[string]int32{"a": 1000, "b": 5, "d": 2_000_001_000}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("priorities differ (-want +got):\n%s", diff)
	}
}

// Files ask for no more pods than a cluster has; workloads within that are planned.
func TestExpandMakesNoMorePodsThanClustersHave(t *testing.T) {
	const template = `{metadata: {labels: {a: b}}, spec: {containers: [{name: c}]}}`
	deployment := func(name string, replicas int) string {
		return fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, spec: {selector: {matchLabels: {a: b}}, replicas: %d, template: %s}}\n---\n", name, replicas, template)
	}
	set := strings.Replace(strings.Replace(deployment("set", 3), "Deployment", "StatefulSet", 1), "{name: set}", "{name: set, namespace: x}", 1)
	manifests, err := Decode(strings.NewReader(deployment("first", MaxExpandedPods-2)+deployment("late", 3)+set+deployment("last", 2)), "file")
	if err != nil {
		t.Fatal(err)
	}
	out, pods := Expand(manifests), 0
	for _, o := range out.Objects.List() {
		if _, is := o.(*corev1.Pod); is {
			pods++
		}
	}
	want := "asks for 3 pods beside the 199998 of other workloads, allowed: 200000 of all workloads together"
	if pods != MaxExpandedPods || len(out.Problems) != 2 || !strings.Contains(out.Problems[0].Error(), "late: "+want) ||
		!strings.Contains(out.Problems[1].Error(), "set: "+want) {
		t.Errorf("%d pods, problems %v", pods, out.Problems)
	}
}
