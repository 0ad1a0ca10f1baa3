package event

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	disruptionevents "sigs.k8s.io/karpenter/pkg/controllers/disruption/events"
	"sigs.k8s.io/karpenter/pkg/controllers/node/legacyrepair"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
)

// Blocked says on a node and its NodeClaim why it may not be removed.
func Blocked(node *corev1.Node, claim *karpv1.NodeClaim, message string) []events.Event {
	return lines(disruptionevents.Blocked(node, claim, message)...)
}

// KeptBlocked says on a node and its NodeClaim by which rule it may not be removed.
func KeptBlocked(node *corev1.Node, claim *karpv1.NodeClaim, reason model.Reason, message string) []events.Event {
	return Blocked(node, claim, kept(reason, message))
}

// Unconsolidatable says on a node that may go, and its NodeClaim, why it is worth keeping.
func Unconsolidatable(node *corev1.Node, claim *karpv1.NodeClaim, reason model.Reason, message string) []events.Event {
	return lines(disruptionevents.Unconsolidatable(node, claim, kept(reason, message))...)
}

// kept is why a node is kept. The names in it are those of pods and budgets and may be long: then
// what the reason means comes first.
func kept(reason model.Reason, message string) string {
	if utf8.RuneCountInString(message) <= Most {
		return message
	}
	return strings.TrimSuffix(explain.Meaning(reason), ".") + ": " + message
}

// NodePoolBlocked says on a NodePool that its budgets allow no disruption at all for a reason.
// It is sent every 15 minutes at most, and Kubernetes keeps an event for an hour. Karpenter's
// may be sent every minute: many writes, where many NodePools are closed for long.
func NodePoolBlocked(pool *karpv1.NodePool, reason model.DisruptionReason) events.Event {
	e := lines(disruptionevents.NodePoolBlockedForDisruptionReason(pool, karpv1.DisruptionReason(reason)))[0]
	e.DedupeTimeout = 15 * time.Minute
	return e
}

// RepairBlocked says on an unhealthy node and its NodeClaim why it is not repaired now.
func RepairBlocked(node *corev1.Node, claim *karpv1.NodeClaim, why string) []events.Event {
	return Blocked(node, claim, "Repair is blocked by "+why)
}

// TooManyUnhealthy says on an unhealthy node that it is not repaired, since more than a share of
// the nodes are unhealthy.
func TooManyUnhealthy(node *corev1.Node, claim *karpv1.NodeClaim, share string) []events.Event {
	return lines(legacyrepair.NodeRepairBlockedUnmanagedNodeClaim(node, claim, "more than "+share+" nodes are unhealthy in the nodepool")...)
}

// RolledBack says on a node and its NodeClaim that it stays, since the command that was to remove
// it has failed.
func RolledBack(node *corev1.Node, claim *karpv1.NodeClaim, why string) []events.Event {
	return Blocked(node, claim, "Disruption was rolled back: "+why)
}

// Replacing says on a NodeClaim that it is to replace nodes, and why these go.
func Replacing(claim *karpv1.NodeClaim, reason model.DisruptionReason) events.Event {
	return lines(disruptionevents.Launching(claim, string(reason)))[0]
}

// WaitingOnReadiness says on the NodeClaim of a replacement that nodes wait for it.
func WaitingOnReadiness(claim *karpv1.NodeClaim) events.Event {
	return lines(disruptionevents.WaitingOnReadiness(claim))[0]
}

// Terminating says on a node and its NodeClaim that it is removed, and why.
func Terminating(node *corev1.Node, claim *karpv1.NodeClaim, reason model.DisruptionReason) []events.Event {
	return lines(disruptionevents.Terminating(node, claim, string(reason))...)
}

// Candidate says on a node and its NodeClaim that consolidation removes it, and what the command
// saves, to the last digit: Karpenter rounds to cents, which makes $0.004/h nothing.
func Candidate(node *corev1.Node, claim *karpv1.NodeClaim, command string, saving model.Money) []events.Event {
	return onNode(node, claim, events.ConsolidationCandidate,
		fmt.Sprintf("Consolidation candidate: %s (savings: %s)", command, saving), command)
}

// Rejected says on a node and its NodeClaim that it stays, since a second look spoke against the
// command that was to remove it.
func Rejected(node *corev1.Node, claim *karpv1.NodeClaim, command, why string, saving model.Money) []events.Event {
	return onNode(node, claim, events.ConsolidationRejected,
		fmt.Sprintf("Consolidation rejected: %s, reason: %s (savings: %s)", command, strings.TrimSuffix(why, "."), saving), command, why)
}

// onNode is one event on a node and one on its NodeClaim.
func onNode(node *corev1.Node, claim *karpv1.NodeClaim, reason, message string, values ...string) []events.Event {
	var out []events.Event
	for _, o := range []client.Object{node, claim} {
		out = append(out, normal(o, reason, message, values...))
	}
	return out
}

// Approved says on a node and its NodeClaim that policy Balanced approves of removing it.
func Approved(node *corev1.Node, claim *karpv1.NodeClaim, s *model.BalancedScore, k int32) []events.Event {
	return lines(disruptionevents.ConsolidationApproved(node, claim, s.Score(), 1/float64(k), k, 100*s.Saving, 100*s.Disruption)...)
}

// ApprovedTogether says the same on a NodePool of a command that removes several of its nodes.
func ApprovedTogether(pool *karpv1.NodePool, s *model.BalancedScore, k int32) events.Event {
	return lines(disruptionevents.ConsolidationApprovedMultiNode(pool, s.Score(), 1/float64(k), k, 100*s.Saving, 100*s.Disruption))[0]
}
