package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestPodsOfRefusedNodePoolsSayWhy: what the API server would refuse of a NodePool is the reason
// of the pods which only that would take, also where it cannot be read.
func TestPodsOfRefusedNodePoolsSayWhy(t *testing.T) {
	const pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n" +
		"spec: {nodeSelector: {kubernetes.io/arch: arm64}, containers: [{name: c, resources: {requests: {cpu: 1}}}]}\n"
	const arm = "requirements: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]"
	amd := strings.NewReplacer("general", "other", "arm64", "amd64", "name: default", "name: of-its-own").Replace(poolWith("weight: 1", arm))
	for name, c := range map[string]struct{ pool, why string }{
		"a limit":     {poolWith("limits: {cpu: abc}", arm), `spec.limits.cpu: Invalid value: "abc"`},
		"half a node": {poolWith("limits: {nodes: 1.5}", arm), "spec.limits.nodes: Invalid value: 1.5"},
		"an expiry":   {poolWith("weight: 1", arm+"\n      expireAfter: 5x"), `spec.template.spec.expireAfter: Invalid value: "5x"`},
		"a wait":      {poolWith("disruption: {consolidateAfter: soon}", arm), `spec.disruption.consolidateAfter: Invalid value: "soon"`},
		"a duration that is too long": {poolWith("weight: 1", arm+"\n      expireAfter: 99999999h"),
			`spec.template.spec.expireAfter: got "99999999h", must be a duration`},
		"a kind of another group": {strings.Replace(poolWith("weight: 1", arm), "karpenter.sh/v1", "karpenter.k8s.sh/v1", 1),
			`apiVersion`},
		"a node class with a wrong field": {poolWith("weight: 1", arm) + "---\napiVersion: karpenter.azure.com/v1beta1\nkind: AKSNodeClass\n" +
			"metadata: {name: default}\nspec: {osDiskSizeGB: 5000}\n", "its AKSNodeClass default is refused"},
		"two faults": {poolWith("weight: 0\n  limits: {cpu: abc}", arm), "and 1 more fault"},
		"an older version": {strings.Replace(poolWith("weight: 1", arm), "karpenter.sh/v1", "karpenter.sh/v1beta1", 1),
			`apiVersion: got "karpenter.sh/v1beta1"`},
	} {
		out, errs, code := nap.Run(t, "plan", "-f", writeInput(t, c.pool+"---\n"+amd+pod), "--budget", "0", "-o", "json")
		var plan planReport
		if err := json.Unmarshal([]byte(out), &plan); err != nil {
			t.Errorf("%s: %v\n%s%s", name, err, out, errs)
			continue
		}
		if code != 1 || len(plan.Unschedulable) != 1 {
			t.Errorf("%s: exit code %d, and pending are %v, want 1 and one pod\n%s", name, code, plan.Unschedulable, errs)
			continue
		}
		u := plan.Unschedulable[0]
		if u.Reason != "NodePoolInvalid" || !strings.Contains(u.Message, c.why) || !strings.Contains(u.Message, "NodePool general") {
			t.Errorf("%s: the pod waits for %s, %s, want NodePoolInvalid with %q", name, u.Reason, u.Message, c.why)
		}
		if strings.Contains(errs, "<nil>") || strings.Contains(out, "<nil>") {
			t.Errorf("%s: nameless fields\n%s%s", name, out, errs)
		}
	}
}

// Where the only NodePool is refused, no other one is planned with, whatever is wrong with it.
func TestNoOtherNodePoolIsPlannedWith(t *testing.T) {
	pool := poolWith("weight: 1", "requirements: []")
	for name, refused := range map[string]string{
		"no name":       strings.Replace(pool, "{name: general}", "{}", 1),
		"another group": strings.Replace(pool, "karpenter.sh/v1", "karpenter.k8s.sh/v1", 1),
		"a node class with a misspelt field": pool + "---\napiVersion: karpenter.azure.com/v1beta1\nkind: AKSNodeClass\n" +
			"metadata: {name: default}\nspec: {maxPod: 30}\n",
	} {
		input := refused + "---\n" + podWith("{containers: [{name: c, resources: {requests: {cpu: 1}}}]}")
		out, errs, code := nap.Run(t, "plan", "-f", writeInput(t, input), "--budget", "0")
		if code != 1 || strings.Contains(out, "Buy 1") || strings.Contains(errs, "default one") || strings.Contains(errs, "planned with defaults") {
			t.Errorf("%s: exit code %d\n%s%s", name, code, out, errs)
		}
	}
}

// TestCommandsTellOfRefusedNodePools: whatever is asked, an object that the API server would
// refuse is told, and the exit code is 1.
func TestCommandsTellOfRefusedNodePools(t *testing.T) {
	const pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: s, " +
		"uid: u, controller: true}]}\nspec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}\n"
	good := strings.Replace(poolWith("weight: 1", "requirements: []"), "general", "other", 1)
	file := writeInput(t, poolWith("limits: {nodes: 1.5}\n  weight: 101", "requirements: []")+"---\n"+good+pod)
	for _, args := range [][]string{
		{"plan"}, {"plan", "--consolidate"}, {"explain", "pod", "default/p"}, {"explain", "sts/s"}, {"explain", "general"},
		{"explain", "nodepool", "other"}, {"what-if", "--price", "+1%"}, {"diff"}, {"get", "pools"}, {"get", "offers"}, {"status"}, {"lint"},
		{"savings"},
	} {
		_, errs, code := nap.Run(t, append(args, "-f", file)...)
		for _, want := range []string{
			"in.yaml: document 1: NodePool general: spec.limits.nodes: Invalid value: 1.5: spec.limits.nodes in body must be of type integer,string\n",
			"in.yaml: document 1: NodePool general: spec.weight: Invalid value: 101: spec.weight in body should be less than or equal to 100\n",
		} {
			if code != 1 || !strings.Contains(errs, want) {
				t.Errorf("nap %s: exit code %d, want 1, and %q in\n%s", strings.Join(args, " "), code, want, errs)
			}
		}
	}
}

// A schedule that is one by its letters is taken by the API server, and then holds all nodes.
func TestSchedulesThatNoCronReadsAreNoted(t *testing.T) {
	_, errs, _ := nap.Run(t, "plan", "-f", writeInput(t, poolWith("disruption: {budgets: [{nodes: '5', schedule: a b c d e, duration: 8h}]}",
		"requirements: []")))
	if text := strings.Join(strings.Fields(errs), " "); !strings.Contains(text, `NodePool general: spec.disruption.budgets[0].schedule "a b c d e": `) ||
		!strings.Contains(text, "it lets no node be removed") {
		t.Errorf("got\n%s", errs)
	}
}
