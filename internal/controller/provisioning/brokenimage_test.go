package provisioning

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/lifecycle"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/state/nodepoolhealth"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
	"github.com/nodeautoprovision/nap/internal/controller/cloudprovider"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/controller/metrics/metricstest"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclass"
	"github.com/nodeautoprovision/nap/internal/controller/purchasebackoff"
	"github.com/nodeautoprovision/nap/internal/controller/registration"
	"github.com/nodeautoprovision/nap/internal/planner"
)

// azureWorld is a world whose machines are bought in a simulated Azure, by the
// controllers that do it in a cluster.
type azureWorld struct {
	*world
	env   *armtest.Env
	boots *metrics.Boots
	// reconcilers are those of NodeClaims, in the order of their turns.
	reconcilers []reconcile.ObjectReconciler[*karpv1.NodeClaim]
	told        *purchasebackoff.Loop

	claimsMu sync.Mutex
	// known are the claims as they were last delivered, next when each is reconciled
	// again; zero while it is.
	known map[string]*karpv1.NodeClaim
	next  map[string]time.Time
	// failedAt is when a claim was first seen with Booted=False.
	failedAt map[string]time.Time
	tasks    sync.WaitGroup
}

type apiServer struct{}

func (apiServer) ServerVersion() (*version.Info, error) {
	return &version.Info{GitVersion: "v1.35.1"}, nil
}

// lateKube and lateCloud are set once the bubble is there: Karpenter's controller has a
// goroutine that never ends, and is made before.
type lateKube struct{ client.Client }

type lateCloud struct{ karpcloud.CloudProvider }

// inAzureWorld runs a test in a bubble, with a class of on-demand machines of one size,
// whose image is broken, and pods that wait.
func inAzureWorld(t *testing.T, size string, pods []client.Object, test func(t *testing.T, w *azureWorld)) {
	t.Helper()
	inMarket(t, market{[]string{size}, []string{"on-demand"}}, pods, func(t *testing.T, w *azureWorld) {
		w.imageIsBroken()
		test(t, w)
	})
}

// market is what can be bought in a test: sizes and capacity types.
type market struct{ sizes, capacityTypes []string }

// inMarket runs a test in a bubble, with pods that wait.
func inMarket(t *testing.T, sold market, pods []client.Object, test func(t *testing.T, w *azureWorld)) {
	t.Helper()
	kube, cloud := &lateKube{}, &lateCloud{}
	recorder := &toldEvents{}
	claims := lifecycle.NewController(clock.RealClock{}, kube, cloud, recorder,
		state.NewCluster(clock.RealClock{}, kube, cloud), nodepoolhealth.NewState(), nil)
	synctest.Test(t, func(t *testing.T) {
		w := newAzureWorld(t, sold, pods, recorder)
		kube.Client = w.kube
		w.reconcilers = append(w.reconcilers, claims)
		cloud.CloudProvider = purchasebackoff.NewGuard(w.start(recorder), w.kube, w.registrations, clock.RealClock{})
		test(t, w)
	})
}

// newAzureWorld has a class of machines and pods that wait.
func newAzureWorld(t *testing.T, sold market, pods []client.Object, recorder *toldEvents) *azureWorld {
	t.Helper()
	if err := v1beta1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	cloudprovider.RegisterLabels()
	diskSize, family := int32(128), "Ubuntu"
	class := &v1beta1.AKSNodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "class", Generation: 1},
		Spec:       v1beta1.AKSNodeClassSpec{OSDiskSizeGB: &diskSize, ImageFamily: &family},
	}
	pool := nodePool(func(np *karpv1.NodePool) {
		np.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
			{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: sold.capacityTypes},
			{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: sold.sizes},
		}
	})
	w := &azureWorld{
		world: &world{t: t, ctx: log.IntoContext(t.Context(), testr.New(t)), recorder: recorder, solve: planner.Solve,
			settings: Settings{Batch: BatchDurations{Idle: time.Second, Max: 10 * time.Second}}},
		env:   armtest.New(t, armtest.Realistic, func(c *armsim.Config) { c.Sizes = sold.sizes }),
		known: map[string]*karpv1.NodeClaim{}, next: map[string]time.Time{}, failedAt: map[string]time.Time{},
	}
	w.kube = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(append(pods, class, pool)...).
		WithStatusSubresource(&v1beta1.AKSNodeClass{}, &karpv1.NodePool{}, &karpv1.NodeClaim{}).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithIndex(&corev1.Node{}, "spec.providerID", func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			o.SetCreationTimestamp(metav1.Now()) // as the API server does, and a UID
			o.SetUID(types.UID(o.GetName()))
			return c.Create(ctx, o, opts...)
		}}).
		Build()
	if err := w.kube.Status().Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	w.restart()
	return w
}

