package kube

import (
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
)

// budgetsOf are the PodDisruptionBudgets of a document after its expansion.
func budgetsOf(t *testing.T, text string, running ...Manifest) []*policyv1.PodDisruptionBudget {
	t.Helper()
	manifests, err := Decode(strings.NewReader(text), "file")
	if err != nil {
		t.Fatal(err)
	}
	expanded := Expand(manifests)
	if len(running) > 0 {
		expanded = Expand(manifests, running[0].Object)
	}
	var out []*policyv1.PodDisruptionBudget
	for _, o := range expanded.Objects.Distinct() {
		if b, is := o.(*policyv1.PodDisruptionBudget); is {
			out = append(out, b)
		}
	}
	return out
}

func budgetText(rest string) string {
	return "\n---\n" + `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: shop}, spec: {selector: {matchLabels: {app: w}}` + rest + `}`
}

func TestBudgetsWithoutStatusGetOne(t *testing.T) {
	pod := func(name, owner, rest string) string {
		return "\n---\n" + `{apiVersion: v1, kind: Pod, metadata: {name: ` + name + `, namespace: shop, labels: {app: w}` + owner +
			`}, spec: {nodeName: node, containers: [{name: c}]}` + rest + `}`
	}
	by := func(kind string) string {
		return `, ownerReferences: [{apiVersion: apps/v1, kind: ` + kind + `, name: w, controller: true, uid: u}]`
	}
	const set = "\n---\n" + `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: w, namespace: shop}, spec: {replicas: 4, template: ` +
		`{metadata: {labels: {app: w}}, spec: {containers: [{name: c}]}}}}`
	three := pod("p", by("ReplicaSet"), "") + pod("q", by("ReplicaSet"), "") + pod("r", by("ReplicaSet"), "")
	for _, c := range []struct {
		name, text string
		want       int32
	}{
		{"as many may go as the budget says", three + budgetText(", maxUnavailable: 2}"), 2},
		{"those that are still to come are unavailable", three + set + budgetText(", maxUnavailable: 2}"), 1},
		{"percents of unavailable pods are rounded up", three + budgetText(", maxUnavailable: 50%}"), 2},
		{"percents of available pods are, too", three + budgetText(", minAvailable: 50%}"), 1},
		{"a number that has to stay", three + budgetText(", minAvailable: 2}"), 1},
		{"more have to stay than there are", three + budgetText(", minAvailable: 5}"), 0},
		{"pods that are not ready are unavailable", three + pod("s", by("ReplicaSet"), `, status: {conditions: [{type: Ready, status: "False"}]}`) +
			budgetText(", maxUnavailable: 2}"), 1},
		{"pods that go are unavailable", three + strings.Replace(pod("s", by("ReplicaSet"), ""), "{name: s,",
			`{name: s, deletionTimestamp: "2026-01-01T00:00:00Z",`, 1) + set + budgetText(", maxUnavailable: 2}"), 1},
		{"pods that have ended are none", three + pod("s", by("ReplicaSet"), ", status: {phase: Succeeded}") + budgetText(", maxUnavailable: 2}"), 2},
		{"pods of nothing have no number", pod("p", "", "") + budgetText(", maxUnavailable: 1}"), 0},
		{"a number that has to stay of pods of nothing", pod("p", "", "") + budgetText(", minAvailable: 0}"), 1},
		{"what cannot be scaled has no number", pod("p", by("DaemonSet"), "") + budgetText(", maxUnavailable: 1}"), 0},
		{"pods of other labels", strings.ReplaceAll(three, "app: w", "app: v") + budgetText(", maxUnavailable: 1}"), 0},
		{"a status stays", three + budgetText(", maxUnavailable: 2}, status: {observedGeneration: 1, disruptionsAllowed: 0}"), 0},
	} {
		found := budgetsOf(t, strings.TrimPrefix(c.text, "\n---\n"))
		if len(found) != 1 || found[0].Status.DisruptionsAllowed != c.want {
			t.Errorf("%s: got %v, want one that allows %d evictions", c.name, found, c.want)
		}
	}
}

// A file of the budget that the cluster has changes nothing, one that differs does.
func TestBudgetsOfTheClusterKeepTheirStatus(t *testing.T) {
	live, err := Decode(strings.NewReader(budgetText(", maxUnavailable: 1}, status: {observedGeneration: 1, disruptionsAllowed: 7}")), "cluster")
	if err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]int32{", maxUnavailable: 1}": 7, ", maxUnavailable: 2}": 0} {
		found := budgetsOf(t, budgetText(spec), live...)
		if len(found) != 1 || found[0].Status.DisruptionsAllowed != want {
			t.Errorf("%s: got %v, want one that allows %d evictions", spec, found, want)
		}
	}
}
