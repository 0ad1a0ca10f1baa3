package disruption

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/controller/metrics/metricstest"
	"github.com/nodeautoprovision/nap/internal/model"
)

// count is how many events have a part.
func (r *toldEvents) count(part string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, line := range r.lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

func TestNodePoolIsToldThatItsBudgetBlocks(t *testing.T) {
	closed := func(np *karpv1.NodePool) {
		np.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "0", Reasons: []karpv1.DisruptionReason{karpv1.DisruptionReasonUnderutilized}}, {Nodes: "100%"}}
	}
	w := newWorld(t, append([]client.Object{nodePool(closed)}, large()[1:]...)...)
	w.run(2)
	const told = "DisruptionBlocked general: No allowed disruptions for disruption reason Underutilized due to blocking budget"
	if !w.recorder.has(told) || w.recorder.has("disruption reason Drifted") || w.recorder.has("disruption reason Empty") {
		t.Errorf("want an event for Underutilized alone: %q", w.recorder.lines)
	}
	if got := w.sizes(); got != "D16 D16" {
		t.Errorf("left are %s, want both", got)
	}
}

// While the first machines of a NodePool are on their way its budgets count no node, and
// every percentage allows none.
func TestNodePoolThatScalesFromZeroIsNotToldOfBudgets(t *testing.T) {
	open := func(np *karpv1.NodePool) { np.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}} }
	starting := machine("a", "D16")[0].(*karpv1.NodeClaim)
	starting.Status = karpv1.NodeClaimStatus{}
	w := newWorld(t, nodePool(open), starting)
	w.pass()
	if w.recorder.has("DisruptionBlocked general") {
		t.Errorf("want no event of the NodePool: %q", w.recorder.lines)
	}
}

func TestNodesAreToldThatTheyAreCandidates(t *testing.T) {
	w := newWorld(t, large()...)
	w.pass()
	const told = "(part of 2-node consolidation) (savings: $1.400/h)"
	for _, name := range []string{"node-a", "node-b", "a", "b"} {
		if !w.recorder.has("ConsolidationCandidate "+name+": Consolidation candidate: replace: [node-") || !w.recorder.has(told) {
			t.Errorf("%s is not told: %q", name, w.recorder.lines)
		}
	}
}

func TestNodesAreToldThatTheyStayAfterAll(t *testing.T) {
	w := newWorld(t, large()...)
	before := metricstest.Value(t, ctrlmetrics.Registry, "karpenter_voluntary_disruption_failed_validations_total", "multi")
	w.pass()
	for _, p := range w.pods() {
		p.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"}
		w.must(w.kube.Update(w.ctx, &p))
	}
	w.cloud()
	w.run(3)
	if n := w.recorder.count("ConsolidationRejected node-"); n != 2 || !w.recorder.has("must not be disrupted") {
		t.Errorf("%d nodes are told that they stay, want two: %q", n, w.recorder.lines)
	}
	if n := metricstest.Value(t, ctrlmetrics.Registry, "karpenter_voluntary_disruption_failed_validations_total", "multi") - before; n != 2 {
		t.Errorf("%v failed validations are counted, want those of two nodes", n)
	}
}

func TestBalancedApprovalIsTold(t *testing.T) {
	balanced := func(np *karpv1.NodePool) { np.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidationPolicyBalanced }
	w := newWorld(t, append([]client.Object{nodePool(balanced)}, large()[1:]...)...)
	w.pass()
	if !w.recorder.has("ConsolidationApproved general: score ") || !w.recorder.has(">= threshold 0.50 (k: 2") {
		t.Errorf("the NodePool is not told: %q", w.recorder.lines)
	}
}

// A node that would go whatever that costs is told of all that keeps it, but for what ends by itself or
// its NodePool tells.
func TestNodeThatHasToGoIsToldWhatBlocksIt(t *testing.T) {
	for _, r := range []struct {
		reason            model.Reason
		until             time.Time
		sound, hasToLeave string
		othersFirst       bool
	}{
		{reason: model.ReasonNodeLimit, hasToLeave: "DisruptionBlocked"},
		{reason: model.ReasonPodBudget, sound: "DisruptionBlocked", hasToLeave: "DisruptionBlocked"},
		{reason: model.ReasonPodBudget, sound: "DisruptionBlocked", othersFirst: true},
		{reason: model.ReasonLimit, hasToLeave: "DisruptionBlocked"},
		{reason: model.ReasonCostLimit, hasToLeave: "DisruptionBlocked"},
		{reason: model.ReasonQuota, hasToLeave: "DisruptionBlocked"},
		{reason: model.ReasonStaticPool, hasToLeave: "DisruptionBlocked"},
		{reason: model.ReasonNominated, hasToLeave: "DisruptionBlocked"},
		{reason: model.ReasonNoPlace, sound: "Unconsolidatable", hasToLeave: "DisruptionBlocked"},
		{reason: model.ReasonPodHeld, sound: "DisruptionBlocked", hasToLeave: "DisruptionBlocked"},
		{reason: model.ReasonNotInitialized, sound: "DisruptionBlocked", hasToLeave: "DisruptionBlocked"},
		{reason: model.ReasonNotInitialized, until: time.Now().Add(2 * time.Hour), sound: "DisruptionBlocked"}, // machines are on their way
		{reason: model.ReasonBeingDisrupted},
		{reason: model.ReasonPoolBudget},
		{reason: model.ReasonFrozen},
	} {
		expired := machine("a", "D2")
		claim := expired[0].(*karpv1.NodeClaim) // the clock of the test is an hour ahead
		claim.Spec.ExpireAfter, claim.CreationTimestamp = karpv1.MustParseNillableDuration("30m"), metav1.Now()
		for state, objects := range map[string][]client.Object{
			"sound": machine("a", "D2"), "drifted": drifted("a", "D2"), "expired": expired,
		} {
			w := newWorld(t, all(objects)...)
			w.loop.decider.plan = func(*model.DisruptionProblem) *model.Commands {
				return &model.Commands{Kept: []model.KeptNode{{Reason: r.reason, Message: "this is why", Until: r.until, OthersFirst: r.othersFirst}}}
			}
			w.pass()
			want := r.hasToLeave
			if state == "sound" {
				want = r.sound
			}
			told := w.recorder.has(want + " node-a: this is why")
			if want == "" {
				told = !w.recorder.has("this is why")
			}
			if !told {
				t.Errorf("%s, a node that is %s: want %q, told was %q", r.reason, state, want, w.recorder.lines)
			}
		}
	}
}
