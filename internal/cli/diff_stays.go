package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
)

// stays says of nodes which an edit makes drift, by name, why they stay all the same, as long
// as what keeps them does: their own annotation, those of their pods, PodDisruptionBudgets, a
// frozen NodePool, a budget of the NodePool that never lets one go, or that their pods would find
// no other place. Other budgets of NodePools keep no node, they only make it wait. reasons are why
// the nodes drift; change has the edited NodePools and what is sold then.
func (c *planCommand) stays(
	ctx context.Context, read *planInput, change *fleetChange, reasons map[string]string,
) (map[string]string, error) {
	start := c.now()
	elapsed := func() time.Duration { return c.now().Sub(start) }
	store := (&fleetChange{pools: change.pools}).apply(read)
	input, err := store.Snapshot().Disruption(ctx, change.source, fleet.DisruptionOptions{
		Options:   fleet.Options{Now: start, Policy: c.policy(elapsed)},
		Unclaimed: !c.input.live(),
	})
	if err != nil {
		return nil, err
	}
	d := input.Disruption
	for i := range d.Policies {
		d.Policies[i].Allowed, d.Policies[i].Never = nil, true
		if count := d.Policies[i].Count; count != nil {
			settleCount(count)
		}
	}
	for i := range d.Usages {
		d.Usages[i].Drift = reasons[input.Problem.Nodes[i].Name]
	}
	out := map[string]string{}
	for _, kept := range consolidate.Plan(d).Kept {
		if name := input.Problem.Nodes[kept.Node].Name; reasons[name] != "" && lasts(&kept) {
			out[name] = kept.Message
		}
	}
	for i := range input.Problem.Nodes {
		name, pool := input.Problem.Nodes[i].Name, input.Problem.Nodes[i].Pool
		edited, is := change.pools[pool].(*v1.NodePool)
		if !is {
			edited = read.pools[pool]
		}
		if reasons[name] != "" && out[name] == "" && edited != nil && slices.ContainsFunc(edited.Spec.Disruption.Budgets, neverDrifts) {
			out[name] = "The budgets of NodePool " + pool + " let no node go for " + string(model.DisruptDrifted) + "."
		}
	}
	return out, nil
}

// neverDrifts reports whether a budget lets no drifted node go, at any time.
func neverDrifts(b v1.Budget) bool {
	none := b.Nodes == "0" || b.Nodes == "0%"
	return b.Schedule == nil && none && (len(b.Reasons) == 0 || slices.Contains(b.Reasons, v1.DisruptionReasonDrifted))
}

// settleCount is the number of nodes of a static NodePool once those are gone that are more than
// spec.replicas. Where its limit leaves room for one replacement, the others only wait for their turn.
func settleCount(count *model.StaticCount) {
	surplus := count.Surplus()
	count.Nodes, count.Staying = count.Nodes-surplus, count.Staying-surplus
	if count.Replaceable(0) {
		count.Limit = -1
	}
}

// lasts reports whether a reason keeps a drifted node for longer than other nodes take to go.
// All others say that the node waits for its turn, or for machines which replace others, or what
// consolidation thinks of it.
func lasts(kept *model.KeptNode) bool {
	if kept.Reason == model.ReasonNotInitialized && !kept.Until.IsZero() {
		return false
	}
	return !slices.Contains([]model.Reason{
		model.ReasonBeingDisrupted, model.ReasonMoveFailed, model.ReasonNominated, model.ReasonWindow, model.ReasonPoolBudget,
		model.ReasonKeptForWaiting, model.ReasonReceivesPods, model.ReasonNeverConsolidate, model.ReasonNotQuiet, model.ReasonPodsEnding,
		model.ReasonPolicy, model.ReasonExpiresLater, model.ReasonNoCheaper, model.ReasonKeepsPreferences, model.ReasonPoolWeight,
		model.ReasonDoesNotPay, model.ReasonPriceUnknown, model.ReasonSmallSaving, model.ReasonUnbalanced,
	}, kept.Reason)
}

// without is the change without the loss of nodes which stay.
func (f *fleetChange) without(stays map[string]string) {
	maps.DeleteFunc(f.lost, func(node string, _ bool) bool { return stays[node] != "" })
}

// write prints a drifted node: "~" where it is replaced, "=" with the reason where it stays.
func (d *driftedNode) write(w io.Writer) {
	if d.Stays == "" {
		fmt.Fprintf(w, "~ %s (%s)\n", d.Node, d.Reason)
		return
	}
	fmt.Fprint(w, prose("= %s (%s) stays:", d.Node, d.Reason), prose("    %s", d.Stays))
}
