package disruption

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// A fleet has drifted, its new machines come in two batches, the old ones are slow to go, and
// the scheduler puts the pods that move first on the machines that were bought for others. What
// those were bought with is room for all still: no move is rolled back.
func TestMassDriftRollsNothingBack(t *testing.T) {
	const machines = 12
	objects := []client.Object{nodePool()}
	for i := range machines {
		name := fmt.Sprintf("m%02d", i)
		objects = append(objects, drifted(name, "D16")...)
		objects = append(objects, running(3, "web", "5", name)...)
	}
	w := newWorld(t, objects...)
	w.place = w.emptiest
	w.pass()
	w.pass()
	if got := len(w.claims()); got != 2*machines {
		t.Fatalf("%d NodeClaims, want a replacement of each of %d", got, machines)
	}
	w.cloudAtMost(machines / 2)
	w.pass()
	w.cloud() // the others are ready before the pods of the first have gone
	for range 6 {
		w.evict()
		w.moveAll()
		w.pass()
	}
	for range 6 {
		w.run(1)
	}
	if w.recorder.has("rolled back") {
		t.Errorf("moves were rolled back: %s", strings.Join(w.recorder.lines, "\n"))
	}
	if got := len(w.evicted); got != 3*machines {
		t.Errorf("%d pods moved, want each of %d once", got, 3*machines)
	}
	for _, c := range w.claims() {
		if c.StatusConditions().IsTrue(karpv1.ConditionTypeDrifted) {
			t.Errorf("NodeClaim %s has drifted and is still there", c.Name)
		}
	}
	w.wantQuiet()
}

// The pods of one machine have gone to what was bought for the other, whose own pods are slow to
// leave. What was bought for the first is empty by now, and is kept for them.
func TestEmptyReplacementIsKeptForPodsWhosePlaceIsTaken(t *testing.T) {
	objects := []client.Object{nodePool()}
	for _, name := range []string{"a", "b"} {
		objects = append(objects, drifted(name, "D16")...)
		objects = append(objects, running(3, "web", "5", name)...)
	}
	w := newWorld(t, objects...)
	w.pass()
	w.pass()
	w.cloudAtMost(1)
	w.pass() // deletes the one whose replacement is there
	var first, other string
	for _, c := range w.claims() {
		switch {
		case c.Annotations[v1beta1.AnnotationReplaces] == "":
		case c.Status.NodeName != "":
			first = c.Status.NodeName
		default:
			other = "node-" + c.Name
		}
	}
	w.cloud()
	w.place = func(*corev1.Pod, string) string { return other }
	w.terminate()
	w.place = w.emptiest
	for range 10 { // the pods of the second do not leave yet
		w.pass()
	}
	if !slices.ContainsFunc(w.claims(), func(c karpv1.NodeClaim) bool { return c.Status.NodeName == first && c.DeletionTimestamp.IsZero() }) {
		t.Errorf("%s is given back, though the pods that leave have no other place", first)
	}
	w.run(6)
	if got := w.sizes(); got != "D16 D16" || len(w.evicted) != 6 {
		t.Errorf("left are %s after %d pods have moved, want both replacements and 6", got, len(w.evicted))
	}
	w.wantQuiet()
}

// onlyD4 is a NodePool of one size whose nodes are never consolidated.
func onlyD4(np *karpv1.NodePool) {
	np.Spec.Disruption.ConsolidateAfter = karpv1.MustParseNillableDuration("Never")
	np.Spec.Template.Spec.Requirements = append(np.Spec.Template.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{
		Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"D4"},
	})
}

// Eight drifted nodes are half full, and nothing consolidates them later. As many machines are
// bought as their pods need, half of them wait for the room on these, and all go in two rounds.
func TestDriftedNodesHalfFullShareMachines(t *testing.T) {
	objects := []client.Object{nodePool(onlyD4)}
	for i := range 8 {
		name := fmt.Sprintf("m%d", i)
		objects = append(objects, drifted(name, "D4")...)
		objects = append(objects, running(1, "web", "1700m", name)...)
	}
	w := newWorld(t, objects...)
	for range 4 {
		w.pass()
	}
	if got := len(w.claims()); got != 12 {
		t.Errorf("%d NodeClaims before the first machine is ready, want four new ones", got)
	}
	w.run(12)
	if got := w.sizes(); got != "D4 D4 D4 D4" || len(w.evicted) != 8 {
		t.Errorf("left are %s after %d pods have moved, want four machines and 8", got, len(w.evicted))
	}
	w.wantQuiet()
}

// A drifted node waits for room on the machine of another, whose drain hangs. It gets its own
// when a quarter of an hour has passed, though nothing else has changed.
func TestDriftedNodeWaitsForNoDrainThatHangs(t *testing.T) {
	objects := []client.Object{nodePool(onlyD4)}
	for _, name := range []string{"a", "b"} {
		objects = append(objects, drifted(name, "D4")...)
		objects = append(objects, running(1, "web", "1700m", name)...)
	}
	w := newWorld(t, objects...)
	for range 20 {
		w.pass()
		w.cloud()
	}
	if got := len(w.claims()); got != 3 || w.disrupted() != 1 {
		t.Fatalf("%d NodeClaims and %d nodes are disrupted, want one replacement and one node that is drained", got, w.disrupted())
	}
	w.clock.Step(15 * time.Minute)
	w.pass()
	w.pass()
	if got := len(w.claims()); got != 4 || w.disrupted() != 2 {
		t.Errorf("a quarter of an hour later: %d NodeClaims and %d nodes are disrupted, want two replacements", got, w.disrupted())
	}
}

// A NodePool is at its limits, and pods that waited because of these take the machine that was bought
// for a drifted node, as they would take any other one. The node goes: else there would be two
// machines, and none of them upgraded.
func TestDriftedNodeGoesWhenPodsTakeItsPlaceAtFullLimits(t *testing.T) {
	objects := []client.Object{nodePool(onlyD4, func(np *karpv1.NodePool) {
		np.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: resource.MustParse("4")}
	})}
	objects = append(objects, drifted("a", "D4")...)
	w := newWorld(t, append(objects, running(1, "web", "3", "a")...)...)
	w.pass()
	w.pass()
	w.cloud()
	var bought string
	for _, c := range w.claims() {
		if c.Annotations[v1beta1.AnnotationReplaces] != "" {
			bought = c.Name
		}
	}
	if bought == "" {
		t.Fatal("nothing was bought for the drifted node")
	}
	w.create(running(1, "wait", "3", bought)[0])
	w.place = func(*corev1.Pod, string) string { return "" }
	for range 3 {
		w.pass()
		w.evict()
	}
	w.terminate()
	w.pass()
	if left := w.claims(); len(left) != 1 || left[0].Name != bought || w.recorder.has("rolled back") {
		t.Errorf("%d NodeClaims are left, want %s alone: %s", len(left), bought, strings.Join(w.recorder.lines, "\n"))
	}
}
