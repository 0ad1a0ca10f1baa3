package provisioning

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A batch of a ReplicaSet that replaces another one waits until it is idle: the pods that go make
// room. It does so no longer once the other one has no pods.
func TestRolloutIsNoCompleteBatch(t *testing.T) {
	yes := true
	ofDeployment := func(name, deployment string, wants, has int32) client.Object {
		set := replicaSet(name, wants)
		set.Status.Replicas = has
		set.OwnerReferences = []metav1.OwnerReference{{Kind: "Deployment", Name: deployment, UID: types.UID(deployment), Controller: &yes}}
		return set
	}
	synctest.Test(t, func(t *testing.T) {
		before, next := ofDeployment("before", "web", 2, 3), ofDeployment("next", "web", 2, 0)
		pods := NewExpectedPods(clock.RealClock{}, time.Second)
		c := &Completeness{
			Kube: fake.NewClientBuilder().WithObjects(before, next).Build(), Pods: pods, Starting: newStartingOwners(clock.RealClock{}, pods),
			Announces: func(string) bool { return true }, Announced: announcesAll,
		}
		first := podsOf("ReplicaSet", next, 0, 1)[0].(*corev1.Pod)
		pods.Observe(first)
		owner := ownerOf(first)
		complete := func(what string, want bool) {
			t.Helper()
			time.Sleep(startsWithin) // none is waited for that has no pod yet
			if got := c.Complete(t.Context(), []Owner{owner}); got != want {
				t.Errorf("%s: complete is %v, want %v", what, got, want)
			}
		}
		c.observe(next)
		complete("a ReplicaSet by itself", true)
		c.observe(ofDeployment("other", "api", 2, 2))
		complete("beside one of another Deployment", true)
		c.observe(before)
		complete("beside the one before, which has pods", false)
		c.observe(ofDeployment("before", "web", 0, 1))
		complete("beside the one before, which has a pod left", false)
		c.observe(ofDeployment("before", "web", 0, 0))
		complete("beside the one before, which has none", true)
		c.observe(before)
		complete("after it was rolled back", false)
		c.forget(before)
		complete("after the one before was deleted", true)
		if c.forget(next); len(c.Rollouts.sets.members["web"]) > 0 || len(c.Rollouts.sets.of) != 1 {
			t.Errorf("kept are %v", c.Rollouts.sets)
		}
	})
}
