package scenario

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestKeptBudgetsAreThoseThatStayMet(t *testing.T) {
	budget := func(expected, healthy, desired int32) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "b"},
			Status:     policyv1.PodDisruptionBudgetStatus{ExpectedPods: expected, CurrentHealthy: healthy, DesiredHealthy: desired},
		}
	}
	r := &runner{world: &world{kept: newKeeping(func() (map[string]bool, error) { return map[string]bool{"gone": true}, nil })}}
	for _, b := range []*policyv1.PodDisruptionBudget{
		budget(3, 0, 2), budget(3, 3, 2), budget(3, 2, 2), // pods start, and one is evicted
		budget(6, 3, 5), budget(6, 6, 5), // more pods
	} {
		r.world.kept.budget(b)
	}
	if err := r.expectKept("kept", []string{"budgets"}); err != nil {
		t.Error(err)
	}
	r.world.kept.budget(budget(6, 4, 5))
	if err := r.expectKept("kept", []string{"budgets"}); err == nil || !strings.Contains(err.Error(), "default/web: 4 of 6 pods were healthy, and it wants 5") {
		t.Errorf("a budget that is broken: %v", err)
	}
}

func TestKeptPodsAreEvictedAtMost(t *testing.T) {
	pod := func(name, reason string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), Labels: map[string]string{"app": name}}}
		if reason != "" {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason}}
		}
		return p
	}
	r := &runner{world: &world{kept: newKeeping(func() (map[string]bool, error) { return map[string]bool{"gone": true}, nil })}}
	r.world.kept.podGone(pod("web", "EvictionByEvictionAPI"))
	r.world.kept.podGone(pod("db", ""))
	if err := r.expectKept("kept", []string{"pods"}); err != nil {
		t.Error(err)
	}
	if err := r.expectUnmoved([]string{"app=precious"}); err != nil {
		t.Error(err)
	}
	if err := r.expectUnmoved([]string{"app=web"}); err == nil || err.Error() != "pod web is gone" {
		t.Errorf("an evicted pod has moved: %v", err)
	}
	r.world.kept.pod(pod("lost", "DeletionByPodGC"))
	if err := r.expectKept("kept", []string{"pods"}); err == nil || !strings.Contains(err.Error(), "lost on : DeletionByPodGC") {
		t.Errorf("a pod whose node went: %v", err)
	}
}

func TestDisruptedAtOnceCountsNodesTogether(t *testing.T) {
	node := func(name string, going bool) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if going {
			n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted"}}
		}
		return n
	}
	r := &runner{world: &world{kept: newKeeping(func() (map[string]bool, error) { return map[string]bool{"gone": true}, nil })}}
	k := r.world.kept
	k.node(node("a", true))
	k.nodeGone(node("a", true))
	k.node(node("b", true))
	k.node(node("b", false))   // given back
	k.node(node("gone", true)) // its machine goes
	k.node(node("c", true))
	if err := r.expectKept("disrupted-at-once", []string{"<=1"}); err != nil {
		t.Error(err)
	}
	k.node(node("d", true))
	if err := r.expectKept("disrupted-at-once", []string{"<=1"}); err == nil || err.Error() != "2 nodes were being removed at once" {
		t.Errorf("two at once: %v", err)
	}
}
