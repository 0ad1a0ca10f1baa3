package karpenter

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// hung makes a node say since so long that its kernel hangs.
func hung(node *corev1.Node, since time.Duration) {
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: "KernelDeadlock", Status: corev1.ConditionTrue, Reason: "DockerHung",
		LastTransitionTime: metav1.NewTime(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC).Add(-since))})
}

// claimOf reads the claim of a node.
func (h *repairFixture) claimOf(node string) *v1.NodeClaim {
	h.Helper()
	claim := &v1.NodeClaim{}
	if err := h.kube.Get(h.ctx, types.NamespacedName{Name: "claim-" + node}, claim); err != nil {
		h.Fatal(err)
	}
	return claim
}

// rebooting are the nodes of which a reboot is asked for.
func (h *repairFixture) rebooting() (nodes []string) {
	h.Helper()
	for i := range nodeCount {
		if name := fmt.Sprint("node-", i); h.claimOf(name).StatusConditions().Get(v1.ConditionTypeRebooting).IsTrue() {
			nodes = append(nodes, name)
		}
	}
	return nodes
}

// end ends the reboot of a node, as Karpenter's controller of reboots does.
func (h *repairFixture) end(node string) {
	h.Helper()
	claim := h.claimOf(node)
	claim.StatusConditions().SetFalse(v1.ConditionTypeRebooting, v1.RebootReasonSucceeded, "node rebooted and rejoined the cluster")
	for i := range claim.Status.Conditions {
		if c := &claim.Status.Conditions[i]; c.Type == v1.ConditionTypeRebooting {
			c.LastTransitionTime = metav1.NewTime(h.clock.Now())
		}
	}
	if err := h.kube.Status().Update(h.ctx, claim); err != nil {
		h.Fatal(err)
	}
	h.cluster.UpdateNodeClaim(claim)
}

func TestHungNodeIsRebootedTwiceAndThenReplaced(t *testing.T) {
	h := newRepairFixture(t, []v1.Budget{{Nodes: "100%"}}, func(name string, node *corev1.Node, claim *v1.NodeClaim) {
		if name == "node-3" {
			hung(node, 11*time.Minute)
			claim.Spec.TerminationGracePeriod = &metav1.Duration{Duration: 2 * time.Minute}
		}
	})
	look := func() []string {
		t.Helper()
		h.visit()
		h.clock.Step(secondLook)
		marked, givenUp := h.visit()
		return append(marked, givenUp...)
	}
	for n := range rebootsAtMost {
		if gone := look(); len(gone) != 0 || len(h.rebooting()) != 1 {
			t.Fatalf("fault %d: given up are %v, rebooted %v; want node-3 to be rebooted", n+1, gone, h.rebooting())
		}
		claim := h.claimOf("node-3")
		if got := claim.Annotations[v1.RebootTerminationGracePeriodAnnotationKey]; got != "2m0s" {
			t.Errorf("the drain before the reboot takes %q, want the claim's two minutes", got)
		}
		if c := claim.StatusConditions().Get(v1.ConditionTypeRebooting); c.Reason != v1.RebootReasonRequested || c.Message != "rebooting for KernelDeadlock/DockerHung" {
			t.Errorf("the condition is %+v", c)
		}
		if !claim.StatusConditions().Get(v1.ConditionTypeDisruptionReason).IsTrue() {
			t.Error("the claim does not say why it is disrupted")
		}
		if gone := look(); len(gone) != 0 {
			t.Errorf("given up while it reboots: %v", gone)
		}
		h.end("node-3")
		// The fault is still there. It counts from the end of the reboot.
		if gone := look(); len(gone) != 0 || len(h.rebooting()) != 0 {
			t.Errorf("given up are %v, rebooted %v just after the reboot", gone, h.rebooting())
		}
		if h.claimOf("node-3").StatusConditions().Get(v1.ConditionTypeDisruptionReason).IsTrue() {
			t.Error("the claim says after the reboot that it is disrupted")
		}
		h.clock.Step(10 * time.Minute)
	}
	if gone := look(); len(gone) != 1 || gone[0] != "node-3" {
		t.Errorf("to be replaced are %v after two reboots, want node-3", gone)
	}
}

func TestRebootsObeyBudgets(t *testing.T) {
	h := newRepairFixture(t, []v1.Budget{{Nodes: "1"}}, func(name string, node *corev1.Node, _ *v1.NodeClaim) {
		if name == "node-3" || name == "node-4" {
			hung(node, time.Hour)
		}
	})
	h.visit()
	h.clock.Step(secondLook)
	for range 3 {
		h.visit()
		if got := h.rebooting(); len(got) != 1 {
			t.Fatalf("%v reboot at once, the budget allows one", got)
		}
	}
	first := h.rebooting()[0]
	h.end(first)
	h.clock.Step(time.Minute)
	h.visit()
	if got := h.rebooting(); len(got) != 1 || got[0] == first {
		t.Errorf("%v reboot after %s is back, want the other one", got, first)
	}
}

func TestSilentNodeIsReplacedAlthoughItsKernelHangs(t *testing.T) {
	h := newRepairFixture(t, []v1.Budget{{Nodes: "100%"}}, func(name string, node *corev1.Node, _ *v1.NodeClaim) {
		if name == "node-3" {
			silent(node, time.Hour)
			hung(node, time.Hour)
		}
	})
	h.visit()
	h.clock.Step(secondLook)
	if marked, _ := h.visit(); len(marked) != 1 || len(h.rebooting()) != 0 {
		t.Errorf("marked are %v, rebooted %v; want node-3 to be replaced", marked, h.rebooting())
	}
}

func TestRebootsOfADayAreForgotten(t *testing.T) {
	h, day := rebootHistory{}, time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	h.add("a", day)
	h.add("a", day.Add(time.Hour))
	if !h.exhausted("a", day.Add(23*time.Hour)) || h.exhausted("a", day.Add(24*time.Hour)) {
		t.Error("two reboots exhaust a node for as long as both are of the last day")
	}
	h.add("b", day.Add(48*time.Hour))
	if len(h) != 1 {
		t.Errorf("kept are %v, want those of the last day alone", h)
	}
}
