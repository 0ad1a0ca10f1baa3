package kube

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// allocator is the scheduler's own, over the devices that nodes list.
type allocator struct {
	classes map[string]*resourcev1.DeviceClass
	slices  []*resourcev1.ResourceSlice
	taken   sets.Set[structured.DeviceID]
	cache   *cel.Cache
}

func (a *allocator) List() ([]*resourcev1.DeviceClass, error) { return nil, nil }

func (a *allocator) Get(name string) (*resourcev1.DeviceClass, error) {
	if c := a.classes[name]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("no DeviceClass %s", name)
}

// allocates gives a claim devices of a node, and reports whether there are some.
func (a *allocator) allocates(t *testing.T, node string, claim *resourcev1.ResourceClaim) bool {
	t.Helper()
	state := structured.AllocatedState{
		AllocatedDevices: a.taken, AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity: structured.NewConsumedCapacityCollection(),
	}
	of, err := structured.NewAllocator(t.Context(), structured.Features{PrioritizedList: true}, state, a, a.slices, a.cache)
	if err != nil {
		t.Fatal(err)
	}
	results, err := of.Allocate(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, []*resourcev1.ResourceClaim{claim})
	if err != nil || len(results) == 0 {
		return false
	}
	for _, r := range results[0].Devices.Results {
		a.taken.Insert(structured.MakeDeviceID(r.Driver, r.Pool, r.Device))
	}
	return true
}

// listing is the slice that NVIDIA's driver would publish for a machine of a type.
func listing(node string, gpu *model.GPU) *resourcev1.ResourceSlice {
	out := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.nvidia.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
	}}
	for i := range gpu.Count {
		out.Spec.Devices = append(out.Spec.Devices, resourcev1.Device{
			Name: fmt.Sprint("gpu-", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"type": {StringValue: new("gpu")}, "uuid": {StringValue: new(fmt.Sprint("GPU-", node, i))},
				"brand": {StringValue: new("Nvidia")}, "productName": {StringValue: &gpu.Product}, "architecture": {StringValue: &gpu.Architecture},
				"cudaComputeCapability": {VersionValue: &gpu.ComputeCapability}, "driverVersion": {VersionValue: new("580.126.9")},
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
				"memory": {Value: *resource.NewQuantity(gpu.MemoryLeast, resource.BinarySI)},
			},
		})
	}
	return out
}

