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

	"github.com/nodeautoprovision/nap/internal/kube"
)

// repairsSilentNodes is a provider whose nodes are replaced ten minutes after they say
// nothing, and rebooted ten minutes after their kernel hangs.
type repairsSilentNodes struct{ cloudprovider.CloudProvider }

func (repairsSilentNodes) RepairPolicies() []cloudprovider.RepairPolicy {
	return []cloudprovider.RepairPolicy{{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionUnknown,
		TolerationDuration: 10 * time.Minute, TerminationGracePeriod: new(5 * time.Minute), Action: cloudprovider.ReplaceNode},
		{ConditionType: "PreemptionScheduled", ConditionStatus: corev1.ConditionTrue, ReasonRegex: ".*",
			TerminationGracePeriod: new(30 * time.Second), Action: cloudprovider.ReplaceNode},
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

// preempted makes a node say that Azure takes its machine back.
func preempted(node *corev1.Node) {
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: "PreemptionScheduled",
		Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))})
}

// visit looks at all nodes at once, as the controller does, and returns those that are
// marked for replacement and those that are given up.
func (h *repairFixture) visit() (marked, givenUp []string) {
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
		} else if kube.RepairOf(&claims.Items[i]) != nil {
			marked = append(marked, claims.Items[i].Status.NodeName)
		}
	}
	return marked, givenUp
}

// Unhealthy nodes are marked whatever the budgets say, which the disruption loop obeys. An
// annotation and too many unhealthy nodes are vetoes.
func TestRepairMarksWhatIsDue(t *testing.T) {
	unhealthy := v1.DisruptionReasonUnhealthy
	for name, row := range map[string]struct {
		budgets []v1.Budget
		change  func(name string, node *corev1.Node, claim *v1.NodeClaim)
		want    int
		event   string
	}{
		"both unhealthy": {want: 2},
		"one at a time":  {budgets: []v1.Budget{{Nodes: "1"}}, want: 2},
		"none for this reason": {budgets: []v1.Budget{{Nodes: "0", Reasons: []v1.DisruptionReason{unhealthy}}, {Nodes: "100%"}}, want: 2,
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
		}, want: 2, event: "blocked by the budgets of NodePool general"},
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
			if marked, givenUp := h.visit(); len(marked)+len(givenUp) != 0 {
				t.Errorf("at the first look %v are marked, %v given up", marked, givenUp)
			}
			h.clock.Step(secondLook)
			for range 2 {
				if marked, givenUp := h.visit(); len(marked) != row.want || len(givenUp) != 0 {
					t.Errorf("marked are %v, want %d; given up %v, want none", marked, row.want, givenUp)
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
		got := kube.RepairOf(h.claimOf(name))
		if got == nil || got.Drain == nil || *got.Drain != want || got.Condition != "Ready" || !got.Since.Equal(h.clock.Now().Add(-secondLook)) {
			t.Errorf("%s is marked with %+v, want a drain of %s for its condition Ready", name, got, want)
		}
	}
}

// A node that is about to vanish is given up at once, within the budgets; one that never ran
// a pod or that has no NodePool is so whatever they say. All are drained for a bounded time.
func TestRepairGivesUpWhatCannotWait(t *testing.T) {
	h := newRepairFixture(t, []v1.Budget{{Nodes: "1"}}, func(name string, node *corev1.Node, _ *v1.NodeClaim) {
		if name == "node-3" || name == "node-4" {
			preempted(node)
		}
	})
	for range 2 { // what was given up the first time counts the second time
		if marked, givenUp := h.visit(); len(marked) != 0 || len(givenUp) != 1 {
			t.Errorf("marked are %v, given up %v, want one given up", marked, givenUp)
		}
	}
	for name, change := range map[string]func(node *corev1.Node, claim *v1.NodeClaim){
		"never ran a pod": func(node *corev1.Node, _ *v1.NodeClaim) { delete(node.Labels, v1.NodeInitializedLabelKey) },
		"no NodePool": func(node *corev1.Node, claim *v1.NodeClaim) {
			delete(node.Labels, v1.NodePoolLabelKey)
			delete(claim.Labels, v1.NodePoolLabelKey)
		},
	} {
		h := newRepairFixture(t, []v1.Budget{{Nodes: "0"}}, func(name string, node *corev1.Node, claim *v1.NodeClaim) {
			if name == "node-3" {
				silent(node, time.Hour)
				change(node, claim)
			}
		})
		h.visit()
		h.clock.Step(secondLook)
		if marked, givenUp := h.visit(); len(marked) != 0 || len(givenUp) != 1 {
			t.Errorf("%s: marked are %v, given up %v, want one given up", name, marked, givenUp)
		}
		end := h.clock.Now().Add(5 * time.Minute).Format(time.RFC3339)
		if got := h.claimOf("node-3").Annotations[v1.NodeClaimTerminationTimestampAnnotationKey]; got != end {
			t.Errorf("%s: the drain ends at %q, want %s", name, got, end)
		}
	}
}

// Budgets in percent allow nothing of a NodePool whose first nodes never become able to run
// pods, and yet these must go.
func TestRepairOfUninitializedNodesTakesNoBudget(t *testing.T) {
	h := newRepairFixture(t, []v1.Budget{{Nodes: "10%"}}, func(name string, node *corev1.Node, _ *v1.NodeClaim) {
		delete(node.Labels, v1.NodeInitializedLabelKey)
		if name == "node-3" || name == "node-4" {
			silent(node, time.Hour)
		}
	})
	h.visit()
	h.clock.Step(secondLook)
	if marked, givenUp := h.visit(); len(marked) != 0 || len(givenUp) != 2 {
		t.Errorf("marked are %v, given up %v, want both nodes given up", marked, givenUp)
	}
}

// A condition without a date, or with one from before its node, has lasted for as long as
// the node exists.
func TestConditionIsNoOlderThanItsNode(t *testing.T) {
	h := newRepairFixture(t, []v1.Budget{{Nodes: "100%"}}, func(name string, node *corev1.Node, _ *v1.NodeClaim) {
		if name == "node-3" || name == "node-4" {
			silent(node, time.Hour)
			node.CreationTimestamp = metav1.NewTime(time.Date(2026, 3, 2, 11, 55, 0, 0, time.UTC))
		}
		if name == "node-4" {
			node.Status.Conditions[0].LastTransitionTime = metav1.Time{}
		}
	})
	// Five minutes of ten are left when they are seen first.
	for _, step := range []struct {
		wait time.Duration
		want int
	}{{0, 0}, {secondLook, 0}, {5 * time.Minute, 0}, {secondLook, 2}} {
		h.clock.Step(step.wait)
		if marked, _ := h.visit(); len(marked) != step.want {
			t.Errorf("%s: marked are %v, want %d", h.clock.Now().Format(time.TimeOnly), marked, step.want)
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
	if marked, _ := h.visit(); len(marked) != 0 {
		t.Errorf("marked %v at the first look after it had healed", marked)
	}
	h.clock.Step(secondLook)
	if marked, _ := h.visit(); len(marked) != 1 {
		t.Errorf("marked %v, want the node that is unhealthy again", marked)
	}
	// A new process looks a second time, too; what is marked stays so meanwhile.
	h.dueSince = map[types.UID]time.Time{}
	if marked, _ := h.visit(); len(marked) != 1 {
		t.Errorf("marked %v after a restart, want the node that is unhealthy", marked)
	}
	set(corev1.ConditionTrue)
	if marked, _ := h.visit(); len(marked) != 0 {
		t.Errorf("marked %v, which has healed", marked)
	}
}
