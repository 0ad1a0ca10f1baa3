package provisioning

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/controller/metrics/metricstest"
	"github.com/nodeautoprovision/nap/internal/controller/purchasebackoff"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

// world is an API server, a loop with the real planner, and everything that the
// loop tells others. The mirror sees the API server only when sync is called, so
// that tests decide how far it lags.
type world struct {
	// registry has the metrics of the present process.
	registry *prometheus.Registry
	t        *testing.T
	ctx      context.Context
	kube     client.Client
	mirror   *testMirror
	loop     *Loop
	cluster  *toldCluster
	recorder *toldEvents
	// solve plans; it is the real planner unless a test sets it.
	solve func(*model.Problem) *model.Plan
	// beforeApply is called between planning and applying.
	beforeApply func()
	onCreate    func(ctx context.Context, c client.WithWatch, o client.Object) error
	// onStatusPatch may refuse that the status of an object is patched.
	onStatusPatch func(o client.Object) error
	settings      Settings
	// registrations are those of the present process.
	registrations *purchasebackoff.Registrations
	// managers are the field managers that wrote the status of pods.
	managers map[types.UID]string
	mu, idMu sync.Mutex
	ids      int
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	if err := v1beta1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, ctx: log.IntoContext(t.Context(), testr.New(t)), recorder: &toldEvents{}, solve: planner.Solve, managers: map[types.UID]string{},
	}
	w.kube = fake.NewClientBuilder().
		WithScheme(scheme.Scheme).
		WithObjects(objects...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string,
				o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				if w.onStatusPatch != nil {
					if err := w.onStatusPatch(o); err != nil {
						return err
					}
				}
				written := client.SubResourcePatchOptions{}
				written.ApplyOptions(opts)
				w.written(o.GetUID(), written.FieldManager)
				return c.SubResource(sub).Patch(ctx, o, patch, opts...)
			},
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if w.onCreate != nil {
					// Claims are created in parallel; tests need not know.
					w.mu.Lock()
					defer w.mu.Unlock()
					return w.onCreate(ctx, c, o)
				}
				return c.Create(ctx, o, opts...)
			},
		}).Build()
	w.restart()
	return w
}

// restart replaces everything that lives in the process, as a crash does, and
// lets the mirror see the cluster.
func (w *world) restart() {
	store := fleet.NewStore()
	w.mirror = &testMirror{Store: store, feed: kube.NewMirror(store, kube.Settings{})}
	w.cluster = &toldCluster{leaving: map[string]bool{}}
	w.registry = prometheus.NewRegistry()
	numbers, err := metrics.NewProvisioning(w.registry)
	if err != nil {
		w.t.Fatal(err)
	}
	w.registrations = purchasebackoff.NewRegistrations(clock.RealClock{})
	purchases := purchasebackoff.NewPurchases(clock.RealClock{})
	w.loop = NewLoop(Config{
		Clients:  Clients{Cached: w.kube, Live: ownedFields{w.kube, w}},
		Mirror:   w.mirror,
		Catalogs: purchases.Sizes.Over(testCatalogs{}),
		Solve: func(p *model.Problem) *model.Plan {
			plan := w.solve(p)
			if w.beforeApply != nil {
				w.beforeApply()
			}
			return plan
		},
		Purchases: purchases, Registrations: w.registrations,
		Cluster: w.cluster, Recorder: w.recorder, Metrics: numbers, Clock: clock.RealClock{},
		NewID: w.newID, Settings: w.settings,
	})
	w.sync()
}

// ownedFields is the API server as it is read past the caches: with the managers
// of fields, which the fake client does not keep.
type ownedFields struct {
	client.Reader
	w *world
}

func (o ownedFields) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := o.Reader.List(ctx, list, opts...)
	if pods, is := list.(*corev1.PodList); is {
		for i := range pods.Items {
			if by := o.w.managers[pods.Items[i].UID]; by != "" {
				pods.Items[i].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: by, Subresource: "status"}}
			}
		}
	}
	return err
}

func (w *world) written(uid types.UID, by string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.managers[uid] = by
}

// newID counts. The loop asks for names from several goroutines.
func (w *world) newID(n int) string {
	w.idMu.Lock()
	defer w.idMu.Unlock()
	w.ids++
	return fmt.Sprintf("%0*d", n, w.ids)
}

