package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
)

// Decision is what one round of the provisioning loop decided: on every pod that waits, and what the plan came to.
type Decision struct {
	// Plan is the id of the plan; empty when nothing had to be planned or nothing could be
	// bought.
	Plan string
	// NothingWaits says that nothing had to be planned.
	NothingWaits bool
	// At is when it was planned, Took how long that took.
	At   time.Time
	Took time.Duration
	// Pods is how many pods were planned, Pending how many of them found no place,
	// NewNodes how many nodes are bought for the others, at Cost per hour.
	Pods, Pending, NewNodes int
	Cost                    model.Money
	// Verdicts are on all pods that waited, by the reason or the NodeClaim that they have
	// in common.
	Verdicts []DecidedPods
	// LeftOut are the NodePools that buy nothing.
	LeftOut []model.LeftOut
	// Limits are the NodePools whose limits keep machines from being bought; one may be
	// there several times.
	Limits []ReachedLimit
}

// ReachedLimit is a limit of a NodePool that keeps machines from being bought.
type ReachedLimit struct {
	Pool string
	// Text says what the limit leaves, one sentence without its full stop.
	Text string
	// Pods are those that wait for the machines.
	Pods []model.PodRef
}

// DecidedPods are pods of one workload with what was decided on them.
type DecidedPods struct {
	// Workload is the kind, namespace and name of what controls the pods.
	Workload string
	Pods     []model.PodRef
	// NodeClaim is the machine that is on its way for them; empty for pods that wait.
	NodeClaim string
	// Event is the message of the pods' events, after Karpenter's own words.
	Event string
	// Words are the same in full; zero for pods with a NodeClaim.
	Words explain.Pending
}

// Decisions remember what the last round of the provisioning loop decided. They may be
// used from any goroutine.
type Decisions struct {
	mu   sync.Mutex
	last Decision
	// known says that some round has looked at what waits.
	known bool
}

// Decided remembers a round.
func (d *Decisions) Decided(round Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = d.known || round.NothingWaits || round.Plan != ""
	if round.Plan == "" { // nothing was planned
		plan := d.last
		round.Plan, round.At, round.Pods, round.NewNodes = plan.Plan, plan.At, plan.Pods, plan.NewNodes
		round.Pending, round.Cost, round.Took = plan.Pending, plan.Cost, plan.Took
	}
	d.last = round
}

// LimitsReached says which limits keep machines from being bought for pods that still wait
// in the fleet, by NodePool, and false before a round has looked at what waits. The fleet is
// asked for only where a limit is reached.
func (d *Decisions) LimitsReached(fleetNow func() *fleet.Snapshot) (map[string]string, bool) {
	d.mu.Lock()
	round, known := d.last, d.known
	d.mu.Unlock()
	out := map[string]string{}
	for _, l := range round.LeftOut {
		if l.Reason == model.ReasonCostLimit {
			out[l.Pool] = "Nothing is bought: " + l.Message
		}
	}
	if len(round.Limits) == 0 {
		return out, known
	}
	now := fleetNow()
	for i := range round.Limits {
		l := &round.Limits[i]
		if out[l.Pool] == "" && slices.ContainsFunc(l.Pods, func(ref model.PodRef) bool { return waits(now, ref) }) {
			out[l.Pool] = l.Text
		}
	}
	return out, known
}

// waits reports whether a pod still has no node.
func waits(now *fleet.Snapshot, ref model.PodRef) bool {
	pod := now.Pod(ref)
	return pod != nil && pod.Node == "" && !pod.Terminal && !pod.Terminating
}

// fill adds the decisions to a document, for the pods that still wait in a snapshot of the
// fleet. It returns why NodePools buy nothing, by their names.
func (d *Decisions) fill(doc *Document, now *fleet.Snapshot) map[string]string {
	d.mu.Lock()
	round := d.last
	d.mu.Unlock()
	leftOut := map[string]string{}
	for _, l := range round.LeftOut {
		if !l.Static {
			leftOut[l.Pool] = l.Message
		}
	}
	if round.Plan != "" {
		doc.Status.LastPlan = &v1alpha1.Plan{
			ID: round.Plan, At: metav1.NewTime(round.At.Truncate(time.Second)), Pods: int32(round.Pods), NewNodes: int32(round.NewNodes),
			Pending: int32(round.Pending), HourlyCost: fmt.Sprintf("%.3f", round.Cost.Dollars()), Took: round.Took.Round(time.Millisecond).String(),
		}
	}
	for i := range round.Verdicts {
		v := &round.Verdicts[i]
		out := Verdict{
			Workload: v.Workload, NodeClaim: v.NodeClaim, Event: v.Event,
			Reason: string(v.Words.Reason), Why: v.Words.Why, Nearest: v.Words.Nearest, Fix: v.Words.Fix, NotCause: v.Words.NotCause,
			Details: v.Words.Details,
		}
		for _, ref := range v.Pods {
			if waits(now, ref) {
				out.Pods = append(out.Pods, ref.String())
			}
		}
		if len(out.Pods) == 0 {
			continue
		}
		slices.Sort(out.Pods)
		doc.Verdicts = append(doc.Verdicts, out)
		if v.NodeClaim != "" {
			continue
		}
		doc.Status.PendingPods += int32(len(out.Pods))
		doc.Status.Pending = append(doc.Status.Pending, v1alpha1.PendingWorkload{
			Workload: v.Workload, Pods: int32(len(out.Pods)), Pod: out.Pods[0], Reason: out.Reason, Message: v.Event,
		})
	}
	slices.SortStableFunc(doc.Status.Pending, func(x, y v1alpha1.PendingWorkload) int {
		return cmp.Or(cmp.Compare(y.Pods, x.Pods), cmp.Compare(x.Pod, y.Pod))
	})
	return leftOut
}
