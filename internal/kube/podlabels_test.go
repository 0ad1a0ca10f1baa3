package kube

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// expandLabels decodes and expands a document and returns some labels of its pods, by name.
func expandLabels(t *testing.T, text string, keys ...string) []string {
	t.Helper()
	manifests, err := Decode(strings.NewReader(text), "file")
	if err != nil {
		t.Fatal(err)
	}
	expanded := Expand(manifests)
	for _, err := range expanded.Problems {
		t.Error(err)
	}
	var out []string
	for o := range expanded.Objects.All() {
		if pod, is := o.(*corev1.Pod); is {
			line := pod.Name
			for _, key := range keys {
				line += " " + pod.Labels[key]
			}
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out
}

func TestPodsGetTheLabelsOfTheirControllers(t *testing.T) {
	const (
		template = `selector: {matchLabels: {app: w}}, template: {metadata: {labels: {app: w}}, spec: {containers: [{name: c}]}}`
		once     = `template: {metadata: {labels: {app: w}}, spec: {restartPolicy: Never, containers: [{name: c}]}}`
		named    = "\n---\n" + `{apiVersion: v1, kind: Pod, metadata: {name: z}, spec: {containers: [{name: c}], ` +
			`topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchExpressions: [` +
			`{key: statefulset.kubernetes.io/pod-name, operator: Exists}, {key: batch.kubernetes.io/job-completion-index, operator: Exists}]}}]}}`
		job = `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 2, ` + once + `}}`
		set = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {replicas: 2, ordinals: {start: 3}, ` + template + `}}`
	)
	for _, c := range []struct {
		name, text string
		keys, want []string
	}{
		{"the name of a Job, in both its labels", job, []string{"job-name", "batch.kubernetes.io/job-name", "controller-uid"},
			[]string{"j-0 j j ", "j-1 j j "}},
		{"the UID of a Job that has one", strings.Replace(job, "{name: j}", "{name: j, uid: u}", 1),
			[]string{"controller-uid", "batch.kubernetes.io/controller-uid", "app"}, []string{"j-0 u u w", "j-1 u u w"}},
		{"none of a Job with a selector of its own", strings.Replace(job, "parallelism: 2", "manualSelector: true", 1),
			[]string{"job-name"}, []string{"j-0 "}},
		{"the indices of an Indexed Job that are left", `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 3, ` +
			`completions: 9, completionMode: Indexed, ` + once + `}, status: {succeeded: 3, completedIndexes: "0,2-3"}}` + "\n---\n" +
			`{apiVersion: v1, kind: Pod, metadata: {name: x, labels: {batch.kubernetes.io/job-completion-index: "1"}, ownerReferences: ` +
			`[{apiVersion: batch/v1, kind: Job, name: j, controller: true, uid: u}]}, spec: {nodeName: node, containers: [{name: c}]}}` + named,
			[]string{"batch.kubernetes.io/job-completion-index", "job-name"}, []string{"j-1 4 j", "j-2 5 j", "x 1 ", "z  "}},
		{"no names of a StatefulSet's pods that no rule asks for", set,
			[]string{"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"}, []string{"s-3  ", "s-4  "}},
		{"the names of a StatefulSet's pods that a rule asks for", set + named,
			[]string{"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"}, []string{"s-3 s-3 3", "s-4 s-4 4", "z  "}},
		{"the revision of the pods that are there", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 2, ` +
			template + "}}\n---\n" + `{apiVersion: v1, kind: Pod, metadata: {name: d-abc-x, labels: {pod-template-hash: abc}, ` +
			`ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: d-abc, controller: true, uid: u}]}, ` +
			`spec: {nodeName: node, containers: [{name: c}]}}`,
			[]string{"pod-template-hash"}, []string{"d-1 abc", "d-abc-x abc"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, expandLabels(t, c.text, c.keys...)); diff != "" {
				t.Errorf("labels differ (-want +got):\n%s", diff)
			}
		})
	}
}

// Templates of different workloads never have the same revision.
func TestEachTemplateHasARevision(t *testing.T) {
	workload := func(kind, namespace, name string) string {
		return `{apiVersion: apps/v1, kind: ` + kind + `, metadata: {name: ` + name + `, namespace: ` + namespace +
			`}, spec: {selector: {matchLabels: {app: w}}, template: {metadata: {labels: {app: w}}, spec: {containers: [{name: c}]}}}}`
	}
	got := expandLabels(t, strings.Join([]string{
		workload("Deployment", "a", "x"), workload("Deployment", "b", "x"), workload("Deployment", "a", "w"),
		workload("StatefulSet", "a", "s"), workload("StatefulSet", "a", "r"),
	}, "\n---\n"), "pod-template-hash", "controller-revision-hash")
	seen := map[string]bool{}
	for _, line := range got {
		_, revision, _ := strings.Cut(line, " ")
		if seen[revision] || strings.TrimSpace(revision) == "" {
			t.Errorf("two workloads have the revision %q, or one has none: %q", revision, got)
		}
		seen[revision] = true
	}
}

// A mistyped number of an Indexed Job is refused before its pods are counted out.
func TestIndexedJobsAreNoLargerThanOthers(t *testing.T) {
	manifests, err := Decode(strings.NewReader(`{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 2000000000, `+
		`completions: 2000000000, completionMode: Indexed, template: {spec: {restartPolicy: Never, containers: [{name: c}], topologySpreadConstraints: [{topologyKey: zone, `+
		`maxSkew: 1, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [batch.kubernetes.io/job-completion-index], labelSelector: {}}]}}}}`), "file")
	if err != nil {
		t.Fatal(err)
	}
	out := Expand(manifests)
	if said := strings.Join(errorTexts(out.Problems), "; "); !strings.Contains(said, "got 2000000000, allowed: 0 to 200000") || len(podsOf(out.Objects.List())) > 0 {
		t.Errorf("said %q", said)
	}
}

// A status can say little that means much, and is read as far as pods may be asked for.
func TestIndicesOfJobs(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "1,3-5": 4, "0": 1, "x,2,7-": 1, "5-3": 0, "-1": 0, "0-2000000000": MaxExpandedPods,
		strings.Repeat("0-199999,", 1000): MaxExpandedPods, strings.Repeat("4-4,", 1000): 1,
	} {
		if got := indices(text); len(got) != want {
			t.Errorf("%.20s: %d indices, want %d", text, len(got), want)
		}
	}
}
