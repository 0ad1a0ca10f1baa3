package disruption

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// drifted is a machine that is not what would be bought now.
func drifted(name, size string) []client.Object {
	objects := machine(name, size)
	objects[0].(*karpv1.NodeClaim).StatusConditions().SetTrueWithReason(karpv1.ConditionTypeDrifted, "NodePoolDrifted", "NodePoolDrifted")
	return objects
}

// disrupted counts the nodes that carry the taint or leave.
func (w *world) disrupted() int {
	n := 0
	for _, node := range w.nodes() {
		if tainted(&node) {
			n++
		}
	}
	return n
}

func TestDriftReplacesNodesInParallelWithinBudget(t *testing.T) {
	pool := nodePool(func(np *karpv1.NodePool) {
		np.Spec.Disruption.Budgets = []karpv1.Budget{{
			Nodes: "3", Reasons: []karpv1.DisruptionReason{karpv1.DisruptionReasonDrifted},
		}, {Nodes: "100%"}}
	})
	objects := []client.Object{pool}
	for i := range 7 {
		name := fmt.Sprintf("m%d", i)
		objects = append(objects, drifted(name, "D2")...)
		objects = append(objects, running(1, "web", "1900m", name)...) // which fills it
	}
	w := newWorld(t, objects...)
	w.pass()
	w.pass()
	if got, claims := w.disrupted(), len(w.claims()); got != 3 || claims != 10 {
		t.Errorf("%d nodes are being replaced at once and there are %d NodeClaims, want 3 of 7 nodes and 10", got, claims)
	}
	for range 30 {
		w.run(1)
		if got := w.disrupted(); got > 3 {
			t.Fatalf("%d nodes are disrupted at once, the budget is 3", got)
		}
	}
	for _, c := range w.claims() {
		if c.StatusConditions().IsTrue(karpv1.ConditionTypeDrifted) {
			t.Errorf("NodeClaim %s has drifted and is still there", c.Name)
		}
	}
	if got := w.sizes(); got != "D2 D2 D2 D2 D2 D2 D2" {
		t.Errorf("left are %s, want 7 of the same size", got)
	}
	w.wantQuiet()
}

func TestExpiringNodeIsReplacedBeforeExpiry(t *testing.T) {
	objects := all(machine("a", "D2"), running(1, "web", "1500m", "a"))
	claim := objects[1].(*karpv1.NodeClaim)
	claim.Spec.ExpireAfter = karpv1.MustParseNillableDuration("1h")
	claim.CreationTimestamp = metav1.NewTime(time.Now()) // the clock of the test is an hour ahead
	w := newWorld(t, objects...)
	w.pass()
	w.pass()
	if got := len(w.claims()); got != 2 || len(w.nodes()) != 1 {
		t.Fatalf("%d NodeClaims and %d nodes, want the old one and its replacement on the way", got, len(w.nodes()))
	}
	w.run(5)
	if got := w.claims(); len(got) != 1 || got[0].Name == "a" {
		t.Errorf("left are %v, want the replacement", got)
	}
	w.wantQuiet()
}

// A pod that nothing evicts keeps a node with a terminationGracePeriod for that long. A machine that
// was bought for it at once would be empty until then.
func TestNothingIsBoughtForPodsThatStayUntilForcedOut(t *testing.T) {
	bounded := func(m []client.Object) []client.Object {
		claim := m[0].(*karpv1.NodeClaim)
		claim.Spec.TerminationGracePeriod = &metav1.Duration{Duration: 90 * time.Second}
		return m
	}
	expired := func() []client.Object {
		m := machine("m", "D4")
		claim := m[0].(*karpv1.NodeClaim) // the clock of the test is an hour ahead
		claim.Spec.ExpireAfter, claim.CreationTimestamp = karpv1.MustParseNillableDuration("1h"), metav1.NewTime(time.Now().Add(-time.Minute))
		return m
	}
	old := func() []client.Object { return drifted("m", "D4") }
	for name, m := range map[string]func() []client.Object{"drifted": old, "expired": expired} {
		for others, want := range map[int]int{0: 0, 1: 1} {
			held := running(1, "held", "1700m", "m")
			held[0].SetAnnotations(map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"})
			w := newWorld(t, all(bounded(m()), held, running(others, "web", "1700m", "m"))...)
			for range 4 {
				w.pass()
				w.cloud()
			}
			bought := 0
			for _, c := range w.claims() {
				if c.Name != "m" {
					bought++
				} else if c.DeletionTimestamp.IsZero() {
					t.Errorf("%s, %d pods beside the one that stays: NodeClaim m is not deleted", name, others)
				}
			}
			if bought != want {
				t.Errorf("%s, %d pods beside the one that stays: %d machines are bought, want %d", name, others, bought, want)
			}
		}
	}
}

func static(np *karpv1.NodePool) {
	np.Spec.Replicas = ptr.To(int64(2))
	np.Spec.Template.Spec.Requirements = append(np.Spec.Template.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{
		Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"D2"},
	})
}

