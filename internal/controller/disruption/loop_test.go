package disruption

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/metrics/metricstest"
	"github.com/nodeautoprovision/nap/internal/model"
)

// half is a fleet of four small nodes with a pod each, which fit on one.
func half() []client.Object {
	return all(machine("a", "D2"), machine("b", "D2"), machine("c", "D2"), machine("d", "D2"),
		running(1, "web", "400m", "a"), running(1, "web", "400m", "b"), running(1, "web", "400m", "c"), running(1, "web", "400m", "d"))
}

// large are two large nodes whose pods fit on one that is smaller.
func large() []client.Object {
	return all(machine("a", "D16"), machine("b", "D16"), running(1, "web", "1500m", "a"), running(1, "web", "1500m", "b"))
}

func TestConsolidationDeletesNodesWhosePodsFitElsewhere(t *testing.T) {
	w := newWorld(t, half()...)
	const policy = "when_empty_or_underutilized"
	counted := func(name string) float64 { return metricstest.Value(t, ctrlmetrics.Registry, name, policy) }
	claims, pods := counted("karpenter_nodeclaims_disrupted_total"), counted("karpenter_pods_disruption_initiated_total")
	w.run(5)
	claims, pods = counted("karpenter_nodeclaims_disrupted_total")-claims, counted("karpenter_pods_disruption_initiated_total")-pods
	if claims != 3 || pods != 3 {
		t.Errorf("Karpenter's metrics count %v claims and %v pods for policy %s, want 3 and 3", claims, pods, policy)
	}
	if got := w.sizes(); got != "D2" {
		t.Errorf("left are %s, want D2", got)
	}
	w.wantQuiet()
	if saved := metricstest.Value(t, w.registry, "nap_disruption_saved_dollars_per_hour_total", ""); saved < 0.299 || saved > 0.301 {
		t.Errorf("the metric says that $%.3f/h were saved, want $0.300/h", saved)
	}
	if evicted := metricstest.Value(t, w.registry, "nap_disruption_evictions_total", ""); evicted != 3 {
		t.Errorf("the metric says that %v pods were evicted, want 3", evicted)
	}
	if !w.recorder.has("DisruptionTerminating") {
		t.Errorf("no event says that nodes go: %q", w.recorder.lines)
	}
}

func TestReplacementReadyBeforeEviction(t *testing.T) {
	w := newWorld(t, large()...)
	w.pass()
	w.pass()
	if got := len(w.claims()); got != 3 {
		t.Fatalf("%d NodeClaims, want the two old ones and a new one", got)
	}
	for _, n := range w.nodes() {
		if !tainted(&n) {
			t.Errorf("node %s takes new pods although it is about to go", n.Name)
		}
	}
	for range 5 {
		w.pass()
	}
	if got := w.sizes(); got != "D16 D16" {
		t.Fatalf("nodes are %s before their replacement is there", got)
	}
	w.run(5)
	if got := w.sizes(); got != "D4" {
		t.Errorf("left are %s, want D4", got)
	}
	w.wantQuiet()
}

func TestCommandRolledBackWhenReplacementUnavailable(t *testing.T) {
	w := newWorld(t, large()...)
	w.soldOut = true
	w.pass()
	w.cloud()
	w.clock.Step(observeWithin)
	w.pass()
	w.pass()
	if got := w.sizes(); got != "D16 D16" {
		t.Errorf("left are %s, want both", got)
	}
	w.wantQuiet()
	w.run(10)
	if n := metricstest.Value(t, w.registry, "nap_disruption_moves_total", "begun"); n != 1 {
		t.Errorf("%v moves were begun within the rest of a minute, want 1", n)
	}
	if !w.recorder.has("Disruption was rolled back: replacement") {
		t.Errorf("no event says why: %q", w.recorder.lines)
	}
	w.soldOut = false
	w.clock.Step(2 * time.Minute)
	w.run(6)
	if got := w.sizes(); got != "D4" {
		t.Errorf("after the rest, left are %s, want D4", got)
	}
	w.wantQuiet()
}

func TestCommandRolledBackWhenNoLongerValid(t *testing.T) {
	w := newWorld(t, large()...)
	w.pass()
	w.cloud()
	// While the replacement came up, a pod was annotated not to be moved.
	pod := &corev1.Pod{}
	w.must(w.kube.Get(w.ctx, types.NamespacedName{Namespace: "default", Name: "web-a-0"}, pod))
	pod.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"}
	w.must(w.kube.Update(w.ctx, pod))
	w.run(6)
	if got := len(w.pods()); got != 2 {
		t.Fatalf("%d pods", got)
	}
	w.must(w.kube.Get(w.ctx, types.NamespacedName{Namespace: "default", Name: "web-a-0"}, pod))
	if pod.Spec.NodeName != "node-a" {
		t.Errorf("the pod that must not be disrupted is on %s", pod.Spec.NodeName)
	}
	w.run(60)
	if got := w.sizes(); got != "D16" {
		t.Errorf("left are %s; want the node of the pod that stays, with the other pod on it, and no replacement", got)
	}
	w.wantQuiet()
}