// anyRequest is a request of one kind or another.
func anyRequest(r *rand.Rand) string {
	selectors := []string{
		"", "", where("device.attributes['gpu.nvidia.com'].architecture == 'Ampere'"), where("device.attributes['gpu.nvidia.com'].architecture == 'Turing'"),
		where("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('20Gi')) > 0"),
		where("device.attributes['gpu.nvidia.com'].cudaComputeCapability.isGreaterThan(semver('7.0.0'))"),
	}
	option := func(name string) string {
		parts := []string{"deviceClassName: gpu.nvidia.com"}
		if name != "" {
			parts = append(parts, "name: "+name)
		}
		if s := selectors[r.IntN(len(selectors))]; s != "" {
			parts = append(parts, s)
		}
		if name != "second" && r.IntN(5) == 0 {
			parts = append(parts, "allocationMode: All")
		} else {
			parts = append(parts, fmt.Sprint("count: ", 1+r.IntN(3)))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	if r.IntN(3) == 0 {
		return "[{name: a, firstAvailable: [" + option("first") + ", " + option("second") + "]}]"
	}
	if r.IntN(4) == 0 {
		return "[{name: a, exactly: " + option("") + "}, {name: b, exactly: " + option("") + "}]"
	}
	return "[{name: a, exactly: " + option("") + "}]"
}

// TestSchedulersAllocatorGrantsWhatIsPlanned plans pods with random claims onto nodes with
// devices and new machines, and has the scheduler's allocator give each pod the devices of
// the place where the plan put it. What the plan leaves out no single machine has.
func TestSchedulersAllocatorGrantsWhatIsPlanned(t *testing.T) {
	catalog := catalogOf(t, gpuCatalog).catalog
	gpus := map[string]*model.GPU{}
	for i := range catalog.InstanceTypes {
		if gpu := catalog.InstanceTypes[i].GPU; gpu != nil {
			gpus[catalog.InstanceTypes[i].Name] = gpu
		}
	}
	granted, refused := 0, 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 1))
		text := gpuClass + gpuNode("gpus", r.IntN(4))
		for i := range 3 {
			name := fmt.Sprint("t", i)
			text += claimTemplate(name, anyRequest(r)) + claimingDeployment(name, name, 1+r.IntN(3))
		}
		expanded := Expand(manifestsOf(t, text))
		in, plan := plannedOn(t, FromFiles(expanded.Objects.List()))
		a, templates := allocatorOf(expanded.Objects.List())
		grant := func(node string, pods []model.PodRef) {
			for _, pod := range pods {
				if !a.allocates(t, node, claimFor(in, templates, pod)) {
					t.Fatalf("seed %d: the scheduler finds no devices for %s on %s, where it is planned:\n%s\n%s", seed, pod, node, said(in, plan), text)
				}
				granted++
			}
		}
		for i := range plan.Placements {
			grant(in.Problem.Nodes[plan.Placements[i].Node].Name, in.Pods(plan.Placements[i].Pods))
		}
		for i := range plan.NewNodes {
			n := &plan.NewNodes[i]
			for j, offer := range n.Offerings { // whichever Azure sells
				node := fmt.Sprintf("new-%d-%d", i, j)
				size := in.Problem.Catalogs[in.Problem.Pools[n.Pool].Catalog].InstanceTypes[offer.InstanceType].Name
				if gpus[size] == nil {
					t.Fatalf("seed %d: %s has no GPU", seed, size)
				}
				a.slices = append(a.slices, listing(node, gpus[size]))
				grant(node, in.Pods(n.Pods))
			}
		}
		for _, rejected := range in.Rejected {
			for size, gpu := range gpus {
				alone := &allocator{classes: a.classes, slices: []*resourcev1.ResourceSlice{listing(size, gpu)}, taken: sets.New[structured.DeviceID](), cache: a.cache}
				if alone.allocates(t, size, claimFor(in, templates, rejected.Pod)) {
					t.Errorf("seed %d: %s would do for %s, of which it is said: %s", seed, size, rejected.Pod, rejected.Message)
				}
			}
			refused++
		}
	}
	if granted < 300 || refused < 20 {
		t.Errorf("the scheduler was asked about %d pods that are planned and %d that are not: too few", granted, refused)
	}
}

// allocatorOf is the allocator with the DeviceClasses, slices and allocations of objects, and
// their templates.
func allocatorOf(objects []client.Object) (*allocator, map[string]*resourcev1.ResourceClaimTemplate) {
	a := &allocator{
		classes: map[string]*resourcev1.DeviceClass{}, taken: sets.New[structured.DeviceID](), cache: cel.NewCache(100, cel.Features{}),
	}
	templates := map[string]*resourcev1.ResourceClaimTemplate{}
	for _, o := range objects {
		switch o := o.(type) {
		case *resourcev1.DeviceClass:
			a.classes[o.Name] = o
		case *resourcev1.ResourceSlice:
			a.slices = append(a.slices, o)
		case *resourcev1.ResourceClaimTemplate:
			templates[o.Name] = o
		case *resourcev1.ResourceClaim:
			for _, r := range o.Status.Allocation.Devices.Results {
				a.taken.Insert(structured.MakeDeviceID(r.Driver, r.Pool, r.Device))
			}
		}
	}
	return a, templates
}

// claimFor is the claim that a pod would get from its template, with the defaults of the API.
func claimFor(in *fleet.Input, templates map[string]*resourcev1.ResourceClaimTemplate, pod model.PodRef) *resourcev1.ResourceClaim {
	template := templates[in.Record(pod).Spec.DeviceClaims[0].Template]
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}, Spec: *template.Spec.Spec.DeepCopy()}
	for i := range claim.Spec.Devices.Requests {
		r := &claim.Spec.Devices.Requests[i]
		if r.Exactly != nil && r.Exactly.AllocationMode == "" {
			r.Exactly.AllocationMode = resourcev1.DeviceAllocationModeExactCount
		}
		for j := range r.FirstAvailable {
			if r.FirstAvailable[j].AllocationMode == "" {
				r.FirstAvailable[j].AllocationMode = resourcev1.DeviceAllocationModeExactCount
			}
		}
	}
	return claim
}
