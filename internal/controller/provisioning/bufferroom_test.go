package provisioning

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/controller/purchasebackoff"
	"github.com/nodeautoprovision/nap/internal/model"
)

// holdLike makes a buffer of pods which are changed.
func (w *world) holdLike(pods int, change func(*corev1.Pod)) {
	var virtual []*corev1.Pod
	for range pods {
		p := waitingPods(1, "1")[0].(*corev1.Pod)
		p.UID, p.Annotations = "buffer-1", map[string]string{"karpenter.sh/capacity-buffer-name": "spare"}
		p.Spec.Priority = new(int32(-1 << 31))
		change(p)
		virtual = append(virtual, p)
	}
	w.mirror.SetBuffers(w.mirror.feed.Buffers(virtual))
}

// preferring lets a pod prefer a node of another kind to any that is there.
func preferring(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: "tier", Operator: corev1.NodeSelectorOpIn, Values: []string{"gold"},
			}}},
		}},
	}}
}

// The bar is that of pods that exist: at most three machines in ten minutes.
func TestBufferWithoutRoomOnItsMachinesBacksOff(t *testing.T) {
	for name, c := range map[string]struct {
		pods   int
		change func(*corev1.Pod)
		spoil  func(*corev1.Node)
	}{
		"a taint that stays": {1, func(*corev1.Pod) {}, stayingTaint},
		"a label that never comes": {1, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"tier": "gold"} },
			func(n *corev1.Node) { delete(n.Labels, "tier") }},
		"three pods": {3, func(*corev1.Pod) {}, stayingTaint},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, told := buffered(t, c.pods)
				w.holdLike(c.pods, c.change)
				bought := w.playFor(10*time.Minute, c.spoil)
				if len(bought) == 0 || len(bought) > 3 {
					t.Fatalf("bought %d machines in ten minutes, at %v, want at most 3", len(bought), bought)
				}
				if got := told(); got.Ready+got.Coming != 0 || !strings.Contains(got.Why, "purchases in a row") {
					t.Errorf("told %+v, want why nothing is bought", got)
				}
				if more := w.playFor(40*time.Minute, c.spoil); len(more) < 1 || len(more) > 2 {
					t.Errorf("%d machines in the next 40 minutes, at %v, want one or two that probe", len(more), more)
				}
			})
		})
	}
}

func TestBufferClaimsThatEndComeMoreSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := buffered(t, 1)
		bought := 0
		for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(100 * time.Millisecond) {
			w.sync()
			w.plan()
			for _, claim := range w.claims() {
				bought++
				w.deleteClaim(&claim)
				w.mirror.feed.Delete(&claim)
			}
		}
		if bought < 3 || bought > 12 {
			t.Errorf("%d claims in a minute, want at most 12", bought)
		}
	})
}

// spareWorkload is that of the virtual pods.
func (w *world) spareWorkload() purchasebackoff.Workload {
	ref := w.mirror.firstVirtual(w.t)
	in, err := w.loop.gatherer.gather(w.ctx, "id")
	if err != nil {
		w.t.Fatal(err)
	}
	return purchasebackoff.Workloads{}.Of(in.input.Record(ref))
}

// A cluster in which all pods run has no rounds: the loop of purchases sees that room lasts.
func TestBufferThatHasRoomForgetsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, told := buffered(t, 2)
		purchases := w.loop.admission.backoff.purchases
		w.playFor(2*time.Minute, stayingTaint)
		if !purchases.Follows(w.spareWorkload()) || purchases.Quiet() {
			t.Fatal("no purchase has failed")
		}
		w.playFor(30*time.Minute, func(*corev1.Node) {})
		purchases.Land(w.mirror.Snapshot)
		if !purchases.Quiet() {
			t.Error("the failures are not forgotten although there is room on a machine")
		}
		w.plan()
		if got := told(); got.Ready != 2 {
			t.Errorf("told %+v, want room for both", got)
		}
	})
}

// What has room keeps it while nothing is bought for the rest.
func TestBufferKeepsItsRoomWhilePurchasesPause(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){"plain": func(*corev1.Pod) {}, "with preferences": preferring} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, told := buffered(t, 1)
				w.plan()
				w.join(w.claims()[0], "1100m")
				w.playFor(time.Minute, func(*corev1.Node) {})
				if got := told(); got.Ready != 1 {
					t.Fatalf("told %+v, want room for one", got)
				}
				w.holdLike(2, change)
				if bought := w.playFor(10*time.Minute, stayingTaint); len(bought) < 1 || len(bought) > 3 {
					t.Fatalf("bought %d machines, want at most 3", len(bought))
				}
				if got := told(); got.Ready != 1 || got.Coming != 0 || got.Why == "" {
					t.Errorf("told %+v, want room for one of two, and why", got)
				}
				places := 0
				for i := range 2 {
					ref := w.mirror.firstVirtual(t)
					if w.mirror.Snapshot().BufferPlace(model.PodRef{Namespace: ref.Namespace, Name: ref.Name[:len(ref.Name)-1] + string(rune('1'+i))}) != "" {
						places++
					}
				}
				if places != 1 {
					t.Errorf("the mirror has places for %d pods, want 1", places)
				}
			})
		})
	}
}