func TestCommandsRunInParallelWithinBudget(t *testing.T) {
	pool := nodePool(func(np *karpv1.NodePool) { np.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "2"}} })
	objects := []client.Object{pool}
	for i := range 6 {
		name := fmt.Sprintf("m%d", i)
		objects = append(objects, machine(name, "D2")...)
		objects = append(objects, running(1, "web", "250m", name)...)
	}
	w := newWorld(t, objects...)
	least := 6
	for range 12 {
		w.pass()
		w.pass()
		leaving := 0
		for _, c := range w.claims() {
			if !c.DeletionTimestamp.IsZero() {
				leaving++
			}
		}
		if leaving > 2 {
			t.Fatalf("%d nodes leave at once, the budget is 2", leaving)
		}
		if leaving == 2 {
			least = min(least, len(w.nodes()))
		}
		w.terminate()
	}
	if got := w.sizes(); got != "D2" {
		t.Errorf("left are %s, want D2", got)
	}
	if least == 6 {
		t.Error("two nodes never left at the same time")
	}
	w.wantQuiet()
}

func TestPodDisruptionBudgetBlocksNodeWithEvent(t *testing.T) {
	pdb := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &intstr.IntOrString{IntVal: 0}, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}
	w := newWorld(t, append(half(), pdb)...)
	w.run(5)
	if got := w.sizes(); got != "D2 D2 D2 D2" {
		t.Errorf("left are %s, want all", got)
	}
	if !w.recorder.has("DisruptionBlocked node-a: PodDisruptionBudget default/web never allows an eviction of pod") {
		t.Errorf("no event names the budget: %q", w.recorder.lines)
	}
	if n := len(w.recorder.lines); n != 8 {
		t.Errorf("%d events, want one per node and claim: %q", n, w.recorder.lines)
	}
}

func TestPendingPodDoesNotBlockConsolidation(t *testing.T) {
	objects := half()
	waiting := running(1, "huge", "500", "a")[0].(*corev1.Pod)
	waiting.Spec.NodeName, waiting.Status = "", corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
	}}
	w := newWorld(t, append(objects, waiting)...)
	w.run(5)
	if got := w.sizes(); got != "D2" {
		t.Errorf("left are %s, want D2", got)
	}
}

// TestCommandResumesAfterKillAtAnyWrite kills the controller at every
// single write of a move, before it and after it, and lets a new one go on.
func TestCommandResumesAfterKillAtAnyWrite(t *testing.T) {
	for name, c := range map[string]struct {
		fleet func() []client.Object
		later func(*world)
		want  string
	}{"delete": {half, nothing, "D2"}, "replace": {large, nothing, "D4"}, "narrow": {three, hold, "D16"}} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s late=%t", name, late), func(t *testing.T) {
				for at := 1; ; at++ {
					w := newWorld(t, c.fleet()...)
					w.dieAt, w.lateDeath = at, late
					w.pass()
					c.later(w)
					w.run(3)
					died := w.writes >= at
					w.restart()
					w.run(3)
					w.clock.Step(observeWithin)
					w.run(5)
					w.clock.Step(2 * restAtLeast)
					w.run(8)
					if got := w.sizes(); got != c.want {
						t.Errorf("killed at write %d: left are %s, want %s", at, got, c.want)
					}
					w.wantQuiet()
					if t.Failed() || !died {
						return
					}
				}
			})
		}
	}
}

func TestOrphanedDisruptionTaintIsRemoved(t *testing.T) {
	objects := all(machine("a", "D2"), running(4, "web", "400m", "a"))
	node := objects[2].(*corev1.Node)
	node.Spec.Taints = []corev1.Taint{karpv1.DisruptedNoScheduleTaint}
	w := newWorld(t, objects...)
	w.run(2)
	if n := w.nodes()[0]; !tainted(&n) {
		t.Error("the taint was removed at once, though somebody may be about to use it")
	}
	w.run(10)
	w.wantQuiet()
}

func TestManuallyDeletedNodeKeepsTaint(t *testing.T) {
	w := newWorld(t, all(machine("a", "D2"), machine("b", "D2"), running(4, "web", "400m", "a"), running(4, "web", "400m", "b"))...)
	node := w.nodes()[0]
	node.Spec.Taints = []corev1.Taint{karpv1.DisruptedNoScheduleTaint}
	node.Finalizers = []string{karpv1.TerminationFinalizer}
	w.must(w.kube.Update(w.ctx, &node))
	w.delete(&node)
	for range 20 {
		w.pass()
	}
	w.must(w.kube.Get(w.ctx, client.ObjectKeyFromObject(&node), &node))
	if !tainted(&node) {
		t.Error("the termination's own taint was removed")
	}
}

func TestMalformedCommandRecordIsRolledBack(t *testing.T) {
	objects := all(machine("a", "D2"), running(4, "web", "400m", "a"))
	objects[1].SetAnnotations(map[string]string{v1beta1.AnnotationCommand: "{"})
	objects[2].(*corev1.Node).Spec.Taints = []corev1.Taint{karpv1.DisruptedNoScheduleTaint}
	w := newWorld(t, objects...)
	w.wantQuiet()
}

func TestActivityLastsAsLongAsDecision(t *testing.T) {
	w := newWorld(t, half()...)
	plan, busy := w.loop.decider.plan, false
	w.loop.decider.plan = func(p *model.DisruptionProblem) *model.Commands {
		busy = !w.loop.Activity().Since().IsZero()
		return plan(p)
	}
	w.pass()
	if !busy || !w.loop.Activity().Since().IsZero() {
		t.Errorf("busy while it decides: %t; since %s when it is over", busy, w.loop.Activity().Since())
	}
}
