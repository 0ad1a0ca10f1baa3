package registration

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
)

type told []string

func (r *told) Publish(list ...events.Event) {
	for _, e := range list {
		*r = append(*r, e.Reason+" "+e.Message)
	}
}

// world is a claim whose machine has been launched, and the controller that watches it.
type world struct {
	*testing.T
	kube     client.Client
	clock    *testclock.FakeClock
	claim    *karpv1.NodeClaim
	c        *Controller
	registry *prometheus.Registry

	console []string // what the cloud has of the machine's console
	looked  int      // how often the console was asked for
	failure Failure  // what the cloud answers
	broken  error    // what it fails with
	asked   []string // claim and provider id of every question
	joined  []string
	pools   int // failures that were counted against NodePools
	heard   told
}

func newWorld(t *testing.T) *world {
	w := &world{
		T: t, clock: testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), registry: prometheus.NewRegistry(),
		claim: &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: "general-abc12", UID: "1", CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
			Finalizers: []string{"karpenter.sh/termination"},
			Labels:     map[string]string{karpv1.NodePoolLabelKey: "general", karpv1.CapacityTypeLabelKey: "spot"},
		}, Status: karpv1.NodeClaimStatus{ProviderID: "azure:///x"}},
	}
	w.kube = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithStatusSubresource(w.claim).WithObjects(w.claim).Build()
	numbers, err := metrics.NewBoots(w.registry)
	if err != nil {
		t.Fatal(err)
	}
	w.c = New(w.kube, w.clock, Boots{
		Failure: func(_ context.Context, claim, providerID string) (Failure, error) {
			w.asked = append(w.asked, claim+" "+providerID)
			return w.failure, w.broken
		},
		Console: func(context.Context, string, string) ([]string, error) {
			w.looked++
			return w.console, w.broken
		},
		Joined: func(claim string) { w.joined = append(w.joined, claim) },
	}, Reporting{Recorder: &w.heard, Metrics: numbers, Failed: func(context.Context, *karpv1.NodeClaim) error {
		w.pools++
		return nil
	}})
	return w
}

// step reads the claim, reconciles it and returns when it comes again.
func (w *world) step() (time.Duration, error) {
	w.Helper()
	w.read()
	result, err := w.c.Reconcile(w.Context(), w.claim)
	w.read()
	return result.RequeueAfter, err
}

func (w *world) read() {
	w.Helper()
	if err := w.kube.Get(w.Context(), client.ObjectKeyFromObject(w.claim), w.claim); err != nil {
		w.Fatal(err)
	}
}

func (w *world) set(condition string) {
	w.Helper()
	w.read()
	w.claim.StatusConditions(status.WithClock(w.clock)).SetTrue(condition)
	if err := w.kube.Status().Update(w.Context(), w.claim); err != nil {
		w.Fatal(err)
	}
}

// counted is the number of failures in the metrics, with the exit code of the last.
func (w *world) counted() (n float64, exitCode string) {
	w.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			n += m.GetCounter().GetValue()
			exitCode = m.GetLabel()[0].GetValue()
		}
	}
	return n, exitCode
}

func TestBootFailureIsToldAndClaimGivenUp(t *testing.T) {
	w := newWorld(t)
	if again, err := w.step(); again != 0 || err != nil || len(w.asked) != 0 {
		t.Errorf("before the launch: again in %s, %v, asked %v", again, err, w.asked)
	}
	w.set(karpv1.ConditionTypeLaunched)
	if again, err := w.step(); again != every || err != nil || !slices.Equal(w.asked, []string{"general-abc12 azure:///x"}) {
		t.Errorf("nothing to say: again in %s, %v, asked %v", again, err, w.asked)
	}
	w.failure = Failure{ExitCode: 51, Text: "provisioning of the node ended with exit code 51"}
	if again, err := w.step(); again != 0 || err != nil {
		t.Errorf("after the failure: again in %s, %v", again, err)
	}
	const want = "the machine does not become a node: provisioning of the node ended with exit code 51"
	if got := w.claim.StatusConditions().Get(v1beta1.ConditionBooted); !got.IsFalse() || got.Reason != "BootFailed" || got.Message != want {
		t.Errorf("condition %+v", got)
	}
	if !slices.Equal(w.heard, told{"BootFailed T" + want[1:]}) {
		t.Errorf("told %v", w.heard)
	}
	if w.claim.DeletionTimestamp.IsZero() {
		t.Error("the claim keeps its machine")
	}
	if n, code := w.counted(); n != 1 || code != "51" || w.pools != 1 {
		t.Errorf("counted %v failures, exit code %q, %d against the NodePool", n, code, w.pools)
	}
	if again, err := w.step(); again != 0 || err != nil || len(w.asked) != 2 {
		t.Errorf("a claim on its way out: again in %s, %v, asked %d times", again, err, len(w.asked))
	}
}

func TestClaimWithConditionIsGivenUpAfterRestart(t *testing.T) {
	w := newWorld(t)
	w.set(karpv1.ConditionTypeLaunched)
	w.read()
	w.claim.StatusConditions().SetFalse(v1beta1.ConditionBooted, v1beta1.ReasonBootFailed, "it was told")
	if err := w.kube.Status().Update(t.Context(), w.claim); err != nil {
		t.Fatal(err)
	}
	if _, err := w.step(); err != nil || w.claim.DeletionTimestamp.IsZero() || len(w.asked) != 0 || len(w.heard) != 0 || w.pools != 1 {
		t.Errorf("%v, deleted %v, asked %v, told %v, %d counted", err, w.claim.DeletionTimestamp, w.asked, w.heard, w.pools)
	}
}

