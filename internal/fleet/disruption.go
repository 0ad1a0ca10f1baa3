package fleet

import (
	"context"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// DisruptionOptions are what a disruption problem needs beyond the snapshot.
type DisruptionOptions struct {
	Options
	// Terms are the problem's, as they are.
	Terms model.ConsolidationTerms
	// Bound asks for a lower bound of the price of all nodes, which takes about as
	// long as planning all pods.
	Bound bool
	// Disrupting are nodes, by name, that are being removed although their objects
	// do not show it yet.
	Disrupting map[string]bool
	// Own are nodes, by name, that carry the taint of a disruption and are stated as
	// if they did not: to check again a command that is under way.
	Own map[string]bool
	// Untouched are nodes, by name, that are in a command under way and of which nothing is
	// evicted yet: they draw on no PodDisruptionBudget.
	Untouched map[string]bool
	// Reserved are NodeClaims, by name, that were bought for commands under way, and on
	// whose room nothing else may count.
	Reserved map[string]bool
	// Placements is where commands under way have a place for pods that still run
	// on nodes which leave: the name of a node or of its claim. Such a pod takes its
	// room there already.
	Placements map[model.PodRef]string
	// KeepDisplaced leaves pods whose placement others have taken where they are: their own
	// command looks for other room before it goes on. Else they wait for room as
	// pending pods do.
	KeepDisplaced bool
	// RetryAfter are nodes, by name, with a last command that failed, and when they
	// may be tried again.
	RetryAfter map[string]time.Time
	// Repairs says that unhealthy nodes are replaced (feature gate NodeRepair).
	Repairs bool
	// TerminateFirst are the reasons for which nodes of static pools at their limit go
	// before their replacements are created (feature gates TerminateFirstDrift and
	// TerminateFirstRepair).
	TerminateFirst []model.DisruptionReason
	// Unclaimed counts nodes with a NodePool's label as the pool's although they
	// have no NodeClaim, as in files that hold only nodes.
	Unclaimed bool
	// ConsolidateFrom is the start of the maintenance window that consolidation
	// waits for; zero when it need not wait.
	ConsolidateFrom time.Time
}

// DisruptionInput is a disruption problem together with the way back from its
// indices to the cluster.
type DisruptionInput struct {
	*Input
	// Disruption is the problem; its Problem is that of Input.
	Disruption *model.DisruptionProblem
}

// Movable names the pods of an entry that speaks of DisruptionProblem.Movable.
func (in *DisruptionInput) Movable(entries []model.ClassPods) []model.PodRef {
	var refs []model.PodRef
	for _, e := range entries {
		for _, i := range e.Pods {
			refs = append(refs, in.Disruption.Movable[e.Class].Pods[i])
		}
	}
	return refs
}

// Disruption states which nodes could be removed: the planning problem, and beside it
// what runs on every node and what blocks its disruption. Everything in it is
// ordered by name.
//
// It fails only when ctx ends.
func (s *Snapshot) Disruption(ctx context.Context, catalogs Catalogs, opts DisruptionOptions) (*DisruptionInput, error) {
	a, err := newAssembly(ctx, s, catalogs, &opts)
	if err != nil {
		return nil, err
	}
	a.placeVirtual()
	pending := a.pendingClasses()
	lifecycle := &nodeLifecycle{pools: s.pools, disrupting: opts.Disrupting, unclaimed: opts.Unclaimed, repairs: opts.Repairs}
	a.budgets.owe(s.pods, lifecycle.drained(a.nodes.list, &opts))
	movable := a.newMovablePods()
	w := a.writer(movable.placed(pending))
	d := &model.DisruptionProblem{
		Problem:         a.problem(pending, w),
		Movable:         movable.classes(w),
		Terms:           opts.Terms,
		ConsolidateFrom: opts.ConsolidateFrom,
		Now:             opts.Now,
		Bound:           opts.Bound,
	}
	a.capNodes(d.Problem)
	d.Policies = lifecycle.policies(s.Pools(), a.nodes.list, opts.Now)
	for i, pool := range s.Pools() {
		// A pool that is not ready makes no new node, so none goes for one.
		if count := d.Policies[i].Count; count != nil && pool.Ready && !pool.Deleting {
			count.TerminateFirst = opts.TerminateFirst
		}
	}
	usages := newUsageWriter(&opts, lifecycle, movable, a.budgets, d.Policies)
	usages.returning = returningTo(s)
	for _, n := range a.nodes.list {
		d.Usages = append(d.Usages, usages.write(n))
	}
	a.hold(d)
	d.Budgets = a.budgets.listed // those that pods have asked for by now
	return &DisruptionInput{Input: a.input(d.Problem), Disruption: d}, nil
}
