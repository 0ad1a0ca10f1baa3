package disruption

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/model"
)

// The API server refuses a few writes in a row, each in turn being the first of
// them, or does what is asked and says that it did not; then it is well again.
func TestCommandSurvivesFailureOfAnyWrite(t *testing.T) {
	things := schema.GroupResource{Group: "karpenter.sh", Resource: "nodeclaims"}
	for name, answer := range map[string]error{
		"conflict": apierrors.NewConflict(things, "a", fmt.Errorf("somebody else was faster")),
		"busy":     apierrors.NewTooManyRequests("the server has much to do", 1),
		"timeout":  apierrors.NewTimeoutError("the server did not answer", 1),
	} {
		for kind, c := range map[string]struct {
			fleet func() []client.Object
			want  string
		}{"delete": {half, "D2"}, "replace": {large, "D4"}} {
			for _, done := range []bool{false, true} {
				if done && name != "timeout" {
					continue // what is refused is not done
				}
				t.Run(fmt.Sprintf("%s %s done=%t", name, kind, done), func(t *testing.T) {
					for at := 1; ; at++ {
						w := newWorld(t, c.fleet()...)
						w.stumbles = func(write int) (error, bool) {
							if write < at || write >= at+4 {
								return nil, true
							}
							return answer, done
						}
						w.run(20)
						w.clock.Step(2 * restAtLeast)
						w.run(12)
						if got := w.sizes(); got != c.want {
							t.Errorf("stumbled at write %d: left are %s, want %s", at, got, c.want)
						}
						w.wantQuiet()
						if t.Failed() || w.writes < at {
							return
						}
					}
				})
			}
		}
	}
}

// A hundred empty nodes are marked while the API server is slow and the caches are behind: that
// takes a minute, and no command is rolled back for it.
func TestSlowWritesRollNothingBack(t *testing.T) {
	objects := []client.Object{nodePool()}
	for i := range 100 {
		objects = append(objects, machine(fmt.Sprintf("m%02d", i), "D2")...)
	}
	w := newWorld(t, objects...)
	w.stumbles = func(int) (error, bool) {
		w.clock.Step(200 * time.Millisecond)
		return nil, true
	}
	w.pass()
	if got := w.writes; got > 4*100 {
		t.Errorf("%d writes, want a record, a taint, a reason and a deletion for each of 100 nodes", got)
	}
	w.pass()
	w.terminate()
	w.pass()
	if got := w.sizes(); got != "" {
		t.Errorf("left are %s", got)
	}
	if w.recorder.has("RolledBack") || w.recorder.has("rolled back") {
		t.Errorf("commands were rolled back: %s", strings.Join(w.recorder.lines, "\n"))
	}
	w.wantQuiet()
}

func TestLoopRecoversFromPlannerPanic(t *testing.T) {
	w := newWorld(t, half()...)
	plan := w.loop.decider.plan
	w.loop.decider.plan = func(*model.DisruptionProblem) *model.Commands { panic("a mistake") }
	w.run(3)
	if got := w.sizes(); got != "D2 D2 D2 D2" {
		t.Fatalf("left are %s, want all", got)
	}
	w.loop.decider.plan = plan
	w.clock.Step(decideAtAll)
	w.run(8)
	if got := w.sizes(); got != "D2" {
		t.Errorf("left are %s, want one: the loop has not recovered", got)
	}
	w.wantQuiet()
}

func TestCommandRolledBackWhenReplacementNeverReady(t *testing.T) {
	w := newWorld(t, large()...)
	w.pass()
	if n := len(w.claims()); n != 3 {
		t.Fatalf("%d claims, want two and a replacement", n)
	}
	for range 3 {
		w.passFor(replaceWithin / 2)
	}
	for _, c := range w.claims() {
		if c.Annotations[v1beta1.AnnotationReplaces] != "" && c.DeletionTimestamp.IsZero() {
			t.Errorf("replacement %s is still waited for", c.Name)
		}
	}
	for _, n := range w.nodes() {
		if tainted(&n) {
			t.Errorf("node %s is tainted for a machine that does not come", n.Name)
		}
	}
	if len(w.evicted) > 0 {
		t.Errorf("evicted were %q", w.evicted)
	}
}

