package provisioning

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// buffered is a world with a CapacityBuffer of pods of a core each, and what it was told
// of the last plan.
func buffered(t *testing.T, pods int) (*world, func() BufferPlan) {
	w := newWorld(t, nodePool())
	var told []BufferPlan
	w.loop.reporter.buffers.told = func(plans []BufferPlan) { told = plans }
	w.hold(pods)
	return w, func() BufferPlan {
		t.Helper()
		if len(told) != 1 {
			t.Fatalf("told of %d buffers", len(told))
		}
		return told[0]
	}
}

// hold makes a buffer of so many pods.
func (w *world) hold(pods int) {
	var virtual []*corev1.Pod
	for range pods {
		p := waitingPods(1, "1")[0].(*corev1.Pod)
		p.UID, p.Annotations = "buffer-1", map[string]string{"karpenter.sh/capacity-buffer-name": "spare"}
		p.Spec.Priority = new(int32(-1 << 31))
		virtual = append(virtual, p)
	}
	w.mirror.SetBuffers(w.mirror.feed.Buffers(virtual))
}

func TestBufferIsBoughtAndRefilled(t *testing.T) {
	w, told := buffered(t, 2)
	w.plan()
	w.wantClaims(1)
	if got := told(); got.Wanted != 2 || got.Coming != 2 || got.Ready != 0 || got.Cost <= 0 {
		t.Errorf("after the purchase: %+v", got)
	}
	w.plan()
	w.wantClaims(1) // the machine on its way counts
	w.join(w.claims()[0], "2100m")
	w.sync()
	w.plan()
	w.wantClaims(1)
	if got := told(); got.Ready != 2 || got.Coming != 0 {
		t.Errorf("with the node: %+v", got)
	}
	if !w.mirror.BuffersPlanned() || w.mirror.Snapshot().BufferPlace(w.mirror.firstVirtual(t)) == "" {
		t.Error("the mirror does not know where the room is")
	}
	// A pod takes half of the room at once, which is bought again.
	pod := waitingPods(1, "1")[0]
	if err := w.kube.Create(w.ctx, pod); err != nil {
		t.Fatal(err)
	}
	w.sync()
	w.plan()
	w.wantClaims(2)
	if got := told(); got.Ready+got.Coming != 2 || got.Coming == 0 {
		t.Errorf("after a pod came: %+v", got)
	}
	if len(w.loop.reservations.claims) > 1 {
		t.Errorf("reservations %v: virtual pods have none", w.loop.reservations.claims)
	}
}

func TestBufferGrowsAndShrinks(t *testing.T) {
	w, told := buffered(t, 1)
	w.plan()
	w.join(w.claims()[0], "1100m")
	w.hold(2)
	w.sync()
	w.plan()
	w.wantClaims(2)
	w.hold(1)
	w.plan()
	w.wantClaims(2) // consolidation gives it back
	if got := told(); got.Wanted != 1 || got.Ready+got.Coming != 1 {
		t.Errorf("after it shrank: %+v", got)
	}
}

func TestBufferSaysWhyThereIsNoRoom(t *testing.T) {
	w, told := buffered(t, 3)
	pool := &karpv1.NodePool{}
	w.update(types.NamespacedName{Name: "general"}, pool, func() { pool.Spec.Limits = karpv1.Limits{"nodes": resource.MustParse("0")} })
	w.sync()
	w.plan()
	w.wantClaims(0)
	if got := told(); got.Ready != 0 || got.Coming != 0 || got.Why == "" {
		t.Errorf("told %+v, want a reason", got)
	}
	if got := w.recorder.of("FailedScheduling"); len(got) != 0 {
		t.Errorf("events for pods that do not exist: %v", got)
	}
}

// While a disruption is buying a place for what is on a node, the virtual pods of the node
// are not planned: nothing is bought for them twice.
func TestBufferWaitsForDisruption(t *testing.T) {
	w, told := buffered(t, 1)
	w.plan()
	node := w.join(w.claims()[0], "1100m")
	w.sync()
	w.plan()
	w.update(types.NamespacedName{Name: node.Name}, node, func() { node.Spec.Taints = append(node.Spec.Taints, karpv1.DisruptedNoScheduleTaint) })
	w.sync()
	w.plan()
	w.wantClaims(1)
	if got := told(); got.Ready != 1 {
		t.Errorf("told %+v, want that the room is there until the node goes", got)
	}
	w.cluster.leaving[node.Name] = true
	w.plan()
	w.wantClaims(2)
}

func (m *testMirror) firstVirtual(t *testing.T) (ref model.PodRef) {
	t.Helper()
	in, err := m.Snapshot().Problem(t.Context(), testCatalogs{}, fleet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range in.Problem.Classes {
		for _, ref := range c.Pods {
			if in.Record(ref).Buffer != "" {
				return ref
			}
		}
	}
	t.Fatal("no virtual pod")
	return ref
}
