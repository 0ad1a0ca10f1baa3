package disruption

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/eligibility"
)

// reportPools tells NodePools with nodes whose budgets allow no disruption at all for a
// reason. Nodes which budgets do not count yet are none: of none, 100 percent is 0.
func (r *reporter) reportPools(p *model.DisruptionProblem, pools map[string]*karpv1.NodePool) {
	for i := range p.Policies {
		policy, pool := &p.Policies[i], pools[p.Policies[i].Pool]
		if pool == nil || policy.Counted == 0 || policy.Frozen != "" { // a frozen one says so itself
			continue
		}
		for _, reason := range []model.DisruptionReason{model.DisruptEmpty, model.DisruptDrifted, model.DisruptUnderutilized,
			model.DisruptUnhealthy} {
			if allowed, limited := policy.Budgeted[reason]; limited && allowed == 0 {
				r.recorder.Publish(event.NodePoolBlocked(pool, reason))
			}
		}
	}
}

// reportChosen tells the nodes of commands of consolidation that they are to be removed,
// up to reportAtOnce of them.
func (r *reporter) reportChosen(ctx context.Context, begun []*command) {
	sent := 0
	for _, c := range begun {
		if !consolidates(&c.Record) {
			continue
		}
		for _, n := range c.Remove {
			if sent++; sent > reportAtOnce {
				return
			}
			if node, claim := r.objects(ctx, n.Node, n.Claim); node != nil {
				r.recorder.Publish(event.Candidate(node, claim, inWords(&c.Record, n), model.USD(c.Saving))...)
			}
		}
	}
}

// reportRefused tells nodes of a command of consolidation that they stay after all.
func (r *reporter) reportRefused(ctx context.Context, was *Record, nodes []Removed, why string) {
	for _, n := range nodes[:min(len(nodes), reportAtOnce)] {
		if node, claim := r.objects(ctx, n.Node, n.Claim); node != nil {
			r.recorder.Publish(event.Rejected(node, claim, inWords(was, n), why, model.USD(was.Saving))...)
		}
	}
}

// reportScores tells what the policy Balanced has approved of: a node, or the NodePool
// of several.
func (r *reporter) reportScores(
	ctx context.Context, p *model.DisruptionProblem, scores []model.BalancedScore, pools map[string]*karpv1.NodePool,
) {
	for i := range scores[:min(len(scores), reportAtOnce)] {
		s := &scores[i]
		pool := pools[p.Policies[s.Policy].Pool]
		switch {
		case !s.Approved || pool == nil:
		case len(s.Nodes) > 1:
			r.recorder.Publish(event.ApprovedTogether(pool, s, eligibility.BalancedK))
		default:
			of := &p.Problem.Nodes[s.Nodes[0]]
			if node, claim := r.objects(ctx, of.Name, of.Claim); node != nil {
				r.recorder.Publish(event.Approved(node, claim, s, eligibility.BalancedK)...)
			}
		}
	}
}

// consolidates reports whether a command saves money, and is not forced.
func consolidates(r *Record) bool {
	return r.Reason == model.DisruptUnderutilized || r.Reason == model.DisruptEmpty
}

// inWords is a command as an event tells it to one of its nodes.
func inWords(r *Record, n Removed) string {
	decision := "delete"
	if len(r.Replace) > 0 {
		decision = "replace"
	}
	text := fmt.Sprintf("%s: [%s]", decision, n.Node)
	if len(r.Remove) > 1 {
		text += fmt.Sprintf(" (part of %d-node consolidation)", len(r.Remove))
	}
	return text
}

// objects reads a node and its claim; nil where one of them is gone.
func (r *reporter) objects(ctx context.Context, node, claim string) (*corev1.Node, *karpv1.NodeClaim) {
	n, c := &corev1.Node{}, &karpv1.NodeClaim{}
	if r.kube.Get(ctx, client.ObjectKey{Name: claim}, c) != nil || r.kube.Get(ctx, client.ObjectKey{Name: node}, n) != nil {
		return nil, nil
	}
	return n, c
}