// sync lets the mirror see the API server as it is now.
func (w *world) sync() {
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &corev1.NodeList{}, &karpv1.NodePoolList{}, &karpv1.NodeClaimList{},
		&appsv1.ReplicaSetList{}, &appsv1.StatefulSetList{}, &batchv1.JobList{}, &corev1.ResourceQuotaList{}, &corev1.NamespaceList{},
	} {
		if err := w.kube.List(w.ctx, list); err != nil {
			w.t.Fatal(err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			w.mirror.feed.Apply(o.(client.Object))
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// plan runs the rounds of one batch.
func (w *world) plan() {
	w.t.Helper()
	for n := 1; n <= maxRounds; n++ {
		again, err := w.loop.round(w.ctx, n)
		if err != nil {
			w.t.Fatal(err)
		}
		if !again {
			return
		}
	}
}

func (w *world) claims() []karpv1.NodeClaim {
	w.t.Helper()
	var list karpv1.NodeClaimList
	if err := w.kube.List(w.ctx, &list); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

func (w *world) wantClaims(n int) {
	w.t.Helper()
	if got := w.claims(); len(got) != n {
		var names []string
		for _, c := range got {
			names = append(names, c.Name)
		}
		w.t.Fatalf("got %d NodeClaims %v, want %d", len(got), names, n)
	}
}

func (w *world) update(key types.NamespacedName, o client.Object, change func()) {
	w.t.Helper()
	if err := w.kube.Get(w.ctx, key, o); err != nil {
		w.t.Fatal(err)
	}
	change()
	if err := w.kube.Update(w.ctx, o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) delete(o client.Object) {
	w.t.Helper()
	if err := w.kube.Delete(w.ctx, o); err != nil {
		w.t.Fatal(err)
	}
}

// deleteClaim deletes a NodeClaim to the end, as Karpenter's lifecycle controller does where
// there is no machine.
func (w *world) deleteClaim(claim *karpv1.NodeClaim) {
	w.t.Helper()
	w.delete(claim)
	going := &karpv1.NodeClaim{}
	w.update(client.ObjectKeyFromObject(claim), going, func() { going.Finalizers = nil })
}

type testMirror struct {
	*fleet.Store
	feed *kube.Mirror
}

func (m *testMirror) Expect(c *karpv1.NodeClaim) { m.Store.Expect(m.feed.Claim(c)) }

// testCatalogs sells machines of 2, 4 and 8 cores in two zones, on demand and, at half the price,
// spot. The larger ones are cheaper per core.
type testCatalogs struct{}

func (testCatalogs) Catalog(context.Context, string) (*fleet.Catalog, error) {
	c := &fleet.Catalog{Axes: model.NewAxes()}
	for cores := int64(2); cores <= 8; cores *= 2 {
		it := model.InstanceType{
			Name:     fmt.Sprintf("Standard_D%ds_v5", cores),
			Labels:   map[string]string{"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"},
			Capacity: model.Resources{cores * 1000, cores * 4 << 30, 128e9, 110},
			Overhead: model.Resources{100, 1 << 30, 10e9, 0},
		}
		for _, zone := range []string{"eastus-1", "eastus-2"} {
			for _, capacity := range []model.CapacityType{model.OnDemand, model.Spot} {
				price := 0.02 + float64(cores)*0.04
				if capacity == model.Spot {
					price /= 2
				}
				it.Offerings = append(it.Offerings, model.Offering{Zone: zone, CapacityType: capacity, Price: model.USD(price), Available: true})
			}
		}
		c.InstanceTypes = append(c.InstanceTypes, it)
	}
	return c, nil
}

// toldCluster remembers what the loop tells Karpenter's mirror.
type toldCluster struct {
	mu                                 sync.Mutex
	acked, updated, deleted, nominated []string
	failed                             map[string]string
	byClaim                            map[string]int
	leaving                            map[string]bool
}

func (c *toldCluster) AckPods(pods ...*corev1.Pod) {
	for _, p := range pods {
		c.acked = append(c.acked, p.Name)
	}
}

func (c *toldCluster) MarkPodSchedulingDecisions(_ context.Context, failed map[*corev1.Pod]error, _, _ map[string][]*corev1.Pod) {
	c.failed = map[string]string{}
	for p, err := range failed {
		c.failed[p.Name] = err.Error()
	}
}

func (c *toldCluster) UpdatePodToNodeClaimMapping(byClaim map[string][]*corev1.Pod) {
	c.byClaim = map[string]int{}
	for name, pods := range byClaim {
		c.byClaim[name] = len(pods)
	}
}
func (c *toldCluster) UpdateNodeClaim(claim *karpv1.NodeClaim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updated = append(c.updated, claim.Name)
}
func (c *toldCluster) DeleteNodeClaim(name string) { c.deleted = append(c.deleted, name) }
func (c *toldCluster) NominateNodeForPod(_ context.Context, id string) {
	c.nominated = append(c.nominated, id)
}
func (c *toldCluster) Leaving() map[string]bool { return c.leaving }

// toldEvents remembers events as "Type Reason name: message". Several goroutines may tell
// them.
type toldEvents struct {
	mu    sync.Mutex
	lines []string
}

func (r *toldEvents) Publish(evts ...events.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range evts {
		o := e.InvolvedObject.(client.Object)
		r.lines = append(r.lines, fmt.Sprintf("%s %s %s: %s", e.Type, e.Reason, o.GetName(), e.Message))
	}
}

// all are the events so far, in their order.
func (r *toldEvents) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

func (r *toldEvents) of(reason string) []string {
	var out []string
	for _, line := range r.all() {
		if strings.Contains(line, " "+reason+" ") {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out
}

// waitingPods are pods that the scheduler found no place for.
func waitingPods(n int, cpu string) []client.Object {
	var out []client.Object
	for i := range n {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("web-%02d", i), UID: types.UID(fmt.Sprintf("pod-%d", i))},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "app",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("1Gi"),
				}},
			}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending},
		}
		unschedulable(pod)
		out = append(out, pod)
	}
	return out
}

// join makes a claim a node that is ready for pods.
func (w *world) join(claim karpv1.NodeClaim, cores string) *corev1.Node {
	w.t.Helper()
	node := readyNode("node-" + claim.Name)
	size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cores),
		corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("110")}
	node.Status.Capacity, node.Status.Allocatable = size, size
	for k, v := range map[string]string{
		karpv1.NodePoolLabelKey: "general", karpv1.NodeRegisteredLabelKey: "true", karpv1.NodeInitializedLabelKey: "true",
		corev1.LabelInstanceTypeStable: "Standard_D4s_v5", corev1.LabelTopologyZone: "eastus-1", karpv1.CapacityTypeLabelKey: "spot",
	} {
		node.Labels[k] = v
	}
	if err := w.kube.Create(w.ctx, node); err != nil {
		w.t.Fatal(err)
	}
	now := &karpv1.NodeClaim{}
	w.update(types.NamespacedName{Name: claim.Name}, now, func() {
		now.Status = karpv1.NodeClaimStatus{ProviderID: node.Spec.ProviderID, NodeName: node.Name, Capacity: size, Allocatable: size}
	})
	return node
}

