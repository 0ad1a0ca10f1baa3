package disruption

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/metrics/metricstest"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
)

// fallIll makes a node silent and its claim due for repair, as the controller of repair does.
func (w *world) fallIll(node string) {
	w.t.Helper()
	w.setReady(node, corev1.ConditionUnknown)
	claim := w.claimOn(node)
	before := claim.DeepCopy()
	drain := 10 * time.Minute
	claim.Annotations = map[string]string{v1beta1.AnnotationRepair: kube.RepairText(&fleet.Repair{
		Condition: "Ready", Since: w.clock.Now(), Drain: &drain,
	})}
	w.must(w.kube.Patch(w.ctx, claim, client.MergeFrom(before)))
}

// recover makes a node healthy again.
func (w *world) recover(node string) {
	w.t.Helper()
	w.setReady(node, corev1.ConditionTrue)
	claim := w.claimOn(node)
	before := claim.DeepCopy()
	delete(claim.Annotations, v1beta1.AnnotationRepair)
	w.must(w.kube.Patch(w.ctx, claim, client.MergeFrom(before)))
}

func (w *world) setReady(name string, to corev1.ConditionStatus) {
	w.t.Helper()
	node := &corev1.Node{}
	w.must(w.kube.Get(w.ctx, client.ObjectKey{Name: name}, node))
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			c.Status = to
		}
	}
	w.must(w.kube.Update(w.ctx, node))
}

// claimOn is the claim of a node.
func (w *world) claimOn(node string) *karpv1.NodeClaim {
	w.t.Helper()
	for _, c := range w.claims() {
		if c.Status.NodeName == node {
			return &c
		}
	}
	w.t.Fatalf("node %s has no NodeClaim", node)
	return nil
}

// TestUnhealthyNodeIsReplacedFirst: the replacement is there before the unhealthy node goes,
// whose pods neither an annotation nor its silence hold back. Its drain is bounded.
func TestUnhealthyNodeIsReplacedFirst(t *testing.T) {
	w := newWorld(t, all(machine("a", "D2"), running(1, "web", "1500m", "a"))...)
	counted := func(name string) float64 { return metricstest.Value(t, ctrlmetrics.Registry, name, "unhealthy") }
	silent := func() float64 {
		return metricstest.Value(t, ctrlmetrics.Registry, "karpenter_nodeclaims_unhealthy_disrupted_total", "ready")
	}
	disrupted, before := counted("karpenter_nodeclaims_disrupted_total"), silent()
	pod := w.pods()[0]
	stored := pod.DeepCopy()
	pod.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"}
	w.must(w.kube.Patch(w.ctx, &pod, client.MergeFrom(stored)))
	w.fallIll("node-a")
	ill := w.claimOn("node-a").Name
	w.pass()
	claims := w.claims()
	if len(claims) != 2 {
		t.Fatalf("there are %d NodeClaims, want the unhealthy one and its replacement", len(claims))
	}
	if c := w.claimOn("node-a"); !c.DeletionTimestamp.IsZero() || c.StatusConditions().Get(karpv1.ConditionTypeDisruptionReason).Reason != "Unhealthy" {
		t.Errorf("the unhealthy claim is %+v, want it to wait for its replacement with the reason Unhealthy", c.Status.Conditions)
	}
	w.restart() // what is under way is not bought again
	w.pass()
	w.cloud()
	for range 4 {
		w.pass()
	}
	c := w.claimOn("node-a")
	end, err := time.Parse(time.RFC3339, c.Annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey])
	if c.DeletionTimestamp.IsZero() || err != nil || end.Sub(w.clock.Now()) > 10*time.Minute || end.Sub(w.clock.Now()) < 9*time.Minute {
		t.Errorf("the unhealthy claim is deleted at %v with the annotations %v, want a drain of ten minutes", c.DeletionTimestamp, c.Annotations)
	}
	w.run(3)
	if claims = w.claims(); len(claims) != 1 || claims[0].Name == ill {
		t.Errorf("%d NodeClaims are left, want the replacement alone", len(claims))
	}
	if got := counted("karpenter_nodeclaims_disrupted_total") - disrupted; got != 1 {
		t.Errorf("Karpenter's metric counts %v unhealthy claims, want 1", got)
	}
	if got := silent() - before; got != 1 {
		t.Errorf("Karpenter's metric counts %v claims for the condition Ready, want 1", got)
	}
	w.wantQuiet()
}

