package purchasebackoff

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/controller/metrics/metricstest"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

const imagesPath = "/CommunityGalleries/AKSUbuntu/images/"

// cluster is an API server with a class, a NodePool of it, and the loop.
type cluster struct {
	t        *testing.T
	kube     client.Client
	loop     *Loop
	registry *prometheus.Registry
	events   []string
	made     int
	// finalizer is that of the claims that are made, or empty.
	finalizer string
	store     *fleet.Store
	// unknown is whether the process has not read yet what was before it.
	unknown bool
}

func (c *cluster) Publish(evts ...events.Event) {
	for _, e := range evts {
		c.events = append(c.events, e.Reason+": "+e.Message)
	}
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	if err := v1beta1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	version := "1.34.1"
	class := &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "class", Generation: 1}}
	class.Status.KubernetesVersion = &version
	class.Status.Images = []v1beta1.NodeImage{{ID: imagesPath + "2204gen2/versions/202511.01.0"}, {ID: imagesPath + "2204arm64/versions/202511.01.0"}}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "pool", Generation: 1}}
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1beta1.Group, Kind: "AKSNodeClass", Name: "default"}
	c := &cluster{t: t, registry: prometheus.NewRegistry(), store: fleet.NewStore()}
	c.kube = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(class, pool).
		WithStatusSubresource(&v1beta1.AKSNodeClass{}, &karpv1.NodePool{}).Build()
	// The fake client keeps a status apart.
	if err := c.kube.Status().Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	c.start()
	return c
}

// start begins a new process, which knows nothing.
func (c *cluster) start() {
	numbers, err := metrics.NewProvisioning(c.registry)
	if err != nil {
		c.t.Fatal(err)
	}
	clk := clock.RealClock{}
	c.loop = &Loop{
		Kube: c.kube, Recorder: c, Clock: clk, Metrics: numbers,
		Purchases: NewPurchases(clk), Registrations: NewRegistrations(clk), Snapshot: c.store.Snapshot,
		Known: func() bool { return !c.unknown }, Changes: func() uint64 { return 0 },
	}
	if c.loop.Registrations.Looked() {
		c.t.Error("it has looked already")
	}
	if c.look(); !c.loop.Registrations.Looked() {
		c.t.Error("it does not know that it has looked")
	}
}

func (c *cluster) look() {
	c.t.Helper()
	if err := c.loop.look(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
}

// launch makes a machine, and lets the loop see it.
func (c *cluster) launch(image string) *karpv1.NodeClaim {
	c.t.Helper()
	c.made++
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("general-%d", c.made), Labels: map[string]string{karpv1.NodePoolLabelKey: "general"},
		CreationTimestamp: metav1.Now(),
	}}
	if c.finalizer != "" {
		claim.Finalizers = []string{c.finalizer}
	}
	claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: "default"}
	if image != "" {
		claim.Status.ImageID = imagesPath + image
	}
	claim.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
	if err := c.kube.Create(c.t.Context(), claim); err != nil {
		c.t.Fatal(err)
	}
	c.look()
	return claim
}

func (c *cluster) set(claim *karpv1.NodeClaim, condition, why string) {
	c.t.Helper()
	if why == "" {
		claim.StatusConditions().SetTrue(condition)
	} else {
		claim.StatusConditions().SetFalse(condition, v1beta1.ReasonBootFailed, why)
	}
	if err := c.kube.Update(c.t.Context(), claim); err != nil {
		c.t.Fatal(err)
	}
	c.look()
}

func (c *cluster) fail(claim *karpv1.NodeClaim) { c.set(claim, v1beta1.ConditionBooted, "exit 124") }

func (c *cluster) want(verdict Verdict) Record {
	c.t.Helper()
	var pool karpv1.NodePool
	if err := c.kube.Get(c.t.Context(), client.ObjectKey{Name: "general"}, &pool); err != nil {
		c.t.Fatal(err)
	}
	got, record := c.loop.Registrations.AskPool(&pool)
	if got != verdict {
		c.t.Fatalf("got verdict %d (%+v), want %d", got, record, verdict)
	}
	return record
}

func (c *cluster) condition(object client.Object) string {
	c.t.Helper()
	name := "default"
	if _, is := object.(*karpv1.NodePool); is {
		name = "general"
	}
	if err := c.kube.Get(c.t.Context(), client.ObjectKey{Name: name}, object); err != nil {
		c.t.Fatal(err)
	}
	switch o := object.(type) {
	case *karpv1.NodePool:
		cond := o.StatusConditions().Get(karpv1.ConditionTypeNodeRegistrationHealthy)
		return string(cond.GetStatus()) + " " + cond.Message
	case *v1beta1.AKSNodeClass:
		cond := o.StatusConditions().Get(v1beta1.ConditionNodeRegistrationHealthy)
		return string(cond.GetStatus()) + " " + cond.Message
	}
	return ""
}

