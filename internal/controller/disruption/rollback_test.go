package disruption

import (
	"errors"
	"testing"
	"time"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// A command that is rolled back deletes its own replacements: a claim that has come to
// bear the name of one, and belongs to another command or to none, stays.
func TestRollbackDeletesItsOwnReplacementAlone(t *testing.T) {
	for name, c := range map[string]struct {
		replaces string
		stays    bool
	}{"its own": {"x", false}, "another command's": {"y", true}, "of no command": {"", true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, all(machine("a", "D2"))...)
			claim := w.claims()[0]
			if c.replaces != "" {
				claim.Annotations = map[string]string{v1beta1.AnnotationReplaces: c.replaces}
				w.must(w.kube.Update(w.ctx, &claim))
			}
			w.sync()
			w.must(w.loop.executor.replacements.dropUnused(w.ctx, &Record{ID: "x"}, "a"))
			if left := w.claims(); (len(left) == 1 && left[0].DeletionTimestamp.IsZero()) != c.stays {
				t.Errorf("the claim stays: %v, want %v", !c.stays, c.stays)
			}
		})
	}
}

// Each command that fails leaves its node alone for longer, up to a quarter of an hour.
func TestPauseAfterFailedCommandsGrows(t *testing.T) {
	w := newWorld(t, all(machine("a", "D4"), running(1, "web", "1500m", "a"))...)
	w.soldOut = true
	var pauses []time.Duration
	for tries := 0; len(pauses) < 6 && tries < 3000; tries++ {
		before := w.loop.outcomes.backoff.nodes["node-a"]
		w.run(1)
		if now := w.loop.outcomes.backoff.nodes["node-a"]; now.failures > before.failures {
			pauses = append(pauses, now.until.Sub(w.clock.Now()).Round(time.Minute))
		}
	}
	want := []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 15 * time.Minute, 15 * time.Minute}
	for i := range want {
		if i >= len(pauses) || pauses[i] != want[i] {
			t.Fatalf("the pauses are %v, want %v", pauses, want)
		}
	}
}

// A replacement is created once, whatever becomes of the answer: its own claim is found
// again, that of another command is not taken for it.
func TestReplacementIsNotTakenFromAnotherCommand(t *testing.T) {
	for owner, refused := range map[string]bool{"x": false, "y": true} {
		t.Run(owner, func(t *testing.T) {
			w := newWorld(t)
			draft := machine("a", "D2")[0].(*karpv1.NodeClaim)
			draft.Annotations = map[string]string{v1beta1.AnnotationReplaces: owner}
			w.create(draft.DeepCopy())
			draft.ResourceVersion = ""
			err := w.loop.executor.replacements.create(w.ctx, &Record{ID: "x"}, draft)
			var no *refusal
			if errors.As(err, &no) != refused || err == nil == refused {
				t.Errorf("the claim is there already, of command %s: %v; refused should be %v", owner, err, refused)
			}
			if n := len(w.claims()); n != 1 {
				t.Errorf("%d claims, want 1", n)
			}
		})
	}
}
