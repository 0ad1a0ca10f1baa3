package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// explainedIn is what nap explain answers about objects, in JSON.
func explainedIn(t *testing.T, objects, asked string, flags ...string) storyAsJSON {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.yaml")
	if err := os.WriteFile(path, []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append(append([]string{"explain"}, strings.Fields(asked)...), "-f", path, "--budget", "0", "-o", "json")
	out, errs, code := nap.Run(t, append(args, flags...)...)
	var answer storyAsJSON
	if err := json.Unmarshal([]byte(out), &answer); err != nil || code != 2 {
		t.Fatalf("exit code %d, %v:\n%s%s", code, err, errs, out)
	}
	for _, c := range answer.Commands {
		readsAsCommand(t, c)
		understood(t, c)
	}
	return answer
}

// storyAsJSON is what tests read of an explanation.
type storyAsJSON struct {
	Fix      string
	Nearest  struct{ Want string }
	Commands []string
	Remedies []struct{ Change, Command string }
}

// tainted is a NodePool with a taint.
func tainted() string {
	return poolWith("weight: 1", "requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]\n"+
		"      taints: [{key: team, value: a, effect: NoSchedule}]") + "---\n"
}

// TestTolerateKeepsTheTemplatesOwn: a patch replaces the whole list of tolerations. It has those of
// the template with all their fields, and none which the API server adds to each pod: with those, but
// for their seconds, pods would never leave a node that is lost.
func TestTolerateKeepsTheTemplatesOwn(t *testing.T) {
	const (
		// what the API server has added to a pod
		added = `[{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}, ` +
			`{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}, ` +
			`{key: node.kubernetes.io/memory-pressure, operator: Exists, effect: NoSchedule}, ` +
			`{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}, ` +
			`{key: kata, operator: Exists}, {key: mine, operator: Exists, effect: NoExecute, tolerationSeconds: 7}]`
		runtime = "{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: kata}, handler: kata, scheduling: {tolerations: [{key: kata, operator: Exists}]}}\n---\n"
		pod     = "{apiVersion: v1, kind: Pod, metadata: {name: web-abc-1, labels: {app: web, pod-template-hash: abc}, " +
			"ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-abc, uid: r1, controller: true}]}, " +
			"spec: {runtimeClassName: kata, containers: [{name: c, resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 1}}}], tolerations: " + added + "}, " +
			"status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}}\n"
		deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {app: web}}, " +
			"template: {metadata: {labels: {app: web}}, spec: {runtimeClassName: kata, containers: [{name: c, resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 1}}}]%s}}}}\n"
		own  = `, tolerations: [{key: zzz, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]`
		want = `{"key":"team","operator":"Equal","value":"a","effect":"NoSchedule"}]`
	)
	template := func(own string) string { return strings.Replace(deployment, "%s", own, 1) }
	for name, of := range map[string]struct{ objects, want string }{
		"owner and pod": {template("") + "---\n" + pod, `"tolerations":[` + want},
		"owner alone":   {template(own), `"tolerations":[{"key":"zzz","operator":"Exists","effect":"NoExecute","tolerationSeconds":5},` + want},
		"pod alone":     {pod, `"tolerations":[{"key":"mine","operator":"Exists","effect":"NoExecute","tolerationSeconds":7},` + want},
	} {
		answer := explainedIn(t, tainted()+runtime+of.objects, "deploy/web")
		if len(answer.Remedies) == 0 || !strings.Contains(answer.Remedies[0].Command, of.want) {
			t.Errorf("%s: no remedy with %s in %+v", name, of.want, answer.Remedies)
		}
	}
}

