package tight

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/bench/workload"
	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/controller/cloudprovider"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/karpenterengine"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

const (
	pods = 3000
	// rounds is how often an engine may plan again for what was refused.
	rounds = 10
	// ample families have all that the pods could need.
	ample = 100_000
)

// wish is a machine that an engine wants to buy for some pods.
type wish struct {
	requirements model.Requirements
	requests     model.Resources
	pods         []types.NamespacedName
	// size is what the engine counts on.
	size string
}

// engine plans for pods with what the provider sells at the moment.
type engine func(t *testing.T, w *world, objects []client.Object) []wish

// world is a subscription with a provider.
type world struct {
	provider *azure.Provider
	port     *cloudprovider.Port
	pool     *karpv1.NodePool
	class    *nodeclass.NodeClass
	first    *firstAnswers
}

// firstAnswers remembers Azure's answer to the first request for each machine.
type firstAnswers struct {
	http.RoundTripper
	mu       sync.Mutex
	sold     map[string]bool
	requests int
}

func (f *firstAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := f.RoundTripper.RoundTrip(r)
	_, name, machine := strings.Cut(strings.ToLower(r.URL.Path), "/virtualmachines/")
	if err == nil && machine && r.Method == http.MethodPut && !strings.Contains(name, "/") {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.requests++
		if _, asked := f.sold[name]; !asked {
			f.sold[name] = answer.StatusCode < 300
		}
	}
	return answer, err
}

// outcome is what came of an engine in a subscription.
type outcome struct {
	launches, atFirst, asPlanned, requests, rounds, nodes, left int
	cost                                                        float64
	families                                                    map[string]int64 // vCPUs
}

// run lets an engine buy for all pods in a subscription with these quotas.
func run(t *testing.T, plan engine, quotas map[string]int64) outcome {
	t.Helper()
	out := outcome{families: map[string]int64{}}
	in := input(t)
	w := newWorld(t, in, quotas)
	waiting := in.Objects
	for out.rounds < rounds {
		if err := w.provider.RefreshQuota(t.Context()); err != nil {
			t.Fatal(err)
		}
		wishes := plan(t, w, waiting)
		if len(wishes) == 0 {
			break
		}
		out.rounds++
		waiting = w.buy(t, wishes, waiting, &out)
	}
	for _, o := range waiting {
		if _, is := o.(*corev1.Pod); is {
			out.left++
		}
	}
	w.first.mu.Lock()
	defer w.first.mu.Unlock()
	for _, sold := range w.first.sold {
		if sold {
			out.atFirst++
		}
	}
	out.requests = w.first.requests
	return out
}

