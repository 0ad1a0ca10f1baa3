package disruption

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/model"
)

// ending are running pods that are being deleted and will be gone, or should have been, by a time
// on the clock of a world that is made now.
func ending(n int, on string, goneIn time.Duration) []client.Object {
	out := running(n, "old", "1500m", on)
	at, grace := metav1.NewTime(time.Now().Add(time.Hour+goneIn)), int64(2*time.Hour/time.Second)
	for _, o := range out {
		p := o.(*corev1.Pod)
		p.Finalizers, p.DeletionTimestamp, p.DeletionGracePeriodSeconds = []string{"test/holds"}, &at, &grace
	}
	return out
}

// gone lets the pods end that are being deleted.
func (w *world) gone() {
	for _, p := range w.pods() {
		if p.DeletionTimestamp != nil {
			p.Finalizers = nil
			w.must(w.kube.Update(w.ctx, &p))
		}
	}
}

// While a workload is scaled down, the pods that end fill nodes that are half empty a moment later:
// nothing is bought and nothing moves for that.
func TestConsolidationWaitsForPodsThatEnd(t *testing.T) {
	for name, c := range map[string]struct {
		goneIn time.Duration
		waits  bool
	}{
		"they end":                    {2 * time.Second, true},
		"they are overdue":            {-10 * time.Second, true},
		"they hang":                   {-time.Minute, false},
		"they have a long time to go": {time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, all(machine("a", "D16"), machine("c", "D16"), running(5, "web", "1500m", "a"), running(5, "web", "1500m", "c"),
				ending(5, "a", c.goneIn), ending(5, "c", c.goneIn))...)
			w.pass()
			if got := len(w.loop.commands.active) == 0; got != c.waits {
				t.Fatalf("%d commands are begun, want it to wait: %t", len(w.loop.commands.active), c.waits)
			}
			if !c.waits {
				return
			}
			w.gone()
			w.run(10)
			if got := w.sizes(); got != "D16" || len(w.evicted) != 5 {
				t.Errorf("left are %s after %d evictions, want one D16 after 5", got, len(w.evicted))
			}
			w.wantQuiet()
		})
	}
}

// A node without such pods waits, too, while many others have some: its pods will have room there.
func TestConsolidationWaitsWhileManyNodesHavePodsThatEnd(t *testing.T) {
	objects := all(machine("a", "D16"), machine("b", "D16"), machine("c", "D16"),
		running(3, "web", "1500m", "a"), running(3, "web", "1500m", "b"), running(3, "web", "1500m", "c"))
	w := newWorld(t, slices.Concat(objects, ending(7, "a", 25*time.Second), ending(7, "c", 25*time.Second))...)
	w.pass()
	if got := len(w.claims()); got != 3 {
		t.Fatalf("%d claims, want the three alone: a machine was bought for the pods of b", got)
	}
	w.gone()
	w.run(10)
	if got := w.sizes(); got != "D16" || len(w.evicted) != 6 {
		t.Errorf("left are %s after %d evictions, want one D16 after 6", got, len(w.evicted))
	}
	w.wantQuiet()
}

// Nodes on which pods end all the time hold the others for half a minute, not for ever.
func TestWaitForPodsThatEndIsBounded(t *testing.T) {
	var p pacing
	begun := time.Unix(1_700_000_000, 0)
	waited := time.Duration(0)
	for ; waited < time.Hour; waited += time.Second {
		now := begun.Add(waited)
		until := now.Add(25 * time.Second)
		if !p.waitsForQuiet(&model.Commands{
			Commands: []model.Command{{Nodes: []int{1}}}, Kept: []model.KeptNode{{Reason: model.ReasonPodsEnding, Until: until}},
		}, now) {
			break
		}
	}
	if waited != quietAtMost {
		t.Errorf("consolidation waited for %s, want %s", waited, quietAtMost)
	}
}

// A node on which some pod ends at any time is consolidated all the same, after a minute.
func TestNodeWithPodsThatAlwaysEndGoes(t *testing.T) {
	begun := time.Unix(1_700_000_000, 0)
	var e endingNodes
	ends := func(after time.Duration, ending int) bool {
		p := &model.DisruptionProblem{
			Problem: &model.Problem{Nodes: []model.Node{{Name: "a"}, {Name: "b"}}},
			Usages:  []model.NodeUsage{{Ending: ending}, {Returning: 1}}, Now: begun.Add(after),
		}
		e.limit(p)
		if comes := p.Usages[1].Returning > 0; comes != (after < time.Minute) {
			t.Errorf("after %s it waits for pods that come again: %t", after, comes)
		}
		return p.Usages[0].Ending > 0
	}
	for _, step := range []struct {
		after  time.Duration
		ending int
		want   bool
	}{
		{0, 2, true},
		{50 * time.Second, 1, true},
		{time.Minute, 3, false},
		{70 * time.Second, 1, false},
		{80 * time.Second, 0, false}, // a break
		{90 * time.Second, 1, true},
		{149 * time.Second, 1, true},
		{150 * time.Second, 1, false},
	} {
		if got := ends(step.after, step.ending); got != step.want {
			t.Errorf("after %s it waits: %t, want %t", step.after, got, step.want)
		}
	}
}

// Where pods always end on all nodes, these are consolidated in three minutes.
func TestBusyNodesAreConsolidated(t *testing.T) {
	objects := all()
	for _, name := range []string{"a", "b", "c"} {
		objects = append(objects, machine(name, "D16")...)
		objects = append(objects, running(2, "web", "1500m", name)...)
		for i := range 20 {
			p := ending(1, name, time.Duration(10+15*i)*time.Second)[0]
			p.SetName(fmt.Sprintf("old-%s-%d", name, i))
			p.SetUID(types.UID(p.GetName()))
			objects = append(objects, p)
		}
	}
	w := newWorld(t, objects...)
	for range 28 {
		w.clock.Step(5 * time.Second)
		for _, p := range w.pods() {
			if p.DeletionTimestamp != nil && p.DeletionTimestamp.Time.Before(w.clock.Now()) {
				p.Finalizers = nil
				w.must(w.kube.Update(w.ctx, &p))
			}
		}
		if w.pass(); len(w.loop.commands.active) > 0 {
			return
		}
	}
	t.Error("after three minutes no command has begun")
}
