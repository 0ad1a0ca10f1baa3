package kube

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// quotaFile is a file with a ResourceQuota of the namespace shop, from a part of its text, and
// other objects.
func quotaFile(quota string, others ...string) string {
	return "{apiVersion: v1, kind: ResourceQuota, metadata: {name: team, namespace: shop}, " + quota + "}\n---\n" +
		strings.Join(others, "\n---\n")
}

// deploymentOf is a Deployment of the namespace shop with so many pods of a specification.
func deploymentOf(replicas, pod string) string {
	return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: " + replicas +
		", selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: " + pod + "}}}"
}

// TestQuotasHoldBackPodsThatDoNotExist has how many pods of the namespace are planned, and what
// is said of the others.
func TestQuotasHoldBackPodsThatDoNotExist(t *testing.T) {
	const half = "{containers: [{name: c, resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: '1'}}}]}"
	const gpu = "{containers: [{name: c, resources: {limits: {nvidia.com/gpu: 2}}}]}"
	const bare = "{containers: [{name: c}]}"
	running := func(name, more string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", namespace: shop, uid: " + name + "}, spec: {nodeName: node, containers: " +
			"[{name: c, resources: {requests: {cpu: '1'}}}]}" + more + "}"
	}
	for name, c := range map[string]struct {
		text string
		want int
		said string
	}{
		"room for all": {quotaFile("spec: {hard: {requests.cpu: '5', pods: 10}}", deploymentOf("10", half)), 10, ""},
		"requests": {quotaFile("spec: {hard: {requests.cpu: '2'}}", deploymentOf("10", half)), 4,
			"Deployment shop/web: 6 of the 10 pods that it lacks are held back: ResourceQuota shop/team has 2 of requests.cpu 2 left, " +
				"and each pod takes 500m; all of them need requests.cpu 5"},
		"memory and pods": {quotaFile("spec: {hard: {memory: 3Gi, pods: 5}}", deploymentOf("10", half)), 3,
			"Deployment shop/web: 7 of the 10 pods that it lacks are held back: ResourceQuota shop/team has 3Gi of memory 3Gi left, " +
				"and each pod takes 1Gi; all of them need memory 10Gi, pods 10"},
		"limits": {quotaFile("spec: {hard: {limits.cpu: '2'}}", deploymentOf("3", half)), 2,
			"Deployment shop/web: 1 of the 3 pods that it lacks are held back: ResourceQuota shop/team has 2 of limits.cpu 2 left, " +
				"and each pod takes 1; all of them need limits.cpu 3"},
		"GPUs": {quotaFile("spec: {hard: {requests.nvidia.com/gpu: 3}}", deploymentOf("2", gpu)), 1,
			"Deployment shop/web: 1 of the 2 pods that it lacks are held back: ResourceQuota shop/team has 3 of requests.nvidia.com/gpu 3 left, " +
				"and each pod takes 2; all of them need requests.nvidia.com/gpu 4"},
		"two quotas": {quotaFile("spec: {hard: {pods: 3}}", deploymentOf("4", half),
			"{apiVersion: v1, kind: ResourceQuota, metadata: {name: cpu, namespace: shop}, spec: {hard: {cpu: '1'}}}"), 2,
			"Deployment shop/web: 2 of the 4 pods that it lacks are held back: ResourceQuota shop/cpu has 1 of cpu 1 left, " +
				"and each pod takes 500m; all of them need cpu 2, pods 4 in ResourceQuota team"},
		"another namespace": {quotaFile("spec: {hard: {pods: 1}}", strings.ReplaceAll(deploymentOf("3", half), "shop", "other")), 0, ""},
		"pods that exist count": {quotaFile("spec: {hard: {requests.cpu: '2'}}", running("a", ""), deploymentOf("3", half)), 3,
			"Deployment shop/web: 1 of the 3 pods that it lacks are held back: ResourceQuota shop/team has 1 of requests.cpu 2 left, " +
				"and each pod takes 500m; all of them need requests.cpu 2500m"},
		"pods that have ended do not": {quotaFile("spec: {hard: {requests.cpu: '2'}}", running("a", ", status: {phase: Succeeded}"),
			deploymentOf("3", half)), 4, ""},
		"pods that have ended count as objects": {quotaFile("spec: {hard: {count/pods: 2}}", running("a", ", status: {phase: Succeeded}"),
			deploymentOf("3", half)), 2,
			"Deployment shop/web: 2 of the 3 pods that it lacks are held back: ResourceQuota shop/team has 1 of count/pods 2 left, " +
				"and each pod takes 1; all of them need count/pods 4"},
		"what the status says is used": {quotaFile("spec: {hard: {requests.cpu: '2', pods: 4}}, status: {used: {requests.cpu: '1500m'}}",
			running("a", ""), deploymentOf("3", half)), 2,
			"Deployment shop/web: 2 of the 3 pods that it lacks are held back: ResourceQuota shop/team has 500m of requests.cpu 2 left, " +
				"and each pod takes 500m; all of them need requests.cpu 3"},
		"more is used than there may be": {quotaFile("spec: {hard: {pods: 1}}, status: {used: {pods: 5}}", deploymentOf("1", half)), 0,
			"Deployment shop/web: the pod that it lacks is held back: ResourceQuota shop/team has 0 of pods 1 left, " +
				"and each pod takes 1; all of them need pods 6"},
		"containers that do not say what they take": {quotaFile("spec: {hard: {limits.memory: 1Ti}}", deploymentOf("3", half)), 0,
			"Deployment shop/web: the 3 pods that it lacks are held back: ResourceQuota shop/team has limits.memory, " +
				"so that each container must say resources.limits.memory, and c does not"},
		"what is no matter of pods": {quotaFile("spec: {hard: {services: 0, requests.storage: 1Gi, count/jobs.batch: 0}}", deploymentOf("3", bare)), 3, ""},
		"best effort":               {quotaFile("spec: {hard: {pods: 1}, scopes: [BestEffort]}", deploymentOf("3", half)), 3, ""},
		"best effort of none": {quotaFile("spec: {hard: {pods: 1}, scopes: [BestEffort]}", deploymentOf("3", bare)), 1,
			"Deployment shop/web: 2 of the 3 pods that it lacks are held back: ResourceQuota shop/team has 1 of pods 1 left, " +
				"and each pod takes 1; all of them need pods 3"},
		"another priority": {quotaFile("spec: {hard: {pods: 1}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, "+
			"values: [high]}]}}", deploymentOf("3", half)), 3, ""},
		"the priority by default": {quotaFile("spec: {hard: {pods: 1}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, "+
			"values: [high]}]}}", deploymentOf("2", half),
			"{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 5, globalDefault: true}"), 1,
			"Deployment shop/web: 1 of the 2 pods that it lacks are held back: ResourceQuota shop/team has 1 of pods 1 left, " +
				"and each pod takes 1; all of them need pods 2"},
		"pods that end by themselves": {quotaFile("spec: {hard: {pods: 0}, scopes: [Terminating]}", deploymentOf("3", half)), 3, ""},
		"a pod that is to be created": {quotaFile("spec: {hard: {pods: 0}}",
			"{apiVersion: v1, kind: Pod, metadata: {name: one, namespace: shop}, spec: "+half+"}"), 0,
			"Pod shop/one: is held back: ResourceQuota shop/team has 0 of pods 0 left, and each pod takes 1; all of them need pods 1"},
		"a StatefulSet": {quotaFile("spec: {hard: {pods: 2}}", "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: shop}, "+
			"spec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: "+half+"}}}"), 2,
			"StatefulSet shop/db: 1 of the 3 pods that it lacks are held back: ResourceQuota shop/team has 2 of pods 2 left, " +
				"and each pod takes 1; all of them need pods 3"},
		"a kind that is not known": {quotaFile("spec: {hard: {pods: 2}}", "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, "+
			"metadata: {name: r, namespace: shop}, spec: {replicas: 3, template: {spec: "+half+"}}}"), 2,
			"Rollout shop/r: 1 of the 3 pods that it lacks are held back: ResourceQuota shop/team has 2 of pods 2 left, " +
				"and each pod takes 1; all of them need pods 3"},
	} {
		manifests, err := Decode(strings.NewReader(c.text), "file")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		out := Expand(manifests)
		pods := slices.DeleteFunc(podsOf(out.Objects.List()), func(p *corev1.Pod) bool { return p.Namespace != "shop" })
		said := strings.Join(append(slices.Clone(out.Notes), errorTexts(out.Problems)...), "; ")
		if len(pods) != c.want || said != c.said {
			t.Errorf("%s: %d pods, want %d, and said (-want +got):\n%s", name, len(pods), c.want, cmp.Diff(c.said, said))
		}
		if held := out.Quotas.Held(); (len(held) > 0) != (c.said != "") {
			t.Errorf("%s: %v held back", name, held)
		}
	}
}

