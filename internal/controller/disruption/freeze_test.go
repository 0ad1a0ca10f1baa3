package disruption

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// annotatePools sets annotations of all NodePools, and removes those that are empty.
func (w *world) annotatePools(values map[string]string) {
	var list karpv1.NodePoolList
	w.must(w.kube.List(w.ctx, &list))
	for i := range list.Items {
		pool := &list.Items[i]
		before := pool.DeepCopy()
		for key, value := range values {
			if pool.Annotations == nil {
				pool.Annotations = map[string]string{}
			}
			if pool.Annotations[key] = value; value == "" {
				delete(pool.Annotations, key)
			}
		}
		w.must(w.kube.Patch(w.ctx, pool, client.MergeFrom(before)))
	}
}

// TestFrozenPoolKeepsItsNodesUntilThawed: no node is consolidated while its NodePool is
// frozen; then all are that should be.
func TestFrozenPoolKeepsItsNodesUntilThawed(t *testing.T) {
	w := newWorld(t, half()...)
	w.annotatePools(map[string]string{v1beta1.AnnotationFrozen: "release day"})
	w.run(5)
	if got := w.sizes(); got != "D2 D2 D2 D2" {
		t.Errorf("nodes are %s, want all four", got)
	}
	if len(w.loop.commands.active) > 0 {
		t.Error("a command is under way in a frozen NodePool")
	}
	w.annotatePools(map[string]string{v1beta1.AnnotationFrozen: ""})
	w.run(5)
	if got := w.sizes(); got != "D2" {
		t.Errorf("after nap thaw, nodes are %s, want D2", got)
	}
}

// TestFreezeEndsByItself: at the time that it names, without a change of anything else.
func TestFreezeEndsByItself(t *testing.T) {
	w := newWorld(t, half()...)
	w.annotatePools(map[string]string{
		v1beta1.AnnotationFrozen:      "lunch",
		v1beta1.AnnotationFrozenUntil: w.clock.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339),
	})
	w.run(3)
	if got := w.sizes(); got != "D2 D2 D2 D2" {
		t.Fatalf("nodes are %s, want all four", got)
	}
	w.clock.Step(11 * time.Minute)
	w.run(5)
	if got := w.sizes(); got != "D2" {
		t.Errorf("after the end, nodes are %s, want D2", got)
	}
}

// TestFreezeRollsBackMoveThatHasEvictedNothing: its replacement goes, its nodes take pods
// again.
func TestFreezeRollsBackMoveThatHasEvictedNothing(t *testing.T) {
	w := newWorld(t, large()...)
	w.pass()
	w.pass()
	if got := len(w.claims()); got != 3 {
		t.Fatalf("%d NodeClaims, want the two old ones and a new one", got)
	}
	w.annotatePools(map[string]string{v1beta1.AnnotationFrozen: ""})
	w.annotatePools(map[string]string{v1beta1.AnnotationFrozen: "incident"})
	w.run(6)
	if got := w.sizes(); got != "D16 D16" {
		t.Errorf("nodes are %s, want the two that there were", got)
	}
	for _, n := range w.nodes() {
		if tainted(&n) {
			t.Errorf("node %s takes no pods although it stays", n.Name)
		}
	}
	w.wantQuiet()
}

// TestRetiredNodeIsReplacedAsDrifted: a machine that fits its pods well is replaced once a
// user asks for it, with the replacement first.
func TestRetiredNodeIsReplacedAsDrifted(t *testing.T) {
	w := newWorld(t, all(machine("a", "D2"), running(1, "web", "1500m", "a"))...)
	w.run(3)
	claims := w.claims()
	if len(claims) != 1 {
		t.Fatalf("%d NodeClaims, want one", len(claims))
	}
	retired := claims[0].Name
	before := claims[0].DeepCopy()
	claims[0].Annotations = map[string]string{v1beta1.AnnotationRetire: w.clock.Now().UTC().Format(time.RFC3339)}
	w.must(w.kube.Patch(w.ctx, &claims[0], client.MergeFrom(before)))
	told := &toldMoves{}
	w.loop.outcomes.teller.moves = told
	w.run(6)
	claims = w.claims()
	if len(claims) != 1 || claims[0].Name == retired {
		t.Errorf("NodeClaims %v, want one that is not %s", len(claims), retired)
	}
	if len(told.ended) != 1 || told.ended[0].Reason != "Drifted" || told.ended[0].Stage != stageDone || !told.seen[stageReplacing] {
		t.Errorf("told of %+v and of stages %v, want one move for drift", told.ended, told.seen)
	}
	w.wantQuiet()
}

// toldMoves remembers what it was told.
type toldMoves struct {
	seen  map[string]bool
	ended []v1alpha1.Move
}

func (m *toldMoves) UnderWay(moves []v1alpha1.Move) {
	if m.seen == nil {
		m.seen = map[string]bool{}
	}
	for _, move := range moves {
		m.seen[move.Stage] = true
	}
}

func (m *toldMoves) Ended(move *v1alpha1.Move) { m.ended = append(m.ended, *move) }