func TestConsolidationSkipsStaticPools(t *testing.T) {
	w := newWorld(t, append(append([]client.Object{nodePool(static)}, machine("a", "D2")...), machine("b", "D2")...)...)
	w.run(10)
	if got := w.sizes(); got != "D2 D2" {
		t.Errorf("left are %s, want both though they are empty", got)
	}
	w.wantQuiet()
}

func TestDriftInStaticPoolReplacesByTemplate(t *testing.T) {
	w := newWorld(t, append(append([]client.Object{nodePool(static)}, drifted("a", "D2")...), machine("b", "D2")...)...)
	w.pass()
	w.pass()
	if len(w.claims()) != 3 || !w.cluster.pending["general/a"] || !w.cluster.replaced["a"] {
		t.Fatalf("%d NodeClaims, pending disruption %v, replaced %v; want a third claim, and a told to be on its way out",
			len(w.claims()), w.cluster.pending, w.cluster.replaced)
	}
	w.run(6)
	names := map[string]bool{}
	for _, c := range w.claims() {
		names[c.Name] = true
	}
	if len(names) != 2 || names["a"] || !names["b"] {
		t.Errorf("left are %v, want b and a replacement of a", names)
	}
	w.wantQuiet()
}

func TestEmptyNodeDeletedWhileReplacementsArePending(t *testing.T) {
	w := newWorld(t, large()...)
	w.pass()
	w.pass()
	if len(w.loop.commands.active) != 1 {
		t.Fatalf("%d moves are under way, want one that waits for its replacement", len(w.loop.commands.active))
	}
	for _, o := range machine("idle", "D2") {
		w.create(o)
	}
	for range 4 {
		w.pass()
	}
	w.terminate()
	if got := w.sizes(); got != "D16 D16" {
		t.Errorf("left are %s, want the two that wait and not the empty one", got)
	}
}

func TestNodeWithTaintRemovedIsKept(t *testing.T) {
	w := newWorld(t, large()...)
	w.pass()
	w.pass()
	node := w.nodes()[0]
	node.Spec.Taints = nil
	w.must(w.kube.Update(w.ctx, &node))
	w.clock.Step(observeWithin)
	w.pass()
	w.pass()
	if len(w.loop.commands.active) != 0 {
		t.Error("the move goes on although pods may come to its nodes")
	}
	w.run(3)
	if got := w.sizes(); got != "D16 D16" {
		t.Errorf("left are %s, want both", got)
	}
	w.wantQuiet()
}

func TestReplacementRecordsExpectedSaving(t *testing.T) {
	w := newWorld(t, large()...)
	w.run(6)
	claims := w.claims()
	if got := claims[0].Annotations[v1beta1.AnnotationExpectedSaving]; len(claims) != 1 || got != "1.750000" {
		t.Errorf("%d NodeClaims, the first says %q; want one that says a quarter more than the $1.40 per hour that were "+
			"to be saved", len(claims), got)
	}
}

func TestReplacementOfNodeGoneMeanwhileIsOrdinaryNode(t *testing.T) {
	w := newWorld(t, large()...)
	w.pass()
	w.pass()
	// While no controller ran, both nodes were deleted.
	for _, c := range w.claims() {
		if c.Annotations[v1beta1.AnnotationCommand] != "" {
			w.delete(&c)
		}
	}
	w.cloud()
	w.terminate()
	w.restart()
	w.run(3)
	if got := w.sizes(); got != "D4" {
		t.Errorf("left are %s, want the replacement with the pods on it", got)
	}
	w.wantQuiet()
}

