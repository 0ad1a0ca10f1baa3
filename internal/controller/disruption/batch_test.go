package disruption

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// somebodyBuysAgain undoes what a move has saved.
func (w *world) somebodyBuysAgain() {
	for i, p := range w.pods() {
		name := fmt.Sprint("again", w.ids, "-", i)
		for _, o := range machine(name, "D16") {
			w.create(o)
		}
		p.Spec.NodeName = "node-" + name
		w.must(w.kube.Update(w.ctx, &p))
	}
}

func TestConsolidationPausesWithoutSavingUntilDemandChanges(t *testing.T) {
	w := newWorld(t, large()...)
	for range 20 {
		if len(w.claims()) != 1 {
			w.run(1)
		}
	}
	w.somebodyBuysAgain()
	w.pass()
	w.pass()
	w.pass()
	if !w.loop.outcomes.batch.pausedUntil.After(w.clock.Now().Add(restAtLeast / 2)) {
		t.Fatalf("consolidation rests until %s, want a minute from %s", w.loop.outcomes.batch.pausedUntil, w.clock.Now())
	}
	for _, o := range running(1, "more", "3", "a") {
		pod := o.(*corev1.Pod)
		pod.Spec.NodeName = w.nodes()[0].Name
		w.create(pod)
	}
	for range 6 {
		w.pass()
	}
	if !w.loop.outcomes.batch.pausedUntil.IsZero() {
		t.Errorf("consolidation rests until %s though there are more pods now, at %s", w.loop.outcomes.batch.pausedUntil, w.clock.Now())
	}
}

func TestRolledBackCommandsDoNotCountAsExpectedSaving(t *testing.T) {
	w := newWorld(t, large()...)
	w.soldOut = true
	w.run(12)
	if len(w.loop.outcomes.backoff.nodes) != 2 {
		t.Fatalf("%d nodes rest, want both: their replacement is not sold", len(w.loop.outcomes.backoff.nodes))
	}
	if !w.loop.outcomes.batch.pausedUntil.IsZero() {
		t.Errorf("consolidation of all nodes rests until %s since one move came to nothing", w.loop.outcomes.batch.pausedUntil)
	}
}
