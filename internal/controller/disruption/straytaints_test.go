package disruption

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// passUnseen is a pass of which the mirror and the caches see nothing, and a second gone.
func (w *world) passUnseen() {
	w.working = true
	w.loop.pass(w.ctx)
	w.working = false
	w.clock.Step(time.Second)
}

// wantClosed fails unless a node keeps its taint while nothing is observed for longer than a stray
// taint may stand.
func (w *world) wantClosed(name string) {
	w.t.Helper()
	for range 2*int(strayFor/time.Second) + 2 {
		w.passUnseen()
	}
	node := &corev1.Node{}
	w.must(w.kube.Get(w.ctx, types.NamespacedName{Name: name}, node))
	if !tainted(node) {
		w.t.Errorf("node %s takes pods, and its NodeClaim is being deleted", name)
	}
}

// While the watch is interrupted, the mirror shows nodes that were given back as ordinary ones with
// a taint. They take no pods.
func TestNodeKeepsTaintUntilItsDeletionIsObserved(t *testing.T) {
	w := newWorld(t, half()...)
	going := ""
	for range 20 {
		w.passUnseen()
		for _, c := range w.claims() {
			if !c.DeletionTimestamp.IsZero() {
				going = c.Status.NodeName
			}
		}
		if going != "" {
			break
		}
		w.sync()
	}
	if going == "" {
		t.Fatal("no node is given back")
	}
	reads := &countedReader{Reader: w.loop.strays.marker.live}
	w.loop.strays.marker.live = reads
	w.wantClosed(going)
	if reads.claims > 0 {
		t.Errorf("the API server was asked %d times for claims that this process has deleted", reads.claims)
	}
}

// A process that has just begun does not know what the one before has deleted.
func TestNodeKeepsTaintWhenAnotherProcessDeletedIt(t *testing.T) {
	objects := all(machine("a", "D2"), running(1, "web", "1500m", "a"))
	objects[2].(*corev1.Node).Spec.Taints = []corev1.Taint{karpv1.DisruptedNoScheduleTaint}
	w := newWorld(t, objects...)
	w.delete(&w.claims()[0])
	reads := &countedReader{Reader: w.loop.strays.marker.live}
	w.loop.strays.marker.live = reads
	w.wantClosed("node-a")
	if reads.claims == 0 || reads.claims > 3 {
		t.Errorf("the API server was asked %d times for the claim in 22 s, want once for every %s", reads.claims, strayFor)
	}
}

// countedReader counts the reads of NodeClaims.
type countedReader struct {
	client.Reader
	claims int
}

func (r *countedReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, is := o.(*karpv1.NodeClaim); is {
		r.claims++
	}
	return r.Reader.Get(ctx, key, o, opts...)
}