// A read of the cache may be from before the deletion.
func TestStaleClaimIsNotCountedAgain(t *testing.T) {
	w := newWorld(t)
	w.set(karpv1.ConditionTypeLaunched)
	w.failure = Failure{Text: "it failed"}
	w.read()
	stale := w.claim.DeepCopy()
	if _, err := w.step(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.c.Reconcile(t.Context(), stale); err == nil {
		t.Error("the condition was written over a newer claim")
	}
	patched := w.claim.DeepCopy()
	patched.DeletionTimestamp, patched.ResourceVersion = nil, "1"
	if result, err := w.c.Reconcile(t.Context(), patched); err != nil || result.RequeueAfter == 0 {
		t.Errorf("again in %s, %v", result.RequeueAfter, err)
	}
	if n, _ := w.counted(); n != 1 || w.pools != 1 || len(w.heard) != 1 {
		t.Errorf("counted %v failures, %d against the NodePool, told %v", n, w.pools, w.heard)
	}
}

func TestRegisteredClaimIsNotAskedAbout(t *testing.T) {
	w := newWorld(t)
	w.set(karpv1.ConditionTypeLaunched)
	w.set(karpv1.ConditionTypeRegistered)
	w.failure = Failure{Text: "it failed"}
	if again, err := w.step(); again != 0 || err != nil || len(w.asked) != 0 || !slices.Equal(w.joined, []string{"general-abc12"}) {
		t.Errorf("again in %s, %v, asked %v, joined %v", again, err, w.asked, w.joined)
	}
	w.claim.StatusConditions().SetFalse(v1beta1.ConditionBooted, v1beta1.ReasonBootFailed, "it was told")
	if err := w.kube.Status().Update(t.Context(), w.claim); err != nil {
		t.Fatal(err)
	}
	if _, err := w.step(); err != nil || w.claim.StatusConditions().Get(v1beta1.ConditionBooted) != nil || !w.claim.DeletionTimestamp.IsZero() {
		t.Errorf("%v, condition %+v", err, w.claim.StatusConditions().Get(v1beta1.ConditionBooted))
	}
}

func TestCloudThatDoesNotAnswerChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.set(karpv1.ConditionTypeLaunched)
	w.broken = errors.New("no answer")
	if _, err := w.step(); err == nil || !strings.Contains(err.Error(), "NodeClaim general-abc12") || !w.claim.DeletionTimestamp.IsZero() {
		t.Errorf("%v, deleted %v", err, w.claim.DeletionTimestamp)
	}
	w.broken, w.failure = nil, Failure{Text: strings.Repeat("ä", 2000)}
	if _, err := w.step(); err != nil {
		t.Fatal(err)
	}
	if m := w.claim.StatusConditions().Get(v1beta1.ConditionBooted).Message; len(m) > longestMessage || strings.ContainsRune(m, '\uFFFD') {
		t.Errorf("a message of %d bytes: %s", len(m), m)
	}
}

// Of a machine that says nothing its console is looked at, before Karpenter's time for
// registration is over.
func TestSilentMachineIsToldByItsConsole(t *testing.T) {
	w := newWorld(t)
	w.set(karpv1.ConditionTypeLaunched)
	w.read()
	w.claim.StatusConditions(status.WithClock(w.clock)).SetUnknown(karpv1.ConditionTypeRegistered)
	if err := w.kube.Status().Update(t.Context(), w.claim); err != nil {
		t.Fatal(err)
	}
	w.console = []string{"Linux version 5.15", "Kernel panic - not syncing"}
	w.clock.Step(lastLook - time.Second)
	if _, err := w.step(); err != nil || w.looked != 0 {
		t.Errorf("in time: %v, looked %d times", err, w.looked)
	}
	w.clock.Step(time.Second)
	if _, err := w.step(); err != nil || w.looked != 1 {
		t.Errorf("late: %v, looked %d times", err, w.looked)
	}
	const want = "the machine does not become a node: it has not joined within 14m30s and does not say why; " +
		"the last lines of its console: Linux version 5.15 | Kernel panic - not syncing"
	if got := w.claim.StatusConditions().Get(v1beta1.ConditionBooted); !got.IsFalse() || got.Message != want {
		t.Errorf("condition %+v", got)
	}
	if w.claim.DeletionTimestamp.IsZero() || w.pools != 1 {
		t.Error("the claim is not given up")
	}
}

// Without a console nothing is known to be wrong: Karpenter gives the claim up.
func TestSilentMachineWithoutConsoleIsLeftToKarpenter(t *testing.T) {
	w := newWorld(t)
	w.set(karpv1.ConditionTypeLaunched)
	w.read()
	w.claim.StatusConditions(status.WithClock(w.clock)).SetUnknown(karpv1.ConditionTypeRegistered)
	if err := w.kube.Status().Update(t.Context(), w.claim); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(lastLook)
	if again, err := w.step(); err != nil || again != every || w.looked != 1 || w.claim.StatusConditions().Get(v1beta1.ConditionBooted) != nil {
		t.Errorf("again in %s, %v, looked %d times, %+v", again, err, w.looked, w.claim.StatusConditions().Get(v1beta1.ConditionBooted))
	}
}

// What Azure says without an exit code is told with the console.
func TestFailureWithoutExitCodeIsToldWithConsole(t *testing.T) {
	w := newWorld(t)
	w.set(karpv1.ConditionTypeLaunched)
	w.failure, w.console = Failure{Text: "VMAgentStatusCommunicationError: no status"}, []string{"Kernel panic"}
	if _, err := w.step(); err != nil {
		t.Fatal(err)
	}
	if got := w.claim.StatusConditions().Get(v1beta1.ConditionBooted).Message; !strings.HasSuffix(got, "no status; the last lines of its console: Kernel panic") {
		t.Errorf("told %q", got)
	}
}