func errorTexts(errs []error) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

func TestQuotasThatAServerRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		"{hard: {pods: -1}}":        "spec.hard[pods]: got -1, must not be negative",
		"{hard: {requests.cpu: x}}": `spec.hard[requests.cpu]: got "x", must be a quantity such as 4, 500m or 16Gi`,
		"{scopes: [Best]}": `spec.scopes[0]: got "Best", allowed: Terminating, NotTerminating, BestEffort, NotBestEffort, PriorityClass, ` +
			"CrossNamespacePodAffinity, VolumeAttributesClass",
		"{scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Is}]}}": `spec.scopeSelector.matchExpressions[0].operator: ` +
			`got "Is", allowed: In, NotIn, Exists, DoesNotExist`,
	} {
		manifests, err := Decode(strings.NewReader(quotaFile("spec: "+spec, deploymentOf("2", "{containers: [{name: c}]}"))), "file")
		out := Expand(manifests)
		got := strings.Join(errorTexts(out.Problems), "; ")
		if err != nil {
			got = err.Error()
		}
		if want := "ResourceQuota shop/team: " + want; !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %q, want %q", spec, got, want)
		}
		if n := len(podsOf(out.Objects.List())); n != 2 {
			t.Errorf("%s: %d pods, want 2", spec, n)
		}
	}
}

// TestPodsOfTheClusterCountAgainstQuotasOfFiles: files that are for a cluster have its pods beside
// them.
func TestPodsOfTheClusterCountAgainstQuotasOfFiles(t *testing.T) {
	decode := func(text string) []Manifest {
		manifests, err := Decode(strings.NewReader(text), "file")
		if err != nil {
			t.Fatal(err)
		}
		return manifests
	}
	running := decode("{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop, uid: u}, spec: {nodeName: node, containers: [{name: c}]}}")
	out := Expand(decode(quotaFile("spec: {hard: {pods: 3}}", deploymentOf("5", "{containers: [{name: c}]}"))), running[0].Object)
	if n := len(podsOf(out.Objects.List())); n != 2 {
		t.Errorf("%d pods beside the one that runs, want 2 of 3", n)
	}
}