// A machine that Azure calls broken at boot is not waited for: its move ends in the next
// pass, and its node takes pods again.
func TestCommandRolledBackAtOnceWhenReplacementDoesNotBoot(t *testing.T) {
	w := newWorld(t, large()...)
	w.pass()
	for _, c := range w.claims() {
		if c.Annotations[v1beta1.AnnotationReplaces] != "" {
			c.StatusConditions().SetFalse(v1beta1.ConditionBooted, v1beta1.ReasonBootFailed, "exit 124")
			w.must(w.kube.Status().Update(w.ctx, &c))
		}
	}
	begun := w.clock.Now()
	w.pass()
	w.pass()
	if took := w.clock.Since(begun); took > 10*time.Second {
		t.Fatalf("the passes took %s", took)
	}
	w.terminate()
	w.sync()
	if got := w.sizes(); got != "D16 D16" || len(w.claims()) != 2 {
		t.Errorf("left are %s and %d claims, want the two nodes alone", got, len(w.claims()))
	}
	if len(w.evicted) > 0 {
		t.Errorf("evicted were %q", w.evicted)
	}
	if !w.recorder.has("does not become a node: exit 124") {
		t.Errorf("no event says why: %q", w.recorder.lines)
	}
	w.wantQuiet()
}

func TestCommandRolledBackWhenNodePoolIsDeleted(t *testing.T) {
	w := newWorld(t, large()...)
	w.pass()
	w.delete(&karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}})
	w.run(5)
	w.clock.Step(2 * restAtLeast)
	w.run(5)
	if len(w.evicted) > 0 {
		t.Errorf("evicted were %q, for a NodePool that nobody has", w.evicted)
	}
	w.wantQuiet()
}

func TestCommandRolledBackWhenConsolidationIsDisabled(t *testing.T) {
	w := newWorld(t, large()...)
	w.pass()
	np := &karpv1.NodePool{}
	w.must(w.kube.Get(w.ctx, client.ObjectKey{Name: "general"}, np))
	np.Spec.Disruption.ConsolidateAfter = karpv1.MustParseNillableDuration("Never")
	w.must(w.kube.Update(w.ctx, np))
	w.run(5)
	w.clock.Step(2 * restAtLeast)
	w.run(5)
	if got := w.sizes(); got != "D16 D16" {
		t.Errorf("left are %s, want both", got)
	}
	w.wantQuiet()
}

func TestPodDisruptionBudgetClosedBeforeEvictionStopsCommand(t *testing.T) {
	w := newWorld(t, large()...)
	w.pass()
	w.create(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 1},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &intstr.IntOrString{IntVal: 0}, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 2, CurrentHealthy: 2, DesiredHealthy: 2},
	})
	w.run(5)
	if len(w.evicted) > 0 {
		t.Errorf("evicted were %q", w.evicted)
	}
	w.clock.Step(2 * replaceWithin)
	w.run(5)
	if got := w.sizes(); got != "D16 D16" {
		t.Errorf("left are %s, want both nodes and no replacement", got)
	}
	w.wantQuiet()
}

func TestCommandSurvivesManualNodeDeletion(t *testing.T) {
	w := newWorld(t, three()...)
	w.pass()
	w.pass()
	for _, c := range w.claims() {
		if c.Name == "b" {
			w.delete(&c)
		}
	}
	w.place = func(pod *corev1.Pod, but string) string { return w.roomFor(pod, but) }
	w.cloud()
	w.run(6)
	w.clock.Step(2 * restAtLeast)
	w.run(8)
	if got := w.sizes(); got != "D8" && got != "D16" {
		t.Errorf("left are %s, want one machine", got)
	}
	w.wantQuiet()
}

func TestCommandCompletesAfterClockIsSetBack(t *testing.T) {
	w := newWorld(t, large()...)
	w.pass()
	w.clock.SetTime(w.clock.Now().Add(-time.Hour))
	w.run(6)
	w.clock.SetTime(w.clock.Now().Add(2 * time.Hour))
	w.run(10)
	if got := w.sizes(); got != "D4" {
		t.Errorf("left are %s, want D4", got)
	}
	w.wantQuiet()
}