// start makes the controllers of a process and lets them run until the test ends.
func (w *azureWorld) start(recorder *toldEvents) *cloudprovider.Port {
	t, clk := w.t, clock.RealClock{}
	e := w.env
	provider, err := azure.New(t.Context(), config.Config{
		ClusterName: e.ClusterName, ClusterEndpoint: "https://cluster.test:443", ClusterCA: armtest.Certificate(),
		SSHPublicKey: "ssh-rsa AAAA", AdminUsername: "azureuser",
		BootstrapToken:          jointoken.New("abcdef.0123456789abcdef"),
		KubeletIdentityClientID: "0b1f6471-0000-4000-8000-0000000000ce", DNSServiceIP: "10.0.0.10",
		SubscriptionID: e.SubscriptionID, Location: e.Region, NodeResourceGroup: e.NodeResourceGroup, VNETSubnetID: e.SubnetID,
		NetworkPlugin: "azure", NetworkPluginMode: "overlay", VMMemoryOverhead: 0.075, LaunchSettle: 10 * time.Second,
		Cloud: config.Cloud{TenantID: e.TenantID, Environment: &config.Environment{
			Name: "simulated", ResourceManagerEndpoint: armtest.Endpoint, ActiveDirectoryEndpoint: armtest.Endpoint,
			TokenAudience: "https://management.azure.com", Document: []byte("{}"),
		}, RetailPrices: armtest.Endpoint + "/api/retail/prices"},
	}, azure.Deps{Credential: e.Credential, Transport: e.HTTP})
	if err != nil {
		t.Fatal(err)
	}
	port := cloudprovider.New(w.kube, apiServer{}, provider)
	class := &v1beta1.AKSNodeClass{}
	if err := w.kube.Get(w.ctx, client.ObjectKey{Name: "default"}, class); err != nil {
		t.Fatal(err)
	}
	if _, err := nodeclass.NewStatus(w.kube, clk, port.Classes).Reconcile(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if w.boots, err = metrics.NewBoots(w.registry); err != nil {
		t.Fatal(err)
	}
	w.loop.gatherer.catalogs = port
	w.loop.reporter.recorder = recorder
	w.reconcilers = append(w.reconcilers, registration.New(w.kube, clk, registration.Boots{
		Failure: func(ctx context.Context, claim, providerID string) (registration.Failure, error) {
			f, err := provider.Boots().Failure(ctx, claim, providerID)
			return registration.Failure{ExitCode: f.ExitCode, Text: f.Text}, err
		},
		Console: provider.Boots().Console, Joined: provider.Boots().Joined,
	}, registration.Reporting{Recorder: recorder, Metrics: w.boots, Failed: func(context.Context, *karpv1.NodeClaim) error { return nil }}))
	numbers, err := metrics.NewProvisioning(w.registry)
	if err != nil {
		t.Fatal(err)
	}
	port.WatchUnsold(func(claim *karpv1.NodeClaim) {
		w.loop.admission.backoff.purchases.Unsold(claim.Name)
		numbers.PlannedAgain(claim.Labels[karpv1.NodePoolLabelKey])
	})
	w.told = &purchasebackoff.Loop{
		Kube: w.kube, Recorder: recorder, Clock: clk, Metrics: numbers,
		Purchases: w.loop.admission.backoff.purchases, Registrations: w.registrations,
		Snapshot: w.mirror.Snapshot, Known: func() bool { return true },
		Changes: func() uint64 { return 0 }, // what it looks at without a change is tested
	}
	ctx, cancel := context.WithCancel(w.ctx)
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{provider.Run, w.told.Start, w.loop.Start} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { w.tasks.Wait(); cancel(); running.Wait() })
	return port
}

