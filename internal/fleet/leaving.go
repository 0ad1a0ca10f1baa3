package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// LeavingNode is a node whose NodeClaim is deleted and which is still there: it is drained, its
// volumes are detached, and its machine is deleted, in this order. It is billed until then.
type LeavingNode struct {
	// Node may be empty for a machine that is no node. Claim and Pool are its NodeClaim's.
	Node, Claim, Pool string
	// Command is the id of the command that removes it, empty where none does.
	Command string
	// Since is when the deletion was asked for.
	Since time.Time
	// Blocks is what the node waits for that does not end by itself, or takes longer than is
	// usual, with the Fix for it; both are empty while nothing is known to be in the way.
	Blocks, Fix string
	// Pod is the pod that Blocks speaks of; zero where it speaks of none. ByBudget says that
	// a PodDisruptionBudget is what holds it, Overdue that its time to end is over, Detaching
	// that volumes have to be detached.
	Pod                          model.PodRef
	ByBudget, Overdue, Detaching bool
	// Evicting are the pods that its drain has still to evict, Ending those that it waits for which
	// are terminating. Waits is what the drain waits for that ends by itself, as a rule; empty where
	// Blocks is set.
	Evicting, Ending []model.PodRef
	Waits            string
}

// NothingInTheWay is what is said of a node that leaves while nothing is known to block it.
const NothingInTheWay = "its deletion was asked for, and nothing is known to be in the way"

// endDrain is what ends every drain in time.
const endDrain = "set terminationGracePeriod on the NodePool, which bounds the drain of nodes that are bought from then on"

// usuallyWithin is how long volumes may take to be detached, and a PodDisruptionBudget may allow no
// eviction after the deletion was asked for, before that is told: every drain of a node with a disk
// waits for it, and a budget lets one pod go after the other.
const usuallyWithin = 5 * time.Minute

// LeavingNodes are the nodes that leave, those that have done so for longest first. now decides
// which do-not-disrupt periods have ended.
func (s *Snapshot) LeavingNodes(now time.Time) []LeavingNode {
	var out []LeavingNode
	at := map[string]int{}
	for claim := range s.Claims() {
		if claim.LeavingSince.IsZero() {
			continue
		}
		n := LeavingNode{Node: claim.NodeName, Claim: claim.Name, Pool: claim.Pool, Since: claim.LeavingSince}
		if claim.Command != nil {
			n.Command = claim.Command.ID
		}
		out = append(out, n)
	}
	if len(out) == 0 {
		return nil
	}
	slices.SortFunc(out, func(x, y LeavingNode) int { return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.Claim, y.Claim)) })
	for i := range out {
		if out[i].Node != "" {
			at[out[i].Node] = i
		}
	}
	pods := make([][]*Pod, len(out))
	for p := range s.Pods() {
		if i, leaves := at[p.Node]; leaves && p.Bound() && holdsDrain(p, now) {
			pods[i] = append(pods[i], p)
		}
	}
	budgets := newPodBudgets(s.budgets, now)
	for i := range out {
		slices.SortFunc(pods[i], func(x, y *Pod) int { return compareRefs(x.Ref, y.Ref) })
		out[i].judge(s.Claim(out[i].Claim), pods[i], budgets, now)
	}
	return out
}

// stuckAfter is how long after its time to end Karpenter's drain waits for a terminating pod.
const stuckAfter = time.Minute

// awaitsDrain reports whether the drain of a node has still to evict a pod.
func awaitsDrain(p *Pod) bool { return !p.Terminating && heedsDrain(p) }

// holdsDrain reports whether the drain of a node waits for a pod: it has still to evict it, or the pod
// is terminating and not stuck in that.
func holdsDrain(p *Pod, now time.Time) bool {
	return heedsDrain(p) && (p.Leaving == nil || now.Sub(p.Leaving.GoneBy) <= stuckAfter)
}

// heedsDrain reports whether a drain speaks of a pod at all. Like Karpenter, it neither evicts nor
// waits for pods which tolerate the taint of the node, as most DaemonSets' do.
func heedsDrain(p *Pod) bool {
	leaves := model.Taint{Key: "karpenter.sh/disrupted", Effect: model.NoSchedule}
	return !p.Static && model.Untolerated([]model.Taint{leaves}, p.Spec.Tolerations) != nil
}