// TestPodsOfAPodAreNamedAndNotReplaced: the driver of Spark makes its executors. A list names the
// executor that waits, not the driver, which runs; nothing offers to delete either of them.
func TestPodsOfAPodAreNamedAndNotReplaced(t *testing.T) {
	const spark = `apiVersion: v1
kind: Pod
metadata: {name: driver, uid: d}
spec: {nodeName: n1, containers: [{name: c}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: exec-2, ownerReferences: [{apiVersion: v1, kind: Pod, name: driver, uid: d, controller: true}]}
spec: {nodeSelector: {disk: nvme}, containers: [{name: c, resources: {requests: {cpu: 6}}}]}
`
	answer := explainedIn(t, spark, "pod/exec-2")
	if len(answer.Remedies) != 0 || len(answer.Commands) != 1 || answer.Commands[0] != "kubectl get pod exec-2 -n default -o yaml" {
		t.Errorf("offers %q", answer.Commands)
	}
	path := filepath.Join(t.TempDir(), "in.yaml")
	if err := os.WriteFile(path, []byte(spark), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, _ := nap.Run(t, "plan", "-f", path, "--budget", "0")
	if !strings.Contains(out, "\n  Pod default/exec-2\n") || strings.Contains(out, "driver") {
		t.Errorf("the plan does not name the executor:\n%s%s", errs, out)
	}
}

// TestRemediesChangeWhatJobsAreMadeFrom: of a CronJob that is taken to be due, no Job exists yet, so
// that the CronJob is patched; a Job that exists is made again, and what that costs is said.
func TestRemediesChangeWhatJobsAreMadeFrom(t *testing.T) {
	const job = `spec: {template: {spec: {restartPolicy: Never, nodeSelector: {disk: ssd}, ` +
		`tolerations: [{key: own, operator: Exists}], containers: [{name: c}]}}}`
	pool := poolWith("weight: 1", "requirements: []") + "---\n"
	cron := "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: cj, namespace: ns}\nspec: {schedule: '0 * * * *', jobTemplate: {" + job + "}}\n"
	const patch = `{"spec":{"jobTemplate":{"spec":{"template":{"spec":`
	answer := explainedIn(t, pool+cron, "cronjob/cj -n ns --due")
	if want := "kubectl patch cronjob cj -n ns --type merge -p '" + patch + `{"nodeSelector":{"disk":null}}}}}}}'`; len(answer.Commands) == 0 ||
		answer.Commands[0] != want {
		t.Errorf("offers %q, want %s", answer.Commands, want)
	}
	answer = explainedIn(t, tainted()+strings.Replace(cron, "nodeSelector: {disk: ssd}, ", "", 1), "cronjob/cj -n ns --due")
	if want := patch + `{"tolerations":[{"key":"own","operator":"Exists"},{"key":"team",`; len(answer.Commands) == 0 ||
		!strings.Contains(answer.Commands[0], want) {
		t.Errorf("offers %q, want %s", answer.Commands, want)
	}
	answer = explainedIn(t, pool+"apiVersion: batch/v1\nkind: Job\nmetadata: {name: sweep}\n"+job+"\n", "job/sweep")
	const lost = "drop disk from the nodeSelector, by making the Job again: its running pods and its completions are lost"
	if len(answer.Remedies) == 0 || answer.Remedies[0].Change != lost {
		t.Errorf("offers %+v", answer.Remedies)
	}
}

// TestSelectorsOfNamespacesAreNotDropped: a Deployment cannot drop a label which its namespace adds to
// the nodeSelector of each pod; its own it can.
func TestSelectorsOfNamespacesAreNotDropped(t *testing.T) {
	const objects = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, annotations: {scheduler.alpha.kubernetes.io/node-selector: env=prod}}\n---\n" +
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: %s}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, " +
		"template: {metadata: {labels: {a: b}}, spec: {nodeSelector: {env: prod}, containers: [{name: c}]}}}}\n"
	in := func(namespace string) storyAsJSON {
		return explainedIn(t, poolWith("weight: 1", "requirements: []")+"---\n"+strings.Replace(objects, "%s", namespace, 1), "deploy/web -n "+namespace)
	}
	answer := in("shop")
	if len(answer.Remedies) != 0 || len(answer.Commands) != 1 || answer.Commands[0] != "kubectl get namespace shop -o yaml" {
		t.Errorf("offers %q", answer.Commands)
	}
	const fix = "Change env in the annotation scheduler.alpha.kubernetes.io/node-selector of Namespace shop, from which its pods have it, " +
		"or create a NodePool whose template has this label."
	if answer.Fix != fix {
		t.Errorf("says %q", answer.Fix)
	}
	if answer = in("other"); len(answer.Remedies) != 1 || answer.Remedies[0].Change != "drop env from the nodeSelector" {
		t.Errorf("offers %q for another namespace", answer.Commands)
	}
}