func (w *world) bind(pod, node string) {
	w.t.Helper()
	p := &corev1.Pod{}
	w.update(types.NamespacedName{Namespace: "default", Name: pod}, p, func() { p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning })
}

func nodePool(change ...func(*karpv1.NodePool)) *karpv1.NodePool {
	np := &karpv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "pool", Generation: 1},
		Spec: karpv1.NodePoolSpec{Template: karpv1.NodeClaimTemplate{
			ObjectMeta: karpv1.ObjectMeta{Labels: map[string]string{"team": "web"}, Annotations: map[string]string{"example.com/note": "kept"}},
			Spec: karpv1.NodeClaimTemplateSpec{
				NodeClassRef: &karpv1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"},
				Requirements: []karpv1.NodeSelectorRequirementWithMinValues{
					{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"spot", "on-demand"}},
					{Key: "tier", Operator: corev1.NodeSelectorOpIn, Values: []string{"silver", "gold"}},
				},
			},
		}},
	}
	np.StatusConditions().SetTrue(karpv1.ConditionTypeValidationSucceeded)
	np.StatusConditions().SetTrue(karpv1.ConditionTypeNodeClassReady)
	for _, c := range change {
		c(np)
	}
	return np
}

// forgetGone lets the mirror see that pods and pools are gone.
func (w *world) forgetGone() {
	for _, o := range waitingPods(3, "1") {
		if w.kube.Get(w.ctx, client.ObjectKeyFromObject(o), &corev1.Pod{}) != nil {
			w.mirror.feed.Delete(o)
		}
	}
}

// rejected reads how often claims were rejected for a reason.
func rejected(t *testing.T, w *world, reason string) float64 {
	t.Helper()
	return metricstest.Value(t, w.registry, "nap_provision_rejected_total", reason)
}