// judge says what keeps the node: an annotated pod, a PodDisruptionBudget, a terminating pod, or
// volumes.
func (n *LeavingNode) judge(claim *Claim, pods []*Pod, budgets *podBudgets, now time.Time) {
	switch {
	case claim.Terminating: // its machine is being deleted
		return
	case claim.Detaching && now.Sub(claim.DetachingSince) < usuallyWithin: // as in every drain
	case claim.Detaching:
		n.Detaching = true
		n.Blocks = "it is drained and waits for its VolumeAttachments to be gone"
		n.Fix = "See whether the CSI driver of the volumes works, and which pods still use them; or " + endDrain + "."
	default:
		n.drains(pods, budgets, now)
	}
	if n.Blocks != "" && claim.GracePeriod && !n.Overdue {
		n.Blocks += "; its terminationGracePeriod ends that by force"
	}
}

// drains says what its drain waits for: pods to evict, and pods that are terminating.
func (n *LeavingNode) drains(pods []*Pod, budgets *podBudgets, now time.Time) {
	var last *Pod
	for _, p := range pods {
		if p.Leaving == nil {
			n.Evicting = append(n.Evicting, p.Ref)
			continue
		}
		n.Ending = append(n.Ending, p.Ref)
		if last == nil || p.Leaving.GoneBy.After(last.Leaving.GoneBy) {
			last = p
		}
	}
	for _, p := range pods {
		switch {
		case p.Leaving != nil:
		case n.held(p, now):
			n.Fix = "Remove the annotation from the pod, or delete the pod; or " + endDrain + "."
			return
		case n.budgeted(p, budgets, now):
			n.Fix = "Raise maxUnavailable, add replicas, or see why pods of the budget are not healthy; or " + endDrain + "."
			return
		}
	}
	if last != nil {
		n.ending(last, now)
	}
}

// ending notes the terminating pod that may take longest.
func (n *LeavingNode) ending(p *Pod, now time.Time) {
	until := p.Leaving.GoneBy.UTC().Format(time.RFC3339)
	if now.Sub(p.Leaving.GoneBy) <= overdue {
		n.Waits = cmp.Or(n.Waits, fmt.Sprintf("it waits for pod %s, which is terminating and has until %s to end", p.Ref, until))
		return
	}
	n.Pod, n.Overdue, n.Waits = p.Ref, true, ""
	n.Blocks = fmt.Sprintf("pod %s had until %s to end and is still there: its finalizers or the kubelet hold it", p.Ref, until)
	n.Fix = "See which finalizers the pod has, and whether the kubelet of the node works. " +
		"The drain waits for the pod until a minute after its time, and then goes on without it."
}

// held notes a pod with the annotation karpenter.sh/do-not-disrupt.
func (n *LeavingNode) held(p *Pod, now time.Time) bool {
	if !p.KeepUntil.After(now) {
		return false
	}
	n.Pod = p.Ref
	n.Blocks = fmt.Sprintf("pod %s must not be disrupted (karpenter.sh/do-not-disrupt)", p.Ref)
	if p.KeepUntil.Before(Forever) {
		n.Blocks = fmt.Sprintf("pod %s must not be disrupted before %s (karpenter.sh/do-not-disrupt)",
			p.Ref, p.KeepUntil.UTC().Format(time.RFC3339))
	}
	return true
}

// budgeted notes a pod whose eviction PodDisruptionBudgets never allow, or not for long already.
func (n *LeavingNode) budgeted(p *Pod, budgets *podBudgets, now time.Time) bool {
	of := budgets.of(p)
	if len(of) > 1 {
		n.Blocks = fmt.Sprintf("%d PodDisruptionBudgets (%s, %s) speak of pod %s, which the eviction API refuses",
			len(of), &budgets.listed[of[0]], &budgets.listed[of[1]], p.Ref)
	} else if len(of) == 1 {
		switch b := &budgets.listed[of[0]]; {
		case b.Blocking:
			n.Blocks = fmt.Sprintf("PodDisruptionBudget %s never allows an eviction of pod %s", b, p.Ref)
		case b.Allowed <= 0:
			n.Waits = fmt.Sprintf("PodDisruptionBudget %s allows no eviction of pod %s now", b, p.Ref)
			if now.Sub(n.Since) >= usuallyWithin {
				n.Blocks = n.Waits
			}
		}
	}
	if n.Blocks == "" {
		return false
	}
	n.Pod, n.ByBudget, n.Waits = p.Ref, true, ""
	return true
}
