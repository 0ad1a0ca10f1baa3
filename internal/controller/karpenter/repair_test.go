package karpenter

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

// repairsSilentNodes is a provider whose nodes are replaced ten minutes after they say
// nothing, and rebooted ten minutes after their kernel hangs.
type repairsSilentNodes struct{ cloudprovider.CloudProvider }

func (repairsSilentNodes) RepairPolicies() []cloudprovider.RepairPolicy {
	return []cloudprovider.RepairPolicy{{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionUnknown,
		TolerationDuration: 10 * time.Minute, TerminationGracePeriod: new(5 * time.Minute), Action: cloudprovider.ReplaceNode},
		{ConditionType: "KernelDeadlock", ConditionStatus: corev1.ConditionTrue, ReasonRegex: ".*",
			TolerationDuration: 10 * time.Minute, TerminationGracePeriod: new(3 * time.Minute), Action: cloudprovider.RebootNode}}
}

// repairFixture are ten nodes of a NodePool, and Karpenter's state of them.
type repairFixture struct {
	*testing.T
	*repair
	ctx    context.Context
	events *record.FakeRecorder
	clock  *clocktesting.FakeClock
}

const nodeCount = 10

func newRepairFixture(t *testing.T, budgets []v1.Budget, change func(name string, node *corev1.Node, claim *v1.NodeClaim)) *repairFixture {
	t.Helper()
	clk := clocktesting.NewFakeClock(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	long := metav1.NewTime(clk.Now().Add(-time.Hour))
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	pool.Spec.Disruption.Budgets = budgets
	objects := []client.Object{pool}
	for i := range nodeCount {
		name := fmt.Sprint("node-", i)
		labels := map[string]string{v1.NodePoolLabelKey: "general", v1.NodeRegisteredLabelKey: "true", v1.NodeInitializedLabelKey: "true"}
		claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim-" + name, Labels: labels, Finalizers: []string{v1.TerminationFinalizer}},
			Status: v1.NodeClaimStatus{NodeName: name, ProviderID: "azure:///" + name}}
		for _, c := range []string{v1.ConditionTypeLaunched, v1.ConditionTypeRegistered, v1.ConditionTypeInitialized} {
			claim.StatusConditions().SetTrue(c)
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: labels}, Spec: corev1.NodeSpec{ProviderID: "azure:///" + name},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: long}}}}
		change(name, node, claim)
		objects = append(objects, node, claim)
	}
	b := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithStatusSubresource(&v1.NodeClaim{}, &corev1.Node{})
	for _, ix := range Indexes() {
		b = b.WithIndex(ix.Object, ix.Field, ix.Extract)
	}
	kube, told := b.Build(), record.NewFakeRecorder(100)
	ctx := options.ToContext(t.Context(), &options.Options{})
	cluster := Cluster{state.NewCluster(clk, kube, repairsSilentNodes{})}
	for _, o := range objects {
		switch o := o.(type) {
		case *v1.NodeClaim:
			cluster.UpdateNodeClaim(o)
		case *corev1.Node:
			if err := cluster.UpdateNode(ctx, o); err != nil {
				t.Fatal(err)
			}
		}
	}
	recorder := events.NewRecorder(told)
	return &repairFixture{T: t, ctx: ctx, events: told, clock: clk, repair: newRepair(kube, repairsSilentNodes{}, cluster, clk, recorder)}
}

// silent makes a node say nothing since so long.
func silent(node *corev1.Node, since time.Duration) {
	c := &node.Status.Conditions[0]
	c.Status, c.LastTransitionTime = corev1.ConditionUnknown, metav1.NewTime(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC).Add(-since))
}

// visit looks at all nodes at once, as the controller does, and returns those that are
// given up.
func (h *repairFixture) visit() (givenUp []string) {
	h.Helper()
	var wg sync.WaitGroup
	for i := range nodeCount {
		wg.Go(func() {
			node := &corev1.Node{}
			if err := h.kube.Get(h.ctx, types.NamespacedName{Name: fmt.Sprint("node-", i)}, node); err != nil {
				h.Error(err)
				return
			}
			if _, err := h.Reconcile(h.ctx, node); err != nil {
				h.Error(err)
			}
		})
	}
	wg.Wait()
	claims := &v1.NodeClaimList{}
	if err := h.kube.List(h.ctx, claims); err != nil {
		h.Fatal(err)
	}
	for i := range claims.Items {
		if !claims.Items[i].DeletionTimestamp.IsZero() {
			givenUp = append(givenUp, claims.Items[i].Status.NodeName)
		}
	}
	return givenUp
}