// buy launches every wish at once and returns the objects without the pods that
// have got a machine.
func (w *world) buy(t *testing.T, wishes []wish, objects []client.Object, out *outcome) []client.Object {
	t.Helper()
	got := make([]string, len(wishes))
	var wg sync.WaitGroup
	for i := range wishes {
		wg.Go(func() {
			m, err := w.provider.Launch(t.Context(), azure.Order{
				Claim: fmt.Sprintf("tight-%d-%03d", out.rounds, i), Pool: w.pool.Name, Class: w.class,
				Requirements: wishes[i].requirements, Requests: wishes[i].requests,
			})
			if err == nil {
				got[i] = m.Size
			} else if _, refused := errors.AsType[*unavailable.Failure](err); !refused {
				t.Errorf("launch %d of round %d failed without Azure having refused it: %v", i, out.rounds, err)
			}
		})
	}
	wg.Wait()
	placed := map[types.NamespacedName]bool{}
	built := w.provider.Catalog(w.class)
	for i, size := range got {
		out.launches++
		if size == "" {
			continue
		}
		out.nodes++
		if size == wishes[i].size {
			out.asPlanned++
		}
		for _, p := range wishes[i].pods {
			placed[p] = true
		}
		sku, _ := built.SKU(size)
		out.families[sku.Family] += sku.VCPUs
		for _, it := range built.Catalog.InstanceTypes {
			if it.Name == size {
				out.cost += it.Offerings[0].Price.Dollars()
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(objects), func(o client.Object) bool { return placed[client.ObjectKeyFromObject(o)] })
}

func input(t *testing.T) *workload.Input {
	t.Helper()
	chosen, err := workload.Select("^W2/DEF$")
	if err != nil {
		t.Fatal(err)
	}
	in, err := chosen[0].Build(pods)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func newWorld(t *testing.T, in *workload.Input, quotas map[string]int64) *world {
	t.Helper()
	env := armtest.New(t, armtest.Realistic, func(c *armsim.Config) { c.Quota, c.TimeScale = quotas, 50 })
	w := &world{first: &firstAnswers{RoundTripper: env.HTTP.Transport, sold: map[string]bool{}}}
	config := config.Config{
		ClusterName: env.ClusterName, ClusterEndpoint: "https://cluster.test:443", ClusterCA: armtest.Certificate(),
		BootstrapToken: jointoken.New("abcdef.0123456789abcdef"), DNSServiceIP: "10.0.0.10",
		KubeletIdentityClientID: "0b1f6471-0000-4000-8000-0000000000ce",
		SubscriptionID:          env.SubscriptionID, Location: env.Region, NodeResourceGroup: env.NodeResourceGroup, VNETSubnetID: env.SubnetID,
		NetworkPlugin: "azure", NetworkPluginMode: "overlay", VMMemoryOverhead: 0.075, LaunchSettle: 10 * time.Second,
		Cloud: config.Cloud{TenantID: env.TenantID, Environment: &config.Environment{
			ResourceManagerEndpoint: armtest.Endpoint, ActiveDirectoryEndpoint: armtest.Endpoint, Document: []byte("{}"),
		}},
	}
	var err error
	w.provider, err = azure.New(t.Context(), config, azure.Deps{Credential: env.Credential, Transport: &http.Client{Transport: w.first}})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range in.Objects {
		if p, is := o.(*karpv1.NodePool); is {
			w.pool = p
		}
	}
	class := &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: w.pool.Spec.Template.Spec.NodeClassRef.Name}}
	value := cloudprovider.ClassValue(class)
	value.KubernetesVersion = "1.35.1"
	if value.Images, err = w.provider.ResolveImages(t.Context(), &value, value.KubernetesVersion); err != nil {
		t.Fatal(err)
	}
	w.class = &value
	if err := v1beta1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	w.port = cloudprovider.New(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(class,
		w.pool.DeepCopy()).Build(), nil, w.provider)

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.provider.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return w
}

// ours plans as the controller does with engine nap.
func ours(t *testing.T, w *world, objects []client.Object) []wish {
	t.Helper()
	in, err := kube.FromFiles(objects).Snapshot().Problem(t.Context(), w, fleet.Options{Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	in.Problem.Policy.Budget = 250 * time.Millisecond // counted in steps, not by a clock
	plan := planner.Solve(in.Problem)
	var out []wish
	for i := range plan.NewNodes {
		n := &plan.NewNodes[i]
		var sizes, zones, capacityTypes []string
		all := in.Problem.Catalogs[in.Problem.Pools[n.Pool].Catalog].InstanceTypes
		for _, ref := range n.Offerings {
			o := &all[ref.InstanceType].Offerings[ref.Offering]
			sizes, zones, capacityTypes = append(sizes, all[ref.InstanceType].Name),
				append(zones, o.Zone), append(capacityTypes, string(o.CapacityType))
		}
		best := sizes[0]
		wanted := wish{size: best, requests: n.Requests.Add(n.Daemons), requirements: append(slices.Clone(n.Requirements),
			one(model.LabelInstanceType, sizes), one(model.LabelZone, zones), one(model.LabelCapacityType, capacityTypes))}
		for _, p := range in.Pods(n.Pods) {
			wanted.pods = append(wanted.pods, types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
		}
		out = append(out, wanted)
	}
	return out
}

func one(key string, values []string) model.Requirement {
	slices.Sort(values)
	return model.Requirement{Key: key, Operator: model.In, Values: slices.Compact(values)}
}

// Catalog implements fleet.Catalogs.
func (w *world) Catalog(context.Context, string) (*fleet.Catalog, error) {
	types := w.provider.Catalog(w.class).Catalog.InstanceTypes
	return &fleet.Catalog{Axes: instancetype.Axes(), InstanceTypes: types, Quotas: w.provider.Supply().Quotas()}, nil
}

// theirs plans as Karpenter's provisioner does. Its NodeClaims leave the size to
// the provider, among all that meet the NodePool's requirements and hold the pods.
func theirs(t *testing.T, w *world, objects []client.Object) []wish {
	t.Helper()
	sold, err := w.port.GetInstanceTypes(t.Context(), w.pool)
	if err != nil {
		t.Fatal(err)
	}
	requests := map[types.NamespacedName]model.Resources{}
	for _, o := range objects {
		if p, is := o.(*corev1.Pod); is {
			requests[client.ObjectKeyFromObject(p)] = requestsOf(p)
		}
	}
	s, err := karpenterengine.New(t.Context(), &workload.Input{Objects: objects, InstanceTypes: available(sold)}, karpenterengine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.Solve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []wish
	for _, n := range result.Nodes {
		wanted := wish{size: n.InstanceType, requests: make(model.Resources, len(instancetype.Axes())), pods: n.Pods}
		for _, r := range w.pool.Spec.Template.Spec.Requirements {
			wanted.requirements = append(wanted.requirements, model.Requirement{Key: r.Key, Operator: model.Operator(r.Operator), Values: r.Values})
		}
		if zone := n.Labels[model.LabelZone]; zone != "" {
			wanted.requirements = append(wanted.requirements, one(model.LabelZone, []string{zone}))
		}
		for _, p := range n.Pods {
			wanted.requests = wanted.requests.Add(requests[p])
		}
		out = append(out, wanted)
	}
	return out
}

// available leaves out sizes without any offering, which only cost Karpenter time.
func available(all []*karpcloud.InstanceType) []*karpcloud.InstanceType {
	return slices.DeleteFunc(slices.Clone(all), func(t *karpcloud.InstanceType) bool { return len(t.Offerings.Available()) == 0 })
}

func requestsOf(p *corev1.Pod) model.Resources {
	out := make(model.Resources, len(instancetype.Axes()))
	out[model.Pods] = 1
	for _, c := range p.Spec.Containers {
		out[model.CPU] += c.Resources.Requests.Cpu().MilliValue()
		out[model.Memory] += c.Resources.Requests.Memory().Value()
	}
	return out
}

func (o outcome) String() string {
	return fmt.Sprintf("%d of %d launches sold at the first asking (%.1f %%), %d as planned; %d requests for %d "+
		"machines, %d rounds, $%.2f/h, %d pods without a place",
		o.atFirst, o.launches, 100*float64(o.atFirst)/float64(o.launches), o.asPlanned, o.requests, o.nodes, o.rounds, o.cost, o.left)
}

func TestTightQuotaLaunchesSucceedAtFirstAttempt(t *testing.T) {
	cloudprovider.RegisterLabels()
	free := run(t, ours, nil)
	t.Logf("without limits, nap: %s", free)

	quotas := map[string]int64{"cores": ample, "lowPriorityCores": ample}
	for _, it := range families(t) {
		quotas[it] = free.families[it] / 5
	}
	for _, f := range []string{"standardEASv4Family", "standardDSv3Family", "standardESv3Family"} {
		if _, exists := quotas[f]; !exists || free.families[f] != 0 {
			t.Fatalf("family %s is to be ample, but the unbounded plan takes %d vCPUs of it (exists: %t)", f, free.families[f], exists)
		}
		quotas[f] = ample
	}
	t.Logf("the unbounded plan takes vCPUs %v; a fifth of each is left", free.families)
	nap := run(t, ours, quotas)
	t.Logf("tight, nap:       %s", nap)
	karpenter := run(t, theirs, quotas)
	t.Logf("tight, Karpenter: %s", karpenter)
	if nap.left > 0 || 100*nap.atFirst < 99*nap.launches {
		t.Errorf("nap: %s; want at least 99 %% at the first asking and no pod left", nap)
	}
}

// families are those of all sizes of the region.
func families(t *testing.T) []string {
	t.Helper()
	var out []string
	w := newWorld(t, input(t), nil)
	built := w.provider.Catalog(w.class)
	for _, it := range built.Catalog.InstanceTypes {
		if sku, ok := built.SKU(it.Name); ok {
			out = append(out, sku.Family)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