const gen2, arm64 = "2204gen2/versions/202511.01.0", "2204arm64/versions/202511.01.0"

func TestThreeFailedRegistrationsPauseTheClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		// More were asked for before the third failed.
		asked := []*karpv1.NodeClaim{c.launch(gen2), c.launch(arm64), c.launch(gen2), c.launch(gen2), c.launch(gen2)}
		time.Sleep(time.Minute)
		for _, claim := range asked[:2] {
			c.fail(claim)
			c.want(Closed)
		}
		c.fail(asked[2])
		opened := c.want(Open)
		for _, object := range []client.Object{&v1beta1.AKSNodeClass{}, &karpv1.NodePool{}} {
			if got := c.condition(object); !strings.HasPrefix(got, "False 3 machines in a row") || !strings.Contains(got, "exit 124") ||
				!strings.Contains(got, "202511.01.0") {
				t.Errorf("the condition of %T is %q", object, got)
			}
		}
		if got := metricstest.Value(t, c.registry, "nap_provision_purchases_paused", "classes"); got != 1 {
			t.Errorf("the metric says %v, want 1", got)
		}
		c.fail(asked[3])
		c.fail(asked[4])
		if r := c.want(Open); r.Until != opened.Until {
			t.Errorf("machines of before make the pause longer: until %s, want %s", r.Until, opened.Until)
		}
		// One machine probes, and fails: the pause grows.
		time.Sleep(time.Until(opened.Until))
		c.want(Probe)
		probe := c.launch(gen2)
		c.want(Open)
		time.Sleep(time.Minute)
		c.fail(probe)
		if r := c.want(Open); time.Until(r.Until) != 20*time.Minute {
			t.Errorf("the next probe comes after %s, want 20m", time.Until(r.Until))
		}
		// The next one registers: all is as before.
		time.Sleep(20 * time.Minute)
		c.set(c.launch(arm64), karpv1.ConditionTypeRegistered, "")
		c.want(Closed)
		c.look()
		for _, object := range []client.Object{&v1beta1.AKSNodeClass{}, &karpv1.NodePool{}} {
			if got := c.condition(object); !strings.HasPrefix(got, "True") {
				t.Errorf("the condition of %T is %q, want True", object, got)
			}
		}
		told := strings.Join(c.events, "\n")
		if strings.Count(told, ReasonPaused) != 2 || strings.Count(told, ReasonResumed) != 1 {
			t.Errorf("the events are\n%s", told)
		}
	})
}

// AKS names the image of a machine once it has made it.
func TestFailedMachineOfUnknownImageCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		for range 3 {
			c.want(Closed)
			c.fail(c.launch(""))
		}
		c.want(Open)
	})
}

func TestNewImageIsNotPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		for range 3 {
			c.fail(c.launch(gen2))
		}
		c.want(Open)
		var class v1beta1.AKSNodeClass
		if err := c.kube.Get(t.Context(), client.ObjectKey{Name: "default"}, &class); err != nil {
			t.Fatal(err)
		}
		class.Status.Images = []v1beta1.NodeImage{{ID: imagesPath + "2204gen2/versions/202512.01.0"}}
		if err := c.kube.Status().Update(t.Context(), &class); err != nil {
			t.Fatal(err)
		}
		c.look()
		c.want(Closed)
	})
}

func TestOnlyMachinesThatCannotJoinCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		end := func(after time.Duration) {
			claim := c.launch(gen2)
			time.Sleep(after)
			if err := c.kube.Delete(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			c.look()
		}
		for range 3 {
			end(time.Minute) // deleted by a person
		}
		c.want(Closed)
		c.finalizer = karpv1.TerminationFinalizer
		for range 3 {
			end(time.Minute)
		}
		for range 20 { // Azure does not delete what a person has deleted
			time.Sleep(time.Minute)
			c.look()
		}
		c.want(Closed)
		c.finalizer = ""
		c.fail(c.launch(gen2))
		c.fail(c.launch(gen2))
		c.set(c.launch(gen2), karpv1.ConditionTypeRegistered, "") // not in a row
		c.fail(c.launch(gen2))
		c.want(Closed)
		end(15 * time.Minute)
		end(15 * time.Minute)
		c.want(Open)
	})
}

func TestPauseSurvivesRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		store := func() *Store {
			return &Store{Breakers: map[string]*Breaker{"registrations": c.loop.Registrations.Breaker}}
		}
		for range 3 {
			c.fail(c.launch(gen2))
		}
		before := c.want(Open)
		text, err := store().Marshal()
		if err != nil {
			t.Fatal(err)
		}
		c.start()
		if err := store().Unmarshal(text); err != nil {
			t.Fatal(err)
		}
		c.look() // the failed machines are still there, and must not count again
		if after := c.want(Open); !after.Until.Equal(before.Until) || after.Count != 3 {
			t.Errorf("after the restart: %+v, want %+v", after, before)
		}
		if store().Unmarshal([]byte("garbage")) == nil {
			t.Error("garbage is read without an error")
		}
	})
}

// A controller that starts does not say that nothing pauses before it can know.
func TestNothingIsToldBeforeWhatPausesIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		memory := func() *Store {
			return &Store{Breakers: map[string]*Breaker{"registrations": c.loop.Registrations.Breaker, "landings": c.loop.Purchases.Landings}}
		}
		pod := &fleet.Pod{Ref: model.PodRef{Namespace: "default", Name: "web-1"}, Owner: fleet.Owner{Kind: "Deployment", Name: "web"}, OwnerUID: "1", Wanted: true}
		c.store.Put(pod)
		for i := range landingPolicy().Probes {
			f := Failure{Purchase: fmt.Sprint(i), Pool: "general", Why: "a taint"}
			c.loop.Purchases.Landings.Failed(string(Workloads{}.Of(pod)), f, time.Now(), "")
		}
		for range 3 {
			failed := c.launch(gen2)
			c.fail(failed)
			if err := c.kube.Delete(t.Context(), failed); err != nil {
				t.Fatal(err)
			}
		}
		c.look()
		paused := func(when string, want bool) {
			t.Helper()
			var pool karpv1.NodePool
			class := c.condition(&v1beta1.AKSNodeClass{})
			c.condition(&pool)
			if backoff := pool.StatusConditions().Get(ConditionBackoff); backoff.IsTrue() != want || strings.HasPrefix(class, "False") != want {
				t.Errorf("%s: the NodePool says %v, its AKSNodeClass %q, want them paused: %t", when, backoff, class, want)
			}
		}
		paused("before the restart", true)
		text, err := memory().Marshal()
		if err != nil {
			t.Fatal(err)
		}
		c.store, c.unknown = fleet.NewStore(), true
		c.start()
		paused("before anything is known", true)
		if before := c.loop.state(); c.loop.state() == before {
			t.Error("the loop rests though it has told nothing")
		}
		c.store.Put(pod)
		if err := memory().Unmarshal(text); err != nil {
			t.Fatal(err)
		}
		c.unknown = false
		c.look()
		paused("once all is known", true)
		time.Sleep(forgetAfter + time.Second)
		c.look()
		paused("once the failures are old", false)
	})
}

func TestStoredReasonEndsWithWholeCharacter(t *testing.T) {
	for _, lead := range []string{"", "a", "ab", "abc"} { // so that the end falls on each byte of a character
		b := NewBreaker(testPolicy(), clock.RealClock{})
		b.Failed("web", Failure{Purchase: "1", Why: lead + strings.Repeat("€", longestStored)}, time.Now(), "")
		s := Store{Breakers: map[string]*Breaker{"registrations": b}}
		text, err := s.Marshal()
		if err != nil || strings.Contains(string(text), "\ufffd") || !strings.Contains(string(text), lead+"€€€") {
			t.Errorf("%s, %v", text, err)
		}
		again := NewBreaker(testPolicy(), clock.RealClock{})
		if err := (&Store{Breakers: map[string]*Breaker{"registrations": again}}).Unmarshal(text); err != nil {
			t.Fatal(err)
		}
		why := again.Records()[0].Last[0].Why
		if rest := longestStored - len(why); rest < 0 || rest > 2 || strings.Trim(why[len(lead):], "€") != "" {
			t.Errorf("%d bytes of a reason are read again: ...%q", len(why), why[len(why)-4:])
		}
	}
}

func TestUnhealthyPoolIsHeededAfterLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var pool karpv1.NodePool
		if err := c.kube.Get(t.Context(), client.ObjectKey{Name: "general"}, &pool); err != nil {
			t.Fatal(err)
		}
		pool.StatusConditions().SetFalse(karpv1.ConditionTypeNodeRegistrationHealthy, ReasonRegistrationFailed, "Failed to register node")
		if err := c.kube.Status().Update(t.Context(), &pool); err != nil {
			t.Fatal(err)
		}
		c.look()
		c.want(Probe)
		probe := c.launch(gen2)
		c.want(Open)
		time.Sleep(time.Minute)
		c.set(probe, karpv1.ConditionTypeRegistered, "")
		c.want(Closed)
	})
}

// A workload that is gone, or has another template by now, is not named, and is followed for
// as long as its failures are remembered.
func TestNodePoolNamesPausedWorkloadsWhosePodsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.loop.Changes = func() uint64 { return 0 }
		want := func(when, status, message string) {
			t.Helper()
			c.look()
			var pool karpv1.NodePool
			if err := c.kube.Get(t.Context(), client.ObjectKey{Name: "general"}, &pool); err != nil {
				t.Fatal(err)
			}
			said := ""
			if cond := pool.StatusConditions().Get(ConditionBackoff); cond != nil {
				said = string(cond.Status) + " " + cond.Message
			}
			if !strings.HasPrefix(said, status) || !strings.Contains(said, message) || status == "" && said != "" {
				t.Errorf("%s: the condition is %q, want %s %q", when, said, status, message)
			}
		}
		pod := &fleet.Pod{Ref: model.PodRef{Namespace: "default", Name: "web-1"}, Owner: fleet.Owner{Kind: "Deployment", Name: "web"}, OwnerUID: "1", Wanted: true}
		web := string(Workloads{}.Of(pod))
		for i := range landingPolicy().Probes {
			c.loop.Purchases.Landings.Failed(web, Failure{Purchase: fmt.Sprint(i), Pool: "general", Why: "a taint"}, time.Now(), "")
		}
		want("no pod waits", "", "")
		c.store.Put(pod)
		want("a pod waits", "True", "Deployment default/web (until ")
		c.store.Remove(pod)
		want("it is gone", "False", "")
		c.store.Put(pod)
		want("it waits again", "True", "Deployment default/web (until ")
		if before := c.loop.state(); c.loop.state() == before {
			t.Error("the loop rests while a pause has to be followed")
		}
		time.Sleep(forgetAfter + time.Second)
		want("the failures are old", "False", "")
		if before := c.loop.state(); c.loop.state() != before || !c.loop.Purchases.Quiet() {
			t.Error("failures are followed that are out of date")
		}
	})
}

// A probe counts from its creation: before it is observed, and before it has a machine.
func TestProbeWithoutMachineIsTheOnlyOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		for range 3 {
			c.fail(c.launch(gen2))
		}
		opened := c.want(Open)
		time.Sleep(time.Until(opened.Until) + time.Second)
		c.want(Probe)
		probe := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "probe", Labels: map[string]string{karpv1.NodePoolLabelKey: "general"}}}
		probe.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: "default"}
		c.loop.Registrations.Bought(probe)
		c.look() // the cache does not have it yet
		c.want(Open)
		probe.CreationTimestamp = metav1.Now()
		if err := c.kube.Create(t.Context(), probe); err != nil {
			t.Fatal(err)
		}
		c.look()
		c.want(Open)
		if err := c.kube.Delete(t.Context(), probe); err != nil { // Azure has refused it
			t.Fatal(err)
		}
		c.look()
		c.want(Probe)
	})
}

// TestLoopLooksWithoutChangesWhileAnythingIsOpen: pauses end and machines are given up as time
// passes; a loop to which nothing can happen has the same state for ever.
func TestLoopLooksWithoutChangesWhileAnythingIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var changes uint64
		c.loop.Changes = func() uint64 { return changes }
		open := func(when string, want bool) {
			t.Helper()
			if before := c.loop.state(); (c.loop.state() != before) != want {
				t.Errorf("%s: the loop looks without a change: %t, want %t", when, !want, want)
			}
		}
		open("without machines", false)
		first := c.launch(gen2)
		open("while a machine is on its way", true)
		c.set(first, karpv1.ConditionTypeRegistered, "")
		open("once it is a node", false)
		for range 3 {
			failed := c.launch(gen2)
			c.fail(failed)
			if err := c.kube.Delete(t.Context(), failed); err != nil {
				t.Fatal(err)
			}
			c.look()
		}
		open("while the class pauses", true)
		before := c.loop.state()
		changes++
		if after := c.loop.state(); after <= before+1 {
			t.Errorf("a change leaves the state at %d, want more than %d", after, before+1)
		}
	})
}
