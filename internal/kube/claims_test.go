package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

// gpuCatalog has a size without GPUs and some with.
const gpuCatalog = `{"region":"eastus","instanceTypes":[
 {"name":"D4","arch":"amd64","capacity":{"cpu":"4","memory":"16Gi","pods":"110"},
  "offerings":[{"zone":"eastus-1","capacityType":"on-demand","price":0.2}]},
 {"name":"T4x1","arch":"amd64","capacity":{"cpu":"4","memory":"28Gi","pods":"110"},
  "gpu":{"count":1,"product":"Tesla T4","architecture":"Turing","computeCapability":"7.5.0","memoryLeast":"15Gi","memoryMost":"16Gi"},
  "offerings":[{"zone":"eastus-1","capacityType":"on-demand","price":0.5}]},
 {"name":"T4x4","arch":"amd64","capacity":{"cpu":"64","memory":"440Gi","pods":"110"},
  "gpu":{"count":4,"product":"Tesla T4","architecture":"Turing","computeCapability":"7.5.0","memoryLeast":"15Gi","memoryMost":"16Gi"},
  "offerings":[{"zone":"eastus-1","capacityType":"on-demand","price":4}]},
 {"name":"A100x1","arch":"amd64","capacity":{"cpu":"24","memory":"220Gi","pods":"110"},
  "gpu":{"count":1,"product":"NVIDIA A100 80GB PCIe","architecture":"Ampere","computeCapability":"8.0.0","memoryLeast":"80Gi","memoryMost":"80Gi"},
  "offerings":[{"zone":"eastus-1","capacityType":"on-demand","price":3.6}]},
 {"name":"A100x2","arch":"amd64","capacity":{"cpu":"48","memory":"440Gi","pods":"110"},
  "gpu":{"count":2,"product":"NVIDIA A100 80GB PCIe","architecture":"Ampere","computeCapability":"8.0.0","memoryLeast":"80Gi","memoryMost":"80Gi"},
  "offerings":[{"zone":"eastus-1","capacityType":"on-demand","price":7.3}]}]}`

const gpuClass = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec:
  selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec: {template: {spec: {nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: default}, requirements: []}}}