// play lets time pass: NodeClaims are delivered and reconciled, and pods come again, as
// a manager does it.
func (w *azureWorld) play(d, podsEvery time.Duration) {
	w.t.Helper()
	var pods corev1.PodList
	if err := w.kube.List(w.ctx, &pods); err != nil {
		w.t.Fatal(err)
	}
	// 137 ms later than the loops, which look at whole seconds.
	time.Sleep(137 * time.Millisecond)
	var turn time.Time
	for begin := time.Now(); time.Since(begin) < d; time.Sleep(time.Second) {
		w.deliver()
		if time.Since(turn) < podsEvery {
			continue
		}
		turn = time.Now()
		for i := range pods.Items {
			if _, err := w.loop.triggers.podChanged(w.ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pods.Items[i])}); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// deliver tells of claims that have changed, and reconciles those whose turn it is.
func (w *azureWorld) deliver() {
	w.t.Helper()
	here := map[string]bool{}
	for _, c := range w.claims() {
		here[c.Name] = true
		before := w.known[c.Name]
		if before == nil || before.ResourceVersion != c.ResourceVersion {
			w.mirror.feed.Apply(&c)
			w.known[c.Name] = &c
			if before != nil {
				w.loop.triggers.claimChanged(w.ctx, event.UpdateEvent{ObjectOld: before, ObjectNew: &c}, nil)
			}
			if _, seen := w.failedAt[c.Name]; !seen && unbootable(&c) {
				w.failedAt[c.Name] = time.Now()
			}
		}
		w.reconcile(c.Name)
	}
	for name, c := range w.known {
		if !here[name] {
			delete(w.known, name)
			w.mirror.feed.Delete(c)
			w.loop.triggers.claimGone(w.ctx, event.DeleteEvent{Object: c}, nil)
		}
	}
}

// reconcile gives a claim its turn, if it has none.
func (w *azureWorld) reconcile(name string) {
	w.claimsMu.Lock()
	next, known := w.next[name]
	if known && (next.IsZero() || next.After(time.Now())) {
		w.claimsMu.Unlock()
		return
	}
	w.next[name] = time.Time{}
	w.claimsMu.Unlock()
	w.tasks.Go(func() {
		for _, r := range w.reconcilers {
			claim := &karpv1.NodeClaim{}
			if err := w.kube.Get(w.ctx, client.ObjectKey{Name: name}, claim); err != nil {
				break
			}
			if _, err := r.Reconcile(w.ctx, claim); err != nil && !apierrors.IsConflict(err) {
				w.t.Logf("%s: %s: %v", time.Now().Format(time.TimeOnly), name, err)
			}
		}
		w.claimsMu.Lock()
		defer w.claimsMu.Unlock()
		w.next[name] = time.Now().Add(4 * time.Second)
	})
}

// imageIsBroken has the provisioning of every machine end with exit code 51.
func (w *azureWorld) imageIsBroken() {
	w.t.Helper()
	w.fault(armsim.Fault{Kind: armsim.FaultProvisioning, Code: "51", Message: "+ nc -vz api 443"})
}

// fault breaks something in Azure.
func (w *azureWorld) fault(f armsim.Fault) {
	w.t.Helper()
	if _, err := w.env.Server.AddFault(f); err != nil {
		w.t.Fatal(err)
	}
}

// bought is when machines were made, in order.
func (w *azureWorld) bought() []time.Time {
	var out []time.Time
	for _, e := range w.env.Server.Audit(0) {
		if e.Action == "vm.succeeded" {
			out = append(out, e.Time)
		}
	}
	return out
}

// slowest is the longest time between the end of an extension's operation, in which
// Azure reports that provisioning has failed, and the condition of the claim.
func (w *azureWorld) slowest() (slowest time.Duration) {
	w.t.Helper()
	reported := map[string]time.Time{}
	for _, e := range w.env.Server.Audit(0) {
		if e.Kind != armsim.AuditOperation || e.Code != "VMExtensionProvisioningError" {
			continue
		}
		machine, _, _ := strings.Cut(e.Resource, "/extensions/")
		reported[strings.TrimPrefix(machine[strings.LastIndex(machine, "/")+1:], "aks-")] = e.Time
	}
	for claim, told := range w.failedAt {
		at, is := reported[claim]
		if !is {
			w.t.Errorf("NodeClaim %s says that its machine's provisioning failed before Azure does", claim)
		}
		slowest = max(slowest, told.Sub(at))
	}
	if len(reported) == 0 || len(w.failedAt) != len(reported) {
		w.t.Errorf("%d claims tell of %d failures", len(w.failedAt), len(reported))
	}
	return slowest
}

// paused checks what people are told while the class rests: one clear condition of the
// class and of its NodePool, events of pods, metrics.
func (w *azureWorld) paused(failures int) {
	w.t.Helper()
	var class v1beta1.AKSNodeClass
	var pool karpv1.NodePool
	if err := w.kube.Get(w.ctx, client.ObjectKey{Name: "default"}, &class); err != nil {
		w.t.Fatal(err)
	}
	if err := w.kube.Get(w.ctx, client.ObjectKey{Name: "general"}, &pool); err != nil {
		w.t.Fatal(err)
	}
	for what, condition := range map[string]*status.Condition{
		"AKSNodeClass": class.StatusConditions().Get(v1beta1.ConditionNodeRegistrationHealthy),
		"NodePool":     pool.StatusConditions().Get(karpv1.ConditionTypeNodeRegistrationHealthy),
	} {
		message := condition.Message
		if !condition.IsFalse() || !strings.Contains(message, "machines in a row did not register as nodes") ||
			!strings.Contains(message, "AKSNodeClass default") || !strings.Contains(message, "exit code 51 (ERR_K8S_API_SERVER_CONN_FAIL") {
			w.t.Errorf("the condition of the %s: %v %s", what, condition.IsFalse(), message)
		}
	}
	if told := strings.Join(w.recorder.of("FailedScheduling"), "\n"); !strings.Contains(told, "did not register as nodes") {
		w.t.Errorf("pods are not told why nothing is bought:\n%s", told)
	}
	if n := metricstest.Value(w.t, w.registry, "nap_provision_purchases_paused", "classes"); n != 1 {
		w.t.Errorf("the metric has %v classes that pause, want 1", n)
	}
	if n := metricstest.Value(w.t, w.registry, "nap_boot_failures_total", "51"); int(n) != failures {
		w.t.Errorf("the metric has %v boots that failed with exit code 51, want %d", n, failures)
	}
}

// givenBack checks that no machine is left.
func (w *azureWorld) givenBack() {
	w.t.Helper()
	if left := fmt.Sprintf("%+v", w.env.Server.Leaks()); len(w.claims()) > 0 || left != fmt.Sprintf("%+v", armsim.Inventory{}) {
		w.t.Errorf("%d NodeClaims are left, and in Azure %s", len(w.claims()), left)
	}
}

// after is how long after the first of them things happened, for messages.
func after(times []time.Time) []string {
	var out []string
	for _, at := range times {
		out = append(out, at.Sub(times[0]).Round(time.Second).String())
	}
	return out
}

// A class with a broken image and one pod costs three machines, and then probes: after
// 10 minutes and after 20.
func TestBrokenImageAndOnePodForAnHour(t *testing.T) {
	inAzureWorld(t, "Standard_D4s_v5", waitingPods(1, "1"), func(t *testing.T, w *azureWorld) {
		w.play(time.Hour, retryAfter)
		bought := w.bought()
		t.Logf("machines at %v; the slowest failure was told after %s", after(bought), w.slowest())
		if len(bought) != 5 || bought[3].Sub(bought[2]) < 10*time.Minute || bought[4].Sub(bought[3]) < 20*time.Minute {
			t.Fatalf("machines were bought at %v, want three, one after 10m and one after 20m", after(bought))
		}
		if bought[2].Sub(bought[0]) > 10*time.Minute {
			t.Errorf("the third machine came %s after the first: its pod was not planned again at once", bought[2].Sub(bought[0]))
		}
		if s := w.slowest(); s > 30*time.Second {
			t.Errorf("a failure was told %s after Azure", s)
		}
		w.paused(5)
		w.givenBack()
	})
}

// With a thousand pods what was asked for before the third failure is given back, and
// then single machines probe.
func TestBrokenImageAndThousandPodsForAnHour(t *testing.T) {
	pods, owned := waitingPods(1000, "1"), true
	for _, o := range pods {
		o.(*corev1.Pod).OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: &owned},
		}
	}
	inAzureWorld(t, "Standard_D32s_v5", pods, func(t *testing.T, w *azureWorld) {
		w.play(time.Hour, 5*time.Minute) // a thousand pods that come every ten seconds take the test minutes
		bought := w.bought()
		first := slices.IndexFunc(bought, func(at time.Time) bool { return at.Sub(bought[0]) > 5*time.Minute })
		if first < 0 {
			t.Fatalf("%d machines, and no probe in an hour", len(bought))
		}
		t.Logf("%d machines before the third failure, probes at %v; the slowest failure was told after %s",
			first, after(bought)[first:], w.slowest())
		if first < 32 || first > 40 {
			t.Errorf("%d machines were bought at first, want those of one plan", first)
		}
		if probes := bought[first:]; len(probes) != 2 || probes[1].Sub(probes[0]) < 20*time.Minute {
			t.Errorf("probes at %v, want one after 10m and one 20m later", after(bought)[first:])
		}
		if s := w.slowest(); s > 30*time.Second {
			t.Errorf("a failure was told %s after Azure", s)
		}
		w.paused(len(bought))
		w.givenBack()
	})
}

