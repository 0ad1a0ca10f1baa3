package disruption

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpevents "sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// It is reported why a node is kept, again after reportEvery, or when the reason is
// another one; at most reportAtOnce nodes at a time, so that large fleets do not
// drown the API server in events.
const (
	reportEvery  = 15 * time.Minute
	reportAtOnce = 100
)

// reporter tells by events why nodes are kept.
type reporter struct {
	kube     client.Reader
	recorder karpevents.Recorder
	clock    clock.Clock
	// lastReported is what was last told about a node, by its name; only for nodes
	// that the last decision kept.
	lastReported map[string]report
}

// report is why a node is kept, and when that was told.
type report struct {
	reason model.Reason
	at     time.Time
}

// kind is what Karpenter calls a reason to keep a node.
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
		model.ReasonSpotTypes, model.ReasonKeepsPreferences, model.ReasonPoolWeight, model.ReasonDoesNotPay,
		model.ReasonPriceUnknown, model.ReasonSmallSaving, model.ReasonUnbalanced:
		return unconsolidatable
	default: // the other reasons are no news
	}
	return silent
}

// kindOn is the kind of what keeps a node. One that is unhealthy, has expired or has drifted would go
// whatever that costs, so that whatever keeps it blocks it, limits and quotas, too. What ends by itself,
// since others go first or machines for its pods are on their way, is no news; nor is what its
// NodePool tells of itself.
func kindOn(kept *model.KeptNode, usage *model.NodeUsage, now time.Time) kind {
	k := kindOf(kept.Reason)
	expired := !usage.ExpiresAt.IsZero() && !usage.ExpiresAt.After(now)
	if usage.Unhealthy == "" && usage.Drift == "" && !expired {
		return k
	}
	if kept.OthersFirst {
		return silent
	}
	switch kept.Reason {
	case model.ReasonBeingDisrupted, model.ReasonExpiresLater, model.ReasonPoolBudget, model.ReasonFrozen:
		return silent
	case model.ReasonNotInitialized:
		if !kept.Until.IsZero() { // for so long it waits for machines
			return silent
		}
	default: // all others hold it
	}
	return blocked
}

// countUnconsolidatable counts the nodes that may go but are worth keeping.
func countUnconsolidatable(p *model.DisruptionProblem, planned *model.Commands) int {
	n := 0
	for i := range planned.Kept {
		if kept := &planned.Kept[i]; kindOn(kept, &p.Usages[kept.Node], p.Now) == unconsolidatable {
			n++
		}
	}
	return n
}

// reportKept tells why nodes are kept.
func (r *reporter) reportKept(ctx context.Context, input *fleet.DisruptionInput, planned *model.Commands) {
	now, reported := r.clock.Now(), make(map[string]report, len(r.lastReported))
	sent := 0
	for i := range planned.Kept {
		st := &planned.Kept[i]
		node := &input.Problem.Nodes[st.Node]
		before, known := r.lastReported[node.Name]
		if known && before.reason == st.Reason && now.Sub(before.at) < reportEvery {
			reported[node.Name] = before
			continue
		}
		if k := kindOn(st, &input.Disruption.Usages[st.Node], now); k != silent && sent < reportAtOnce {
			r.publish(ctx, k, node, st.Reason, st.Message)
			reported[node.Name] = report{st.Reason, now}
			sent++
		}
	}
	r.lastReported = reported
}

func (r *reporter) publish(ctx context.Context, k kind, node *model.Node, reason model.Reason, message string) {
	object, claim := r.objects(ctx, node.Name, node.Claim)
	if object == nil {
		return
	}
	if k == blocked {
		r.recorder.Publish(event.KeptBlocked(object, claim, reason, message)...)
		return
	}
	r.recorder.Publish(event.Unconsolidatable(object, claim, reason, message)...)
}