`

// claimTemplate is a ResourceClaimTemplate with the given device requests.
func claimTemplate(name, requests string) string {
	return fmt.Sprintf("---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: %s, namespace: default}\n"+
		"spec: {spec: {devices: {requests: %s}}}\n", name, requests)
}

// claimingPod is a pod with a claim from a template.
func claimingPod(name, template string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: default, uid: %s}\n"+
		"spec: {resourceClaims: [{name: gpu, resourceClaimTemplateName: %s}], "+
		"containers: [{name: c, image: i, resources: {requests: {cpu: 500m}, claims: [{name: gpu}]}}]}\n", name, name, template)
}

// claimingDeployment is a Deployment of such pods.
func claimingDeployment(name, template string, replicas int) string {
	return fmt.Sprintf("---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s, namespace: default}\n"+
		"spec: {replicas: %d, selector: {matchLabels: {app: %s}}, template: {metadata: {labels: {app: %s}}, "+
		"spec: {resourceClaims: [{name: gpu, resourceClaimTemplateName: %s}], "+
		"containers: [{name: c, image: i, resources: {requests: {cpu: 500m}, claims: [{name: gpu}]}}]}}}\n", name, replicas, name, name, template)
}

// planned states and plans the objects of a file, and checks the plan.
func planned(t *testing.T, text string) (*fleet.Input, *model.Plan) {
	t.Helper()
	manifests, err := Decode(strings.NewReader(text), "test")
	if err != nil {
		t.Fatal(err)
	}
	expanded := Expand(manifests)
	if len(expanded.Problems) > 0 {
		t.Fatal(expanded.Problems)
	}
	return plannedOn(t, FromFiles(expanded.Objects.List()))
}

func plannedOn(t *testing.T, store *fleet.Store) (*fleet.Input, *model.Plan) {
	t.Helper()
	in, err := store.Snapshot().Problem(t.Context(), catalogOf(t, gpuCatalog), fleet.Options{Now: time.Unix(1_700_000_000, 0)})
	if err != nil {
		t.Fatal(err)
	}
	plan := planner.Solve(in.Problem)
	for _, v := range verify.Check(in.Problem, plan) {
		t.Errorf("the plan breaks a rule: %s", v)
	}
	return in, plan
}

func catalogOf(t *testing.T, text string) fixedCatalog {
	t.Helper()
	file, err := ReadCatalog(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := file.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	return fixedCatalog{catalog}
}

// said is what is bought, where pods go that need nothing new, and what is refused.
func said(in *fleet.Input, plan *model.Plan) string {
	var parts []string
	for i := range plan.NewNodes {
		n := &plan.NewNodes[i]
		types := in.Problem.Catalogs[in.Problem.Pools[n.Pool].Catalog].InstanceTypes
		parts = append(parts, fmt.Sprintf("%s for %d", types[n.Best().InstanceType].Name, len(in.Pods(n.Pods))))
	}
	for i := range plan.Placements {
		p := &plan.Placements[i]
		parts = append(parts, fmt.Sprintf("%s takes %d", in.Problem.Nodes[p.Node].Name, len(in.Pods(p.Pods))))
	}
	for _, r := range in.Rejected {
		parts = append(parts, fmt.Sprintf("%s: %s: %s", r.Pod.Name, r.Reason, r.Message))
	}
	for i := range plan.Unschedulable {
		u := &plan.Unschedulable[i]
		parts = append(parts, fmt.Sprintf("%s: %s", in.Problem.Classes[u.Class].Pods[0].Name, u.Reason))
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

const exactly = "{exactly: {deviceClassName: gpu.nvidia.com, %s}}"

// one is the list of one request named a.
func one(rest string) string {
	return "[{name: a, " + strings.TrimPrefix(fmt.Sprintf(exactly, rest), "{") + "]"
}

func where(expression string) string {
	return fmt.Sprintf("selectors: [{cel: {expression: %q}}]", expression)
}

// TestClaimsBuyMachinesWithTheDevices states what is bought for pods with claims from
// templates, and what is said of claims that nap does not plan.
func TestClaimsBuyMachinesWithTheDevices(t *testing.T) {
	const attribute = "device.attributes['gpu.nvidia.com']."
	memory := func(least string) string {
		return where("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('" + least + "')) >= 0")
	}
	for name, c := range map[string]struct{ requests, want string }{
		"one of the class":           {one("count: 1"), "T4x1 for 1"},
		"the count is left out":      {one("allocationMode: ExactCount"), "T4x1 for 1"},
		"three of the class":         {one("count: 3"), "T4x4 for 1"},
		"all of a machine":           {one("allocationMode: All"), "T4x1 for 1"},
		"by product":                 {one(where(attribute + "productName == 'NVIDIA A100 80GB PCIe'")), "A100x1 for 1"},
		"two by product":             {one("count: 2, " + where(attribute+"productName.contains('A100')")), "A100x2 for 1"},
		"by one of several products": {one(where(attribute + "productName in ['H100', 'NVIDIA A100 80GB PCIe']")), "A100x1 for 1"},
		"by version":                 {one(where(attribute + "cudaComputeCapability.isGreaterThan(semver('7.9.0'))")), "A100x1 for 1"},
		"by memory":                  {one(memory("40Gi")), "A100x1 for 1"},
		"by memory of all":           {one(memory("12Gi")), "T4x1 for 1"},
		"two requests":               {"[{name: a, exactly: {deviceClassName: gpu.nvidia.com}}, {name: b, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]", "T4x4 for 1"},
		"the first that there is": {"[{name: a, firstAvailable: [{name: first, deviceClassName: gpu.nvidia.com, " +
			where(attribute+"architecture == 'Blackwell'") + "}, {name: second, deviceClassName: gpu.nvidia.com, " +
			where(attribute+"architecture == 'Ampere'") + "}]}]", "A100x1 for 1"},
		"the rest of alternatives takes as many": {"[{name: a, firstAvailable: [{name: first, deviceClassName: gpu.nvidia.com, " +
			where(attribute+"architecture == 'Ampere'") + "}, {name: second, deviceClassName: gpu.nvidia.com}]}]", "T4x1 for 1"},
		"an alternative that takes more": {"[{name: a, firstAvailable: [{name: first, deviceClassName: gpu.nvidia.com, " +
			where(attribute+"architecture == 'Ampere'") + "}, {name: second, deviceClassName: gpu.nvidia.com, count: 2}]}]", "A100x1 for 1"},

		"too many": {one("count: 9"), "p: ResourceClaims: resource claim \"gpu\": request \"a\": no size that nap knows of brings, " +
			"and no node lists, 9 of DeviceClass gpu.nvidia.com"},
		"no such product": {one(where(attribute + "productName == 'H100'")), "p: ResourceClaims: resource claim \"gpu\": request \"a\": " +
			"no size that nap knows of brings, and no node lists, 1 of DeviceClass gpu.nvidia.com where " + attribute + "productName == 'H100'"},
		"no such class":         {"[{name: a, exactly: {deviceClassName: fpga.example.com}}]", "p: ResourceClaims: resource claim \"gpu\": request \"a\": DeviceClass fpga.example.com does not exist"},
		"administrative access": {one("adminAccess: true"), "p: ResourceClaims: resource claim \"gpu\": request \"a\" asks for administrative access to devices that others have, which nap does not plan"},
		"a part of a device":    {one("capacity: {requests: {memory: 1Gi}}"), "p: ResourceClaims: resource claim \"gpu\": request \"a\" asks for a part of a device's capacity, which nap does not plan"},
	} {
		t.Run(name, func(t *testing.T) {
			in, plan := planned(t, gpuClass+claimTemplate("gpu", c.requests)+claimingPod("p", "gpu"))
			if got := said(in, plan); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// What depends on the driver, or on how the memory is counted, is not known before a machine
// runs: the message says on what.
func TestSelectorsOfUnknownAttributesAreNotPlanned(t *testing.T) {
	for expression, want := range map[string]string{
		"device.attributes['gpu.nvidia.com'].driverVersion.isGreaterThan(semver('570.0.0'))": "no such key: driverVersion",
		"has(device.attributes['gpu.nvidia.com'].migCapable)":                                "whether migCapable is there",
		"'uuid' in device.attributes['gpu.nvidia.com']":                                      "whether something is there",
		"device.attributes['gpu.nvidia.com'].productName.startsWith(":                        "cannot be read",
	} {
		in, plan := planned(t, gpuClass+claimTemplate("gpu", one(where(expression)))+claimingPod("p", "gpu"))
		if got := said(in, plan); !strings.Contains(got, "ResourceClaims") || !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", expression, got, want)
		}
	}
	const tight = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('16Gi')) >= 0"
	in, plan := planned(t, gpuClass+claimTemplate("gpu", one(where(tight)))+claimingPod("p", "gpu"))
	if got := said(in, plan); got != "A100x1 for 1" {
		t.Errorf("a T4 lists 15Gi or 16Gi: got %s, want a machine that has enough in any case", got)
	}
}

// Devices are counted: pods share a machine as far as its GPUs go, and one that takes all
// devices has its machine alone.
func TestDevicesAreCounted(t *testing.T) {
	in, plan := planned(t, gpuClass+claimTemplate("gpu", one("count: 1"))+claimingDeployment("web", "gpu", 5))
	if got := said(in, plan); got != "T4x1 for 1\nT4x1 for 1\nT4x1 for 1\nT4x1 for 1\nT4x1 for 1" {
		t.Errorf("five pods with a GPU each: %s", got)
	}
	in, plan = planned(t, gpuClass+claimTemplate("all", one("allocationMode: All, "+where("device.attributes['gpu.nvidia.com'].architecture == 'Ampere'")))+
		claimTemplate("gpu", one("count: 1, "+where("device.attributes['gpu.nvidia.com'].architecture == 'Ampere'")))+
		claimingPod("a", "all")+claimingPod("b", "gpu"))
	if got := said(in, plan); got != "A100x1 for 1\nA100x1 for 1" {
		t.Errorf("a pod with all devices beside another: %s", got)
	}
}

// gpuNode is a node that lists the devices of a T4x4, of which claims hold the first ones.
func gpuNode(name string, held int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {kubernetes.io/hostname: %s, "+
		"node.kubernetes.io/instance-type: T4x4}}\nstatus: {allocatable: {cpu: '64', memory: 440Gi, pods: '110'}, "+
		"conditions: [{type: Ready, status: 'True'}]}\n", name, name)
	fmt.Fprintf(&b, "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: %s-gpus}\n"+
		"spec:\n  driver: gpu.nvidia.com\n  nodeName: %s\n  pool: {name: %s, generation: 2, resourceSliceCount: 1}\n  devices:\n", name, name, name)
	for i := range 4 {
		fmt.Fprintf(&b, "  - {name: gpu-%d, attributes: {type: {string: gpu}, productName: {string: Tesla T4}, architecture: {string: Turing}, "+
			"driverVersion: {version: 580.126.20}, cudaComputeCapability: {version: 7.5.0}}, capacity: {memory: {value: 16Gi}}}\n", i)
	}
	for i := range held {
		fmt.Fprintf(&b, "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: %s-held-%d, namespace: default}\n"+
			"spec: {devices: {requests: %s}}\n"+
			"status: {allocation: {devices: {results: [{request: a, driver: gpu.nvidia.com, pool: %s, device: gpu-%d}]}, "+
			"nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [%s]}]}]}}}\n",
			name, i, one("count: 1"), name, i, name)
	}
	return b.String()
}

// On nodes that exist the devices count that their drivers list, less those that claims hold;
// all that they list is known.
func TestListedDevicesCount(t *testing.T) {
	gpu := claimTemplate("gpu", one("count: 2"))
	for name, c := range map[string]struct{ text, want string }{
		"free":            {gpuNode("gpus", 0) + gpu + claimingDeployment("web", "gpu", 2), "gpus takes 2"},
		"some held":       {gpuNode("gpus", 1) + gpu + claimingDeployment("web", "gpu", 1), "gpus takes 1"},
		"too few left":    {gpuNode("gpus", 3) + gpu + claimingDeployment("web", "gpu", 1), "T4x4 for 1"},
		"only a new pool": {strings.ReplaceAll(gpuNode("gpus", 0), "resourceSliceCount: 1", "resourceSliceCount: 2") + gpu + claimingDeployment("web", "gpu", 1), "T4x4 for 1"},
		"by what only drivers know": {
			gpuNode("gpus", 0) + claimTemplate("gpu", one(where("device.attributes['gpu.nvidia.com'].driverVersion.isGreaterThan(semver('570.0.0'))"))) +
				claimingDeployment("web", "gpu", 1), "gpus takes 1",
		},
		"a taint": {strings.ReplaceAll(gpuNode("gpus", 0), "capacity: {memory", "taints: [{key: broken, effect: NoSchedule}], capacity: {memory") +
			gpu + claimingDeployment("web", "gpu", 1), "T4x4 for 1"},
	} {
		t.Run(name, func(t *testing.T) {
			in, plan := planned(t, gpuClass+c.text)
			if got := said(in, plan); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// claimUser is a pod that names a ResourceClaim.
func claimUser(name, claim, node string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: default, uid: %s}\n"+
		"spec: {nodeName: '%s', resourceClaims: [{name: gpu, resourceClaimName: %s}], "+
		"containers: [{name: c, image: i, resources: {requests: {cpu: 500m}, claims: [{name: gpu}]}}]}\n", name, name, node, claim)
}

// A claim that is allocated ties its pods to its node, and takes its devices once. One that
// is not is planned for the first of its pods.
func TestSharedClaimsAreAllocatedOnce(t *testing.T) {
	shared := strings.NewReplacer("ClaimTemplate", "Claim", "spec: {spec: {devices: {requests: "+one("count: 2")+"}}}",
		"spec: {devices: {requests: "+one("count: 2")+"}}").Replace(claimTemplate("ours", one("count: 2")))
	for name, c := range map[string]struct{ text, want string }{
		"allocated":         {gpuNode("gpus", 1) + gpuNode("other", 0) + claimUser("a", "gpus-held-0", "gpus") + claimUser("b", "gpus-held-0", ""), "gpus takes 1"},
		"its devices count": {gpuNode("gpus", 1) + claimUser("a", "gpus-held-0", "gpus") + claimTemplate("gpu", one("count: 4")) + claimingPod("b", "gpu"), "T4x4 for 1"},
		"not allocated": {
			shared + claimUser("a", "ours", "") + claimUser("b", "ours", ""),
			"T4x4 for 1\nb: ResourceClaims: resource claim \"gpu\": ResourceClaim ours is shared with pod default/a, " +
				"which is planned first; this pod follows it to its node",
		},
		"one user":   {shared + claimUser("a", "ours", ""), "T4x4 for 1"},
		"no claim":   {claimUser("a", "gone", ""), "a: ResourceClaims: resource claim \"gpu\": ResourceClaim default/gone does not exist, or is being deleted"},
		"no objects": {claimingPod("a", "gone"), "a: ResourceClaims: resource claim \"gpu\": ResourceClaimTemplate default/gone does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			in, plan := planned(t, gpuClass+c.text)
			if got := said(in, plan); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Where resource claims are ignored, as Karpenter does by default, nothing is planned for a
// pod with one, and a DaemonSet with one takes no room on new machines.
func TestIgnoredClaimsAreLeftAlone(t *testing.T) {
	daemon := strings.NewReplacer("kind: Deployment", "kind: DaemonSet", "replicas: 0, ", "", "cpu: 500m", "cpu: 3500m").
		Replace(claimingDeployment("agent", "gpu", 0))
	plain := "---\napiVersion: v1\nkind: Pod\nmetadata: {name: plain, namespace: default}\n" +
		"spec: {containers: [{name: c, image: i, resources: {requests: {cpu: '3'}}}]}\nstatus: {conditions: " +
		"[{type: PodScheduled, status: 'False', reason: Unschedulable}]}\n"
	text := gpuClass + claimTemplate("gpu", one("count: 1")) + daemon + plain +
		claimingPod("p", "gpu") + "status: {conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}\n"
	manifests, err := Decode(strings.NewReader(text), "test")
	if err != nil {
		t.Fatal(err)
	}
	for ignore, want := range map[bool]string{
		true: "D4 for 1\np: ResourceClaims: spec.resourceClaims: nap leaves pods with resource claims alone here (--ignore-dra-requests)",
		// With the DaemonSet beside them neither fits on the small sizes.
		false: "A100x1 for 2",
	} {
		store := fleet.NewStore()
		m := NewMirror(store, Settings{IgnoreClaims: ignore})
		for _, o := range Expand(manifests).Objects.List() {
			m.Apply(o)
		}
		in, plan := plannedOn(t, store)
		if got := said(in, plan); got != want {
			t.Errorf("ignore %v: got  %s\nwant %s", ignore, got, want)
		}
		for _, x := range in.Rejected {
			if !strings.Contains(x.Fix, "--ignore-dra-requests=false") {
				t.Errorf("ignore %v: pod %s is told to do %q", ignore, x.Pod, x.Fix)
			}
		}
	}
}

// A claim on its way has the devices of the sizes that it may become: nothing is bought
// twice for a pod.
func TestClaimOnItsWayHasItsDevices(t *testing.T) {
	store := FromFiles(Expand(manifestsOf(t, gpuClass+claimTemplate("gpu", one("count: 1"))+claimingPod("p", "gpu"))).Objects.List())
	store.Expect(&fleet.Claim{Name: "general-1", Pool: "general", Requirements: model.Requirements{
		{Key: model.LabelInstanceType, Operator: model.In, Values: []string{"T4x1", "A100x1"}},
	}})
	in, plan := plannedOn(t, store)
	if got := said(in, plan); got != "general-1 takes 1" {
		t.Errorf("got %s", got)
	}
}

func manifestsOf(t *testing.T, text string) []Manifest {
	t.Helper()
	manifests, err := Decode(strings.NewReader(text), "test")
	if err != nil {
		t.Fatal(err)
	}
	return manifests
}

// A pod that runs can move with a claim of its own, which is made again; one that shares a
// claim cannot, and its node is told why.
func TestOnlyOwnClaimsMove(t *testing.T) {
	text := gpuClass + gpuNode("gpus", 2) + claimTemplate("gpu", one("count: 1")) + claimUser("shares", "gpus-held-1", "gpus") +
		strings.Replace(claimingPod("moves", "gpu"), "spec: {", "status: {resourceClaimStatuses: [{name: gpu, resourceClaimName: gpus-held-0}]}\nspec: {nodeName: gpus, ", 1)
	store := fleet.NewStore()
	m := NewMirror(store, Settings{EveryPod: true})
	for _, o := range Expand(manifestsOf(t, text)).Objects.List() {
		if c, is := o.(*resourcev1.ResourceClaim); is && c.Name == "gpus-held-0" {
			o = ownedByPod(c, "moves")
		}
		m.Apply(o)
	}
	in, err := store.Snapshot().Disruption(t.Context(), catalogOf(t, gpuCatalog), fleet.DisruptionOptions{Unclaimed: true})
	if err != nil {
		t.Fatal(err)
	}
	usage := in.Disruption.Usages[0]
	if pods := in.Movable(usage.Pods); len(pods) != 1 || pods[0].Name != "moves" {
		t.Errorf("movable are %v", pods)
	}
	if held := usage.DoNotDisruptPods; len(held) != 1 || held[0].Pod.Name != "shares" || !strings.Contains(held[0].Why, "ResourceClaim gpus-held-1") {
		t.Errorf("what keeps the node: %+v", held)
	}
	p := in.Problem
	axis := p.Axes.Index(model.DeviceAxis("gpu.nvidia.com"))
	if axis < 0 || p.Nodes[0].Allocatable[axis] != 4 || p.Nodes[0].Used[axis] != 2 || in.Disruption.Movable[0].Requests[axis] != 1 {
		t.Errorf("axes %v, node has %v, uses %v; the pod takes %v", p.Axes, p.Nodes[0].Allocatable, p.Nodes[0].Used, in.Disruption.Movable[0].Requests)
	}
}

func ownedByPod(c *resourcev1.ResourceClaim, uid string) *resourcev1.ResourceClaim {
	out := c.DeepCopy()
	controller := true
	out.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: uid, UID: types.UID(uid), Controller: &controller}}
	return out
}

// A DeviceClass may have its devices asked for as an extended resource (Kubernetes 1.36),
// which no kubelet reports then: a node of a size with such devices has them all the same,
// and is not waited for until it says so.
func TestExtendedResourceThatADriverBrings(t *testing.T) {
	const node = `
