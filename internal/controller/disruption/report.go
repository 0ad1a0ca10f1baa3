package disruption

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption/events"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// A node that stays is told why, again after tellEvery, or when the reason is
// another one; at most tellAtOnce nodes at a time, so that large fleets do not
// drown the API server in events.
const (
	tellEvery  = 15 * time.Minute
	tellAtOnce = 100
)

// toldStay is what was last told about a node.
type toldStay struct {
	reason model.Reason
	at     time.Time
}

// kind is what Karpenter calls a reason to stay.
type kind int

const (
	// silent reasons are no news: the node is needed, or going.
	silent kind = iota
	// blocked nodes may not be disrupted.
	blocked
	// unconsolidatable nodes may, but it would not be worth it.
	unconsolidatable
)

func kindOf(reason model.Reason) kind {
	switch reason {
	case model.ReasonNotInitialized, model.ReasonNodeHeld, model.ReasonPodHeld, model.ReasonPodBudget,
		model.ReasonPodBudgets, model.ReasonWindow, model.ReasonMoveFailed, model.ReasonPodInvalid:
		return blocked
	case model.ReasonNeverConsolidate, model.ReasonPolicy, model.ReasonNoPlace, model.ReasonNoCheaper, model.ReasonSpotToSpot,
		model.ReasonSpotTypes, model.ReasonDoesNotPay, model.ReasonSmallSaving, model.ReasonUnbalanced:
		return unconsolidatable
	}
	return silent
}

// countUnconsolidatable counts the nodes that may go but are worth keeping.
func countUnconsolidatable(moves *model.Commands) int {
	n := 0
	for i := range moves.Kept {
		if kindOf(moves.Kept[i].Reason) == unconsolidatable {
			n++
		}
	}
	return n
}

// reportStays tells nodes why they stay.
func (l *Loop) reportStays(ctx context.Context, input *fleet.DisruptionInput, moves *model.Commands) {
	now, told := l.Clock.Now(), make(map[string]toldStay, len(l.told))
	spoken := 0
	for i := range moves.Kept {
		st := &moves.Kept[i]
		node := &input.Problem.Nodes[st.Node]
		before, known := l.told[node.Name]
		if known && before.reason == st.Reason && now.Sub(before.at) < tellEvery {
			told[node.Name] = before
			continue
		}
		if k := kindOf(st.Reason); k != silent && spoken < tellAtOnce {
			l.tell(ctx, k, node, st.Message)
			told[node.Name] = toldStay{st.Reason, now}
			spoken++
		}
	}
	l.told = told
}

func (l *Loop) tell(ctx context.Context, k kind, node *model.Node, message string) {
	claim, object := &karpv1.NodeClaim{}, &corev1.Node{}
	if l.Clients.Cached.Get(ctx, client.ObjectKey{Name: node.Claim}, claim) != nil ||
		l.Clients.Cached.Get(ctx, client.ObjectKey{Name: node.Name}, object) != nil {
		return
	}
	if k == blocked {
		l.Recorder.Publish(events.Blocked(object, claim, message)...)
		return
	}
	l.Recorder.Publish(events.Unconsolidatable(object, claim, message)...)
}

// reportWait tells, once for every cause, what a move waits for whose replacements
// are there.
func (l *Loop) reportWait(ctx context.Context, m *move, cause string) {
	if m.waits != cause {
		m.waits = cause
		log.FromContext(ctx).Info("a move waits", "move", m.ID, "reason", string(m.Reason), "because", cause)
	}
}
