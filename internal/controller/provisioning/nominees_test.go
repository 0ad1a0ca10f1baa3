package provisioning

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// promisedNode is a node of a claim's machine.
func promisedNode(name, cpu, memory string, extended ...corev1.ResourceName) *corev1.Node {
	size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	for _, e := range extended {
		size[e] = resource.MustParse("1")
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: size}}
}

// promise promises a pod of a kind a claim's machine.
func promise(n *nominees, name, kind, claim string, requests fleet.Amounts) {
	key := types.NamespacedName{Namespace: "default", Name: name}
	n.put(types.UID(name), &nominee{key: key, zones: anyZone, kind: kind, requests: requests}, claim)
}

func namesOf(requests []request) []string {
	var out []string
	for _, r := range requests {
		out = append(out, r.key.Name+" to "+r.node)
	}
	return out
}

func TestPodsThatTakeMostOfTheirNodeAreNominatedFirst(t *testing.T) {
	n := newNominees(clock.RealClock{})
	gpu := fleet.Amounts{CPU: 100}
	gpu.Set("nvidia.com/gpu", 1)
	promise(n, "small", "a", "big-node", fleet.Amounts{CPU: 4000, Memory: 1 << 30})
	promise(n, "half", "b", "small-node", fleet.Amounts{CPU: 2000, Memory: 1 << 30})
	promise(n, "much-memory", "c", "big-node", fleet.Amounts{CPU: 1000, Memory: 192 << 30})
	promise(n, "gpu", "d", "small-node", gpu)
	promise(n, "not-there", "e", "no-node", fleet.Amounts{CPU: 64000})
	if got := n.next(10); len(got) != 0 {
		t.Errorf("no machine has registered, and %v are nominated", namesOf(got))
	}
	n.arrived("big-node", promisedNode("big", "64", "256Gi"), false)
	n.arrived("small-node", promisedNode("small", "4", "16Gi", "nvidia.com/gpu"), false)
	want := []string{"gpu to small", "much-memory to big", "half to small"}
	if got := namesOf(n.next(3)); !slices.Equal(got, want) {
		t.Errorf("first come %v, want %v", got, want)
	}
	if got := n.next(10); len(got) != 4 {
		t.Errorf("all that are due are %v, want four", namesOf(got))
	}
}

// Which of many pods that are all alike comes to which node does not matter.
func TestPodsThatAreAllAlikeAreNotNominated(t *testing.T) {
	n := newNominees(clock.RealClock{})
	for i := range few + 1 {
		promise(n, fmt.Sprint("web-", i), "web", "c", fleet.Amounts{CPU: 500})
	}
	n.arrived("c", promisedNode("node", "64", "256Gi"), false)
	if got := n.next(100); len(got) != 0 {
		t.Errorf("%d pods alike: %v are nominated", few+1, namesOf(got))
	}
	promise(n, "other", "db", "c", fleet.Amounts{CPU: 4000})
	if got := n.next(100); len(got) != few+2 {
		t.Errorf("with one of another kind %d are nominated, want all %d", len(got), few+2)
	}
	n.forget("other")
	n.forget("web-0")
	if got := n.next(100); len(got) != few {
		t.Errorf("of few pods alike %d are nominated, want all %d: later pods may not take their room", len(got), few)
	}
}

func TestRequestsThatFailAreMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNominees(clock.RealClock{})
		promise(n, "web", "web", "c", fleet.Amounts{CPU: 500})
		n.arrived("c", promisedNode("node", "4", "16Gi"), false)
		for range nominateTries {
			due := n.next(1)
			if len(due) != 1 || !n.begin(due[0]) {
				t.Fatalf("the pod is not nominated, but %v", namesOf(due))
			}
			n.again(due[0])
			if early := n.next(1); len(early) != 0 {
				t.Errorf("%v is tried again at once", namesOf(early))
			}
			time.Sleep(nominatePause)
		}
		if more := n.next(1); len(more) != 0 {
			t.Errorf("%v is tried more than %d times", namesOf(more), nominateTries)
		}
		n.end(func(string, *group) bool { return true })
		for range 2 {
			due := namesOf(n.next(1))
			if !slices.Equal(due, []string{"web to "}) {
				t.Fatalf("its promise has ended, and %v is to be written, want that it is withdrawn", due)
			}
			n.again(request{types.NamespacedName{Name: "web"}, "web", ""})
		}
	})
}

// Requests wait for their turn: one for a machine which the pod has exchanged for another
// meanwhile is not made, since it would keep the room there, and the other one's would be
// missing.
func TestRequestOfAnEarlierPromiseIsNotMade(t *testing.T) {
	n := newNominees(clock.RealClock{})
	promise(n, "pod", "a", "first", fleet.Amounts{CPU: 1000})
	n.arrived("first", promisedNode("first-node", "4", "16Gi"), true)
	before := n.next(10)
	promise(n, "pod", "a", "second", fleet.Amounts{CPU: 1000})
	if len(before) != 1 || n.begin(before[0]) {
		t.Errorf("requests %v are made, although the pod is promised to another machine", namesOf(before))
	}
	n.arrived("second", promisedNode("second-node", "4", "16Gi"), true)
	if got := n.next(10); len(got) != 1 || got[0].node != "second-node" || !n.begin(got[0]) {
		t.Errorf("then %v are made, want one to second-node", namesOf(got))
	}
}