// TestLimitsThatAreFullTogetherAreRaisedTogether: where one limit more gives no pod a place, since
// another one is full, too, one patch raises both; with it all pods have a place.
func TestLimitsThatAreFullTogetherAreRaisedTogether(t *testing.T) {
	const (
		sizes = "requirements: [{key: karpenter.azure.com/sku-name, operator: In, values: [Standard_D4s_v5]}, " +
			"{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]"
		web = "---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3, selector: {matchLabels: {a: b}}, " +
			"template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, resources: {requests: {cpu: 3}}}]}}}}\n"
		priced = "metadata: {name: general, annotations: {karpenter.azure.com/max-hourly-cost: '%s'}}"
	)
	pool := func(limits, cost string) string {
		of := poolWith("limits: "+limits, sizes)
		if cost != "" {
			of = strings.Replace(of, "metadata: {name: general}", strings.Replace(priced, "%s", cost, 1), 1)
		}
		return of + web
	}
	const change = "raise the limits of NodePool general, for all 2 pods that wait for them"
	for _, c := range []struct{ full, patch, raised string }{
		{pool("{cpu: 4}", "0.30"), `{"metadata":{"annotations":{"karpenter.azure.com/max-hourly-cost":"0.66"}},"spec":{"limits":{"cpu":"12"}}}`,
			pool("{cpu: 12}", "0.66")},
		{pool("{cpu: 4, nodes: 1}", ""), `{"spec":{"limits":{"cpu":"12","nodes":"3"}}}`, pool("{cpu: 12, nodes: 3}", "")},
	} {
		answer := explainedIn(t, c.full, "deploy/web")
		if want := "kubectl patch nodepool general --type merge -p '" + c.patch + "'"; len(answer.Remedies) != 1 ||
			answer.Remedies[0].Change != change || answer.Remedies[0].Command != want {
			t.Errorf("offers %+v, want %s", answer.Remedies, want)
		}
		path := filepath.Join(t.TempDir(), "in.yaml")
		if err := os.WriteFile(path, []byte(c.raised), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, errs, code := nap.Run(t, "explain", "deploy/web", "-f", path, "--budget", "0"); code != 0 {
			t.Errorf("some wait still:\n%s%s", errs, out)
		}
	}
}

// TestNamesOfNodesAreNoLabelOfNodePools: a node affinity by matchFields names a node.
func TestNamesOfNodesAreNoLabelOfNodePools(t *testing.T) {
	const by = "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: " +
		"[{matchFields: [{key: metadata.name, operator: In, values: [n9]}]}]}}}, containers: [{name: c}]}"
	const want = "Drop metadata.name: the name of a machine is not known before it is bought, and no NodePool may set it."
	if answer := explainedIn(t, podWith(by), "pod/p"); answer.Fix != want {
		t.Errorf("says %q", answer.Fix)
	}
}

// TestTheHostPortThatClashesIsNamed: of several ports of a pod, the DaemonSet takes the second.
func TestTheHostPortThatClashesIsNamed(t *testing.T) {
	const daemons = "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, template: " +
		"{metadata: {labels: {a: b}}, spec: {containers: [{name: c, ports: [{containerPort: 9100, hostPort: 9100}]}]}}}}\n---\n"
	answer := explainedIn(t, daemons+podWith("{containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}, {containerPort: 1, hostPort: 9100}]}]}"), "pod/p")
	if answer.Nearest.Want != "port 9100 for itself" {
		t.Errorf("needs %q", answer.Nearest.Want)
	}
}

// TestNoNodePoolBuysWhatNoSizeHas: no machine on sale has huge pages; GPUs some have.
func TestNoNodePoolBuysWhatNoSizeHas(t *testing.T) {
	for resource, want := range map[string]string{
		"hugepages-2Mi":  "Drop the request: no machine on sale has hugepages-2Mi, unless a NodeOverlay says so.",
		"nvidia.com/gpu": "Let NodePool default buy instance types that have nvidia.com/gpu, or drop the request.",
	} {
		answer := explainedIn(t, podWith("{containers: [{name: c, resources: {requests: {cpu: 1}, limits: {"+resource+": 2}}}]}"), "pod/p")
		if answer.Fix != want {
			t.Errorf("%s: says %q", resource, answer.Fix)
		}
	}
}

// TestVolumesThatContradictTheSelectorAreNamed: the disk of a pod is in one zone, its nodeSelector
// asks for another; no NodePool can help.
func TestVolumesThatContradictTheSelectorAreNamed(t *testing.T) {
	const stored = `apiVersion: v1
kind: PersistentVolume
metadata: {name: pv1}
spec: {capacity: {storage: 10Gi}, accessModes: [ReadWriteOnce], csi: {driver: disk.csi.azure.com, volumeHandle: x}, storageClassName: managed-csi,
  claimRef: {kind: PersistentVolumeClaim, namespace: default, name: data}, nodeAffinity: {required: {nodeSelectorTerms: [
  {matchExpressions: [{key: topology.disk.csi.azure.com/zone, operator: In, values: [eastus-2]}]}]}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: managed-csi, volumeName: pv1, resources: {requests: {storage: 10Gi}}}
status: {phase: Bound}
---
`
	pod := podWith("{nodeSelector: {topology.kubernetes.io/zone: eastus-1}, containers: [{name: c}], " +
		"volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}")
	const want = "Change the pod's nodeSelector or nodeAffinity on topology.kubernetes.io/zone: a volume of the pod can be used in eastus-2 alone."
	if answer := explainedIn(t, stored+pod, "pod/p"); answer.Fix != want {
		t.Errorf("says %q", answer.Fix)
	}
}