// The image is mended: the next probe joins, and everything is bought as before.
func TestMendedImageEndsThePause(t *testing.T) {
	inAzureWorld(t, "Standard_D4s_v5", waitingPods(1, "1"), func(t *testing.T, w *azureWorld) {
		w.play(10*time.Minute, retryAfter)
		w.paused(3)
		for _, f := range w.env.Server.Faults() {
			if err := w.env.Server.RemoveFault(f.ID); err != nil {
				t.Fatal(err)
			}
		}
		w.play(10*time.Minute, retryAfter)
		claims := w.claims()
		if len(claims) != 1 || unbootable(&claims[0]) {
			t.Fatalf("%d claims after the pause, want the probe", len(claims))
		}
		stored := claims[0].DeepCopy()
		claims[0].StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
		if err := w.kube.Status().Patch(w.ctx, &claims[0], client.MergeFrom(stored)); err != nil {
			t.Fatal(err)
		}
		w.play(10*time.Second, retryAfter)
		var class v1beta1.AKSNodeClass
		if err := w.kube.Get(w.ctx, client.ObjectKey{Name: "default"}, &class); err != nil {
			t.Fatal(err)
		}
		if got := class.StatusConditions().Get(v1beta1.ConditionNodeRegistrationHealthy); !got.IsTrue() {
			t.Errorf("after the probe has joined: %+v", got)
		}
	})
}
