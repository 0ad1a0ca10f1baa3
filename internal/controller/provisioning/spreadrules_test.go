package provisioning

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// spreadPod is a pod with one spread constraint that counts pods of its app.
func spreadPod(name, app, key string, skew int32, hard bool) *fleet.Pod {
	labels := map[string]string{"app": app}
	web := &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{"web"}}}}
	return &fleet.Pod{
		Ref: model.PodRef{Namespace: "default", Name: name}, UID: name, OwnerUID: app,
		Labels: &fleet.Labels{Key: app, Values: labels},
		Spec: &fleet.PodSpec{Key: app, Spread: []model.SpreadConstraint{
			{TopologyKey: key, MaxSkew: skew, Hard: hard, Selector: web},
		}},
	}
}

func promiseSpread(n *nominees, pod *fleet.Pod, claim string) {
	n.put(types.UID(pod.UID), &nominee{
		key: types.NamespacedName{Namespace: pod.Ref.Namespace, Name: pod.Ref.Name}, kind: pod.OwnerUID, rules: spreadRules(pod),
	}, claim)
}

// The scheduler counts the other pods that are nominated for the node it tries, so that three of
// one spread over zones with a skew of one would all be refused there.
func TestSpreadPodsAreNominatedAsFarAsTheyPass(t *testing.T) {
	for name, test := range map[string]struct {
		key  string
		skew int32
		hard bool
		app  string
		want int
	}{
		"zones, skew 1":             {corev1.LabelTopologyZone, 1, true, "web", 1},
		"zones, skew 2":             {corev1.LabelTopologyZone, 2, true, "web", 2},
		"hosts, skew 1":             {corev1.LabelHostname, 1, true, "web", 1},
		"hosts, skew 4":             {corev1.LabelHostname, 4, true, "web", 3},
		"a preference":              {corev1.LabelTopologyZone, 1, false, "web", 3},
		"pods of others are spread": {corev1.LabelTopologyZone, 1, true, "other", 3},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNominees(clock.RealClock{})
			for i := range 3 {
				promiseSpread(n, spreadPod(fmt.Sprint("pod-", i), test.app, test.key, test.skew, test.hard), "claim")
			}
			n.arrived("claim", promisedNode("node", "64", "256Gi"), true)
			got := n.next(10)
			if len(got) != test.want {
				t.Errorf("nominated are %v, want %d", namesOf(got), test.want)
			}
		})
	}
}

func TestNextOfSpreadFollowsOnceOneIsBound(t *testing.T) {
	n := newNominees(clock.RealClock{})
	for i := range 3 {
		promiseSpread(n, spreadPod(fmt.Sprint("pod-", i), "web", corev1.LabelTopologyZone, 1, true), "claim")
	}
	n.arrived("claim", promisedNode("node", "64", "256Gi"), true)
	first := n.next(10)
	if got := namesOf(first); !slices.Equal(got, []string{"pod-0 to node"}) {
		t.Fatalf("nominated are %v, want the first alone", got)
	}
	n.begin(first[0])
	if got := n.next(10); len(got) != 0 {
		t.Errorf("while it waits, %v are nominated, too", namesOf(got))
	}
	bound := &corev1.Pod{}
	bound.UID, bound.Spec.NodeName = "pod-0", "node"
	n.seen(bound)
	if got := namesOf(n.next(10)); !slices.Equal(got, []string{"pod-1 to node"}) {
		t.Errorf("once it is bound, %v are nominated, want the next", got)
	}
}

// The scheduler refuses a pod of a zone that is ahead of the others, and takes it later.
func TestSpreadPodIsNominatedAgainAfterRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNominees(clock.RealClock{})
		promiseSpread(n, spreadPod("pod", "web", corev1.LabelTopologyZone, 1, true), "claim")
		n.arrived("claim", promisedNode("node", "64", "256Gi"), true)
		n.begin(n.next(10)[0])
		refused := &corev1.Pod{}
		refused.UID = "pod"
		n.seen(refused)
		time.Sleep(nominatePause)
		if got := n.next(10); len(got) != 1 {
			t.Errorf("nominated are %v, want the pod once more", namesOf(got))
		}
	})
}