apiVersion: v1
kind: Node
metadata:
  name: a
  labels: {karpenter.sh/nodepool: general, karpenter.sh/registered: "true", karpenter.sh/initialized: "true"}
spec: {providerID: "azure:///a"}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: general-1, labels: {karpenter.sh/nodepool: general}}
spec: {requirements: [], nodeClassRef: {group: g, kind: K, name: nc}}
status: {providerID: "azure:///a", allocatable: {cpu: "4", example.com/gpu: "2"}, capacity: {cpu: "4", example.com/gpu: "2"}}
---
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: default}
spec: {containers: [{name: a, resources: {requests: {example.com/gpu: "1"}}}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: "true"}}]EXTENDED}
`
	for extended, want := range map[string]int64{"": 0, ", extendedResourceName: example.com/gpu": 2} {
		in, err := stored(t, strings.ReplaceAll(node, "EXTENDED", extended)).Problem(t.Context(), small(t), fleet.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := in.Problem
		axis := p.Axes.Index("example.com/gpu")
		if axis < 0 || len(p.Nodes) != 1 || p.Nodes[0].Allocatable[axis] != want {
			t.Errorf("%q: axes %v, nodes %+v, want %d devices", extended, p.Axes, p.Nodes, want)
		}
		if got := slices.Contains(p.ByDriver, "example.com/gpu"); got != (want > 0) {
			t.Errorf("%q: by drivers come %v", extended, p.ByDriver)
		}
	}
}