func TestRepairObeysBudgetsAndAnnotations(t *testing.T) {
	unhealthy := v1.DisruptionReasonUnhealthy
	for name, row := range map[string]struct {
		budgets []v1.Budget
		change  func(name string, node *corev1.Node, claim *v1.NodeClaim)
		want    int
		event   string
	}{
		"both unhealthy": {want: 2},
		"one at a time":  {budgets: []v1.Budget{{Nodes: "1"}}, want: 1, event: "blocked by the budgets of NodePool general"},
		"none for this reason": {budgets: []v1.Budget{{Nodes: "0", Reasons: []v1.DisruptionReason{unhealthy}}, {Nodes: "100%"}},
			event: "blocked by the budgets of NodePool general"},
		"budget of another reason": {budgets: []v1.Budget{{Nodes: "0", Reasons: []v1.DisruptionReason{v1.DisruptionReasonDrifted}}}, want: 2},
		"annotated node": {change: func(_ string, node *corev1.Node, _ *v1.NodeClaim) {
			node.Annotations = map[string]string{"karpenter.sh/do-not-repair": "true"}
		}, event: "blocked by the annotation karpenter.sh/do-not-repair"},
		"annotated claim": {change: func(_ string, _ *corev1.Node, claim *v1.NodeClaim) {
			claim.Annotations = map[string]string{"karpenter.sh/do-not-repair": "true"}
		}, event: "blocked by the annotation karpenter.sh/do-not-repair"},
		"command under way": {budgets: []v1.Budget{{Nodes: "1"}}, change: func(name string, _ *corev1.Node, claim *v1.NodeClaim) {
			if name == "node-7" {
				claim.StatusConditions().SetTrueWithReason(v1.ConditionTypeDisruptionReason, "Underutilized", "Underutilized")
			}
		}, event: "blocked by the budgets of NodePool general"},
		"one of two has healed": {change: func(name string, node *corev1.Node, _ *v1.NodeClaim) {
			if name == "node-3" {
				node.Status.Conditions[0].Status = corev1.ConditionTrue
			}
		}, want: 1},
		"three of ten": {change: func(name string, node *corev1.Node, _ *v1.NodeClaim) {
			if name == "node-5" {
				silent(node, time.Second) // tolerated, and yet one too many
			}
		}, event: "more than 20% nodes are unhealthy"},
		"silent for nine minutes": {change: func(_ string, node *corev1.Node, _ *v1.NodeClaim) {
			if node.Status.Conditions[0].Status == corev1.ConditionUnknown {
				silent(node, 9*time.Minute)
			}
		}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			if row.budgets == nil {
				row.budgets = []v1.Budget{{Nodes: "100%"}}
			}
			h := newRepairFixture(t, row.budgets, func(name string, node *corev1.Node, claim *v1.NodeClaim) {
				if name == "node-3" || name == "node-4" {
					silent(node, 11*time.Minute)
				}
				if row.change != nil {
					row.change(name, node, claim)
				}
			})
			if got := h.visit(); len(got) != 0 {
				t.Errorf("given up at the first look: %v", got)
			}
			h.clock.Step(secondLook)
			for range 2 { // what was given up the first time counts the second time
				if got := h.visit(); len(got) != row.want {
					t.Errorf("given up are %v, want %d", got, row.want)
				}
			}
			close(h.events.Events)
			told := ""
			for e := range h.events.Events {
				told += e + "\n"
			}
			if row.event == "" && told != "" || !strings.Contains(told, row.event) {
				t.Errorf("events:\n%swant %q", told, row.event)
			}
		})
	}
}

// The drain of a repaired node ends after the bound of the policy, or of the claim where
// that is shorter.
func TestRepairBoundsTheDrain(t *testing.T) {
	h := newRepairFixture(t, []v1.Budget{{Nodes: "100%"}}, func(name string, node *corev1.Node, claim *v1.NodeClaim) {
		switch name {
		case "node-3":
			silent(node, time.Hour)
		case "node-4":
			silent(node, time.Hour)
			claim.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Minute}
		}
	})
	h.visit()
	h.clock.Step(secondLook)
	h.visit()
	for name, want := range map[string]time.Duration{"node-3": 5 * time.Minute, "node-4": time.Minute} {
		claim := &v1.NodeClaim{}
		if err := h.kube.Get(h.ctx, types.NamespacedName{Name: "claim-" + name}, claim); err != nil {
			t.Fatal(err)
		}
		got := claim.Annotations[v1.NodeClaimTerminationTimestampAnnotationKey]
		if end := h.clock.Now().Add(want).Format(time.RFC3339); got != end {
			t.Errorf("the drain of %s ends at %q, want %s", name, got, end)
		}
	}
}

// A node that was seen unhealthy and heals begins again.
func TestRepairForgetsWhatHeals(t *testing.T) {
	h := newRepairFixture(t, []v1.Budget{{Nodes: "100%"}}, func(name string, node *corev1.Node, _ *v1.NodeClaim) {
		if name == "node-3" {
			silent(node, time.Hour)
		}
	})
	set := func(status corev1.ConditionStatus) {
		node := &corev1.Node{}
		if err := h.kube.Get(h.ctx, types.NamespacedName{Name: "node-3"}, node); err != nil {
			t.Fatal(err)
		}
		node.Status.Conditions[0].Status = status
		if err := h.kube.Status().Update(h.ctx, node); err != nil {
			t.Fatal(err)
		}
	}
	h.visit()
	set(corev1.ConditionTrue)
	h.visit()
	set(corev1.ConditionUnknown)
	h.clock.Step(secondLook)
	if got := h.visit(); len(got) != 0 {
		t.Errorf("given up %v at the first look after it had healed", got)
	}
	h.clock.Step(secondLook)
	if got := h.visit(); len(got) != 1 {
		t.Errorf("given up %v, want the node that is unhealthy again", got)
	}
}