func TestConsolidationWaitsForMaintenanceWindow(t *testing.T) {
	w := newWorld(t, half()...)
	opens := w.clock.Now().Add(time.Hour)
	w.loop.decider.reader.window = func(_ context.Context, now time.Time) (bool, time.Time, error) { return !now.Before(opens), opens, nil }
	w.run(5)
	if got := w.sizes(); got != "D2 D2 D2 D2" {
		t.Fatalf("left are %s before the window, want all", got)
	}
	if !w.recorder.has("Consolidation waits for the maintenance window") {
		t.Errorf("no event says why: %q", w.recorder.lines)
	}
	w.clock.Step(time.Hour)
	w.run(5)
	if got := w.sizes(); got != "D2" {
		t.Errorf("left are %s in the window, want D2", got)
	}
	w.loop.decider.reader.window = func(context.Context, time.Time) (bool, time.Time, error) {
		return false, time.Time{}, errors.New("no answer")
	}
	for _, o := range machine("idle", "D2") {
		w.create(o)
	}
	w.run(5)
	if got := w.sizes(); got != "D2 D2" {
		t.Errorf("left are %s while nobody knows the window, want the empty one too", got)
	}
}

func TestDriftWaitsWhileItsPoolMustNotBuy(t *testing.T) {
	objects := append([]client.Object{nodePool()}, drifted("old", "D2")...)
	w := newWorld(t, append(objects, running(1, "web", "1900m", "old")...)...)
	w.paused = map[string]string{"general": "no machine registers"}
	w.run(20)
	if got, claims := w.disrupted(), len(w.claims()); got != 0 || claims != 1 {
		t.Errorf("%d nodes are disrupted and there are %d NodeClaims, want none and the old one", got, claims)
	}
	w.paused = nil
	w.run(20)
	if len(w.evicted) == 0 {
		t.Error("the pod has not moved once the NodePool may buy again")
	}
}

func TestExpiringNodeStaysUntilItsExpiry(t *testing.T) {
	objects := all(machine("a", "D2"), running(1, "web", "1500m", "a"))
	claim := objects[1].(*karpv1.NodeClaim)
	claim.Spec.ExpireAfter = karpv1.MustParseNillableDuration("2h")
	claim.CreationTimestamp = metav1.NewTime(time.Now().Add(-50 * time.Minute)) // the clock of the test is an hour ahead
	w := newWorld(t, objects...)
	w.run(20)
	if got := w.claims(); len(got) != 2 || len(w.evicted) != 0 {
		t.Fatalf("ten minutes before its end: %d NodeClaims and evicted %v, want the old one, its replacement, and no eviction", len(got), w.evicted)
	}
	w.clock.Step(11 * time.Minute)
	w.run(5)
	if got := w.claims(); len(got) != 1 || got[0].Name == "a" {
		t.Errorf("after its end: left are %v, want the replacement", got)
	}
	w.wantQuiet()
}

// A node has expired and its drain does not end, since a budget allows no eviction. The next to
// expire is prepared all the same.
func TestExpiredNodeThatStaysHoldsNoPreparation(t *testing.T) {
	now := time.Now().Add(time.Hour) // the clock of the test
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "held", Generation: 1},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &intstr.IntOrString{IntVal: 0}, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "held"}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 2, CurrentHealthy: 2, DesiredHealthy: 2},
	}
	aged := func(name string, age time.Duration) []client.Object {
		objects := machine(name, "D4")
		claim := objects[0].(*karpv1.NodeClaim)
		claim.Spec.ExpireAfter = karpv1.MustParseNillableDuration("1h")
		claim.CreationTimestamp = metav1.NewTime(now.Add(-age))
		return objects
	}
	old := aged("old", 65*time.Minute)
	old[0].(*karpv1.NodeClaim).DeletionTimestamp = &metav1.Time{Time: now.Add(-5 * time.Minute)}
	objects := all(old, aged("next", 57*time.Minute), running(2, "held", "1700m", "old"), running(2, "web", "1700m", "next"))
	w := newWorld(t, append(objects, budget)...)
	for range 3 {
		w.pass()
	}
	if got := len(w.claims()); got != 3 {
		t.Errorf("%d NodeClaims, want two that expire and a replacement of the one that does in 3 minutes; events: %q", got, w.recorder.lines)
	}
}