// TestNodeThatRecoversStays: the replacement that no pod needs goes again.
func TestNodeThatRecoversStays(t *testing.T) {
	w := newWorld(t, all(machine("a", "D2"), running(1, "web", "1500m", "a"))...)
	w.fallIll("node-a")
	w.pass()
	if got := len(w.claims()); got != 2 {
		t.Fatalf("there are %d NodeClaims, want the unhealthy one and its replacement", got)
	}
	w.recover("node-a")
	w.cloud()
	w.run(8)
	if claims := w.claims(); len(claims) != 1 || claims[0].Status.NodeName != "node-a" {
		t.Errorf("%d NodeClaims are left, the first on %s, want that of the node that has recovered", len(claims), claims[0].Status.NodeName)
	}
	if len(w.evicted) != 0 {
		t.Errorf("%v were evicted", w.evicted)
	}
	w.wantQuiet()
}

// TestUnhealthyNodeIsNotReplacedForPodsThatAreGone: its pods were evicted when it fell silent,
// and run elsewhere.
func TestUnhealthyNodeIsNotReplacedForPodsThatAreGone(t *testing.T) {
	w := newWorld(t, all(machine("a", "D2"), machine("b", "D2"), running(1, "web", "1500m", "b"))...)
	w.fallIll("node-a")
	for range 6 {
		w.run(1)
		if got := len(w.claims()); got > 2 {
			t.Fatalf("there are %d NodeClaims, want none to be bought", got)
		}
	}
	if got := w.claims(); len(got) != 1 || got[0].Status.NodeName != "node-b" {
		t.Errorf("%d NodeClaims are left, want that of the healthy node", len(got))
	}
	w.wantQuiet()
}

// TestRepairKeepsBudgets: of four unhealthy nodes, no more than the budget allows go at a
// time, each has one replacement, and their own silence does not use the budget up.
func TestRepairKeepsBudgets(t *testing.T) {
	w := newWorld(t, all(machine("a", "D2"), machine("b", "D2"), machine("c", "D2"), machine("d", "D2"),
		running(1, "web", "1500m", "a"), running(1, "web", "1500m", "b"), running(1, "web", "1500m", "c"), running(1, "web", "1500m", "d"))...)
	pool := &karpv1.NodePool{}
	w.must(w.kube.Get(w.ctx, client.ObjectKey{Name: "general"}, pool))
	pool.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "1"}}
	w.must(w.kube.Update(w.ctx, pool))
	for _, node := range []string{"node-a", "node-b", "node-c", "node-d"} {
		w.fallIll(node)
	}
	bought := map[string]bool{}
	for range 60 {
		w.pass()
		going := 0
		for _, c := range w.claims() {
			if c.Annotations[v1beta1.AnnotationCommand] != "" || !c.DeletionTimestamp.IsZero() {
				going++
			}
			if c.Annotations[v1beta1.AnnotationReplaces] != "" {
				bought[c.Name] = true
			}
		}
		if going > 1 {
			t.Fatalf("%d nodes go at once, the budget allows one", going)
		}
		w.cloud()
		w.evict()
		w.terminate()
	}
	if len(bought) != 4 {
		t.Errorf("%d machines were bought for four nodes", len(bought))
	}
	for _, c := range w.claims() {
		if c.Annotations[v1beta1.AnnotationRepair] != "" {
			t.Errorf("%s is not repaired", c.Status.NodeName)
		}
	}
	w.wantQuiet()
}

// With the gate TerminateFirstRepair, an unhealthy node of a static pool at its limit goes
// before its replacement, which the pool makes.
func TestTerminateFirstRepair(t *testing.T) {
	for name, want := range map[string]int{"with the gate": 1, "without the gate": 0} {
		t.Run(name, func(t *testing.T) {
			w := staticWorld(t, staticPool(3, 3), 3)
			for _, c := range w.claims() {
				before := c.DeepCopy()
				c.Status.Conditions = nil
				c.StatusConditions().SetTrue(karpv1.ConditionTypeInitialized)
				w.must(w.kube.Status().Patch(w.ctx, &c, client.MergeFrom(before)))
			}
			w.fallIll(w.claims()[0].Status.NodeName)
			w.terminateFirst = []model.DisruptionReason{model.DisruptDrifted}
			if want > 0 {
				w.terminateFirst = []model.DisruptionReason{model.DisruptUnhealthy}
			}
			w.restart()
			w.pass()
			if got := len(w.loop.commands.active); got != want {
				t.Errorf("%d nodes go, want %d", got, want)
			}
			if got := len(w.claims()); got != 3 {
				t.Errorf("there are %d NodeClaims, want three: nothing is launched beside them", got)
			}
		})
	}
}
