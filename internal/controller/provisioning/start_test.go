package provisioning

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

func TestPodsReplannedOnlyWhenNodeIsDeleting(t *testing.T) {
	node := readyNode("leaving")
	node.Spec.Taints = []corev1.Taint{karpv1.DisruptedNoScheduleTaint}
	pod := waitingPods(1, "1")[0].(*corev1.Pod)
	pod.Spec.NodeName, pod.Status = "leaving", corev1.PodStatus{Phase: corev1.PodRunning}
	w := newWorld(t, nodePool(), node, pod)
	w.plan()
	w.wantClaims(0) // the loop that put the taint there buys the replacement
	w.cluster.leaving["leaving"] = true
	w.plan()
	w.wantClaims(1)
}

// Karpenter's mirror is empty when the first plan of a start is made.
func TestPodsOfDeletedNodesAreReplannedAtOnce(t *testing.T) {
	for _, claimed := range []bool{false, true} {
		node := readyNode("leaving")
		node.Spec.Taints = []corev1.Taint{karpv1.DisruptedNoScheduleTaint}
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "old", Finalizers: []string{karpv1.TerminationFinalizer}}}
		claim.Status.ProviderID, claim.Status.NodeName = node.Spec.ProviderID, node.Name
		deleted := client.Object(claim)
		if !claimed {
			node.Finalizers = claim.Finalizers
			deleted = node
		}
		pod := waitingPods(1, "1")[0].(*corev1.Pod)
		pod.Spec.NodeName, pod.Status = "leaving", corev1.PodStatus{Phase: corev1.PodRunning}
		w := newWorld(t, nodePool(), node, claim, pod)
		w.plan()
		w.wantClaims(1) // the old one
		w.delete(deleted)
		w.sync()
		w.plan()
		w.wantClaims(2)
	}
}

// At a start no trigger has told of pods yet that wait: they are planned when the loop is
// asked, which says so when that is done.
func TestPlanNowPlansForPodsWithoutTrigger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, objects(nodePool(), waitingPods(3, "1"))...)
		ctx, stop := context.WithCancel(w.ctx)
		ended := make(chan error)
		go func() { ended <- w.loop.Start(ctx) }()
		time.Sleep(time.Minute)
		w.wantClaims(0)
		for range 2 { // the second time there is nothing to plan
			select {
			case <-w.loop.PlanNow():
			case <-time.After(time.Second):
				t.Error("after a second it is not planned")
			}
			w.wantClaims(1)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
