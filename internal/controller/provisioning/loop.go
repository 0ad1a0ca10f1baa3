package provisioning

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/nodeautoprovision/nap/internal/controller/liveness"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/controller/purchasebackoff"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Loop buys nodes for pods that wait. It implements the manager's Runnable and
// runs on the leader alone. One goroutine plans; the triggers and the nominations
// have goroutines of their own.
type Loop struct {
	clock   clock.Clock
	metrics *metrics.Provisioning
	cluster Cluster

	// What opens and closes a batch.
	batch    *Batch
	pods     *ExpectedPods
	triggers *triggers

	// What one round uses, in this order.
	expected     *expectedClaims
	gatherer     *gatherer
	reservations *reservations
	admission    *admission
	drafter      *drafter
	solve        func(*model.Problem) *model.Plan
	applier      *applier
	reporter     *reporter

	// nominations is nil when they are switched off.
	nominations *nominations
}

// NewLoop returns a loop; its triggers are registered with RegisterTriggers.
func NewLoop(cfg Config) *Loop {
	l := &Loop{
		clock: cfg.Clock, metrics: cfg.Metrics, cluster: cfg.Cluster, solve: cfg.Solve,
		batch:        cfg.Batch,
		expected:     newExpectedClaims(&cfg),
		gatherer:     newGatherer(&cfg),
		reservations: newReservations(cfg.Clock),
		reporter:     newReporter(&cfg),
	}
	if l.batch == nil {
		l.batch = NewBatch(cfg.Settings.Batch, cfg.Clock)
	}
	l.pods = NewExpectedPods(cfg.Clock, l.batch.durations.Idle)
	l.admission = &admission{
		notBuying: cfg.NotBuying, registrations: cfg.Registrations, ceiling: purchasebackoff.NewCeiling(cfg.Settings.Limits, cfg.Clock),
		backoff: &backoff{
			kube: cfg.Clients.Cached, purchases: cfg.Purchases, registrations: cfg.Registrations,
			reservations: l.reservations, solve: cfg.Solve,
		},
	}
	l.gatherer.admission = l.admission
	l.drafter = &drafter{newID: cfg.NewID, atAnyPrice: cfg.Purchases.AtAnyPrice}
	if cfg.Settings.Nominations > 0 {
		l.nominations = newNominations(cfg.Clients, cfg.Mirror, cfg.Clock, cfg.Settings.Nominations)
	}
	l.applier = &applier{
		clients: cfg.Clients, cluster: cfg.Cluster, clock: cfg.Clock, newID: cfg.NewID, wants: cfg.Mirror.Wants, expected: l.expected,
	}
	complete := &Completeness{
		Kube: cfg.Clients.Cached, Pods: l.pods, Starting: newStartingOwners(cfg.Clock, l.pods), Announces: cfg.Mirror.Announces,
		Announced: (&announcing{clock: cfg.Clock, of: cfg.Mirror.Announcing}).has,
	}
	l.batch.moot, l.batch.coming = complete.Moot, complete.Starting.any
	l.triggers = &triggers{
		kube: cfg.Clients.Cached, cluster: cfg.Cluster, clock: cfg.Clock,
		batch: l.batch, pods: l.pods, complete: complete, nominations: l.nominations,
		endings: &endings{snapshot: cfg.Mirror.Snapshot, clock: cfg.Clock},
	}
	return l
}

// NeedLeaderElection makes the manager run the loop on the leader alone.
func (l *Loop) NeedLeaderElection() bool { return true }

// RegisterTriggers adds what wakes the loop to a manager, see triggers.
func (l *Loop) RegisterTriggers(mgr manager.Manager) error { return l.triggers.register(mgr) }

// PlanNow plans at once, whether or not a trigger has told of pods that wait. What it returns
// is closed when that is done. Any goroutine may call it.
func (l *Loop) PlanNow() <-chan struct{} {
	planned := make(chan struct{})
	l.batch.Trigger("now", News{Urgent: true, Planned: planned})
	return planned
}

// MarketChanged plans at once for pods that wait: what was too expensive, or beyond
// a limit, may not be so any more.
func (l *Loop) MarketChanged() { l.triggers.fire("market") }

// BuffersChanged plans the virtual pods of CapacityBuffers again. Any goroutine may call it.
func (l *Loop) BuffersChanged() { l.batch.Trigger("CapacityBuffers", News{Urgent: true}) }

// Activity is what the loop is doing, for the health probe.
func (l *Loop) Activity() *liveness.Activity { return &l.batch.activity }

// maxRounds is how often one batch is planned again at once because something
// changed while it was planned. After that the pods' own triggers come again.
const maxRounds = 3

// Start runs rounds until ctx ends.
func (l *Loop) Start(ctx context.Context) error {
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() { l.triggers.watchScheduler(ctx) })
	if l.nominations != nil {
		watch.Go(func() { l.nominations.watch(ctx, l.pods.Quiet) })
	}
	for {
		closed, ok := l.batch.Wait(ctx, l.triggers.closes)
		if !ok {
			return nil
		}
		l.metrics.BatchClosed(string(closed))
		l.triggers.complete.Starting.batchCloses()
		for n := 1; n <= maxRounds; n++ {
			again, err := l.round(ctx, n)
			if err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "provisioning failed, the pods are tried again")
			}
			if err != nil || !again {
				break
			}
		}
		l.batch.done()
	}
}

// round plans once and buys what the plan says; n counts the rounds of the batch.
// It reports whether planning again at once is worth while.
func (l *Loop) round(ctx context.Context, n int) (again bool, err error) {
	l.batch.activity.Begin(l.clock.Now())
	defer l.batch.activity.End()
	id := l.drafter.newID(8)
	logger := log.FromContext(ctx).WithValues("plan", id)
	ctx = log.IntoContext(ctx, logger)
	l.pods.TakeFresh()
	if err := l.expected.settle(ctx); err != nil {
		return false, err
	}
	in, err := l.inputs(ctx, id)
	if err != nil {
		return false, err
	}
	decision := snapshot.Decision{LeftOut: in.input.Problem.LeftOut}
	defer func() { l.reporter.decide(decision) }()
	l.reporter.reportLeftOut(ctx, in.input.Problem.LeftOut)
	l.reporter.reportRejected(ctx, in)
	l.reporter.reportHeld(ctx, in)
	if in.input.Problem.PodCount() == 0 {
		decision.NothingWaits = true
		l.metrics.NothingToPlan()
		l.metrics.Unschedulable(in.heldCount())
		l.reporter.buffers.planned(in, &model.Plan{}, nil)
		return false, nil
	}
	if why := l.admission.closed(); why != "" {
		l.metrics.Unschedulable(in.input.Problem.PodCount())
		l.reporter.reportClosed(in, why)
		logger.Info("nothing is bought now, the pods wait", "why", why, "pods", in.input.Problem.PodCount())
		return false, nil
	}
	start := l.clock.Now()
	done := l.metrics.Planning(l.clock, id, in.input.Problem)
	plan := l.plan(in)
	took := l.clock.Since(start)
	l.reporter.planned(in.input.Problem, plan)
	done(unschedulablePods(in, plan))
	decision.Plan, decision.At, decision.Took = id, start, took
	decision.Pods, decision.Pending = in.input.Problem.PodCount(), unschedulablePods(in, plan)
	decision.NewNodes, decision.Cost = len(plan.NewNodes), plan.Cost
	l.metrics.Planned(plan, took)
	l.metrics.Unschedulable(unschedulablePods(in, plan) + in.heldCount())
	l.reporter.logPlanned(logger.WithValues("took", took.String(), "round", n), in, plan)

	admitted, refused := l.admission.admit(in, l.drafter.drafts(in, plan, id))
	results := append(l.applier.apply(ctx, in, admitted, n == maxRounds), refused...)
	l.reserve(in, plan, results)
	l.reporter.buffers.planned(in, plan, results)
	ready := onReadyNodes(in, plan)
	l.cover(in, append(in.settled, slices.Collect(maps.Keys(ready))...))
	l.pods.Place(ready)
	l.reporter.report(ctx, in, plan, results)
	return slices.ContainsFunc(results, func(r result) bool { return r.rejected != nil }), nil
}

// inputs states what is to be planned: the pods that wait, less those for which a
// disruption is buying a place and those that have one on a node that is on its way.
func (l *Loop) inputs(ctx context.Context, id string) (*planInputs, error) {
	in, err := l.gatherer.gather(ctx, id)
	if err != nil {
		return nil, err
	}
	in.dropDisrupting(l.cluster.Leaving())
	if l.nominations != nil {
		l.reservations.end(l.nominations.takeWithdrawn())
	}
	l.reporter.begin(in)
	kept := l.reservations.keep(in.input, l.pods.Quiet(), in.snapshot.Pods())
	in.lost, in.rearrangeable = kept.lost, kept.rearrangeable
	for claim, refs := range in.promised() {
		kept.claims[claim] = append(kept.claims[claim], refs...)
	}
	for claim, refs := range kept.claims {
		l.reporter.said.bound(refs, claim)
	}
	if err := l.nominateTransferred(ctx, in); err != nil {
		return nil, err
	}
	in.settled = settleUnjudged(in.input, l.solve)
	l.cover(in, in.settled)
	failed := l.admission.backoff.apply(ctx, in)
	if in.pods, err = l.gatherer.readPods(ctx, in.input); err != nil {
		return nil, err
	}
	l.reporter.reportFailed(ctx, in, failed)
	l.reporter.reportUninitialized(in, kept.claims, l.clock.Now())
	return in, nil
}

// cover says for which pods there is a place before they exist: those for which one is
// reserved, and those of refs, which have one on a node that is ready. When they come
// they need no plan at once.
func (l *Loop) cover(in *planInputs, refs []model.PodRef) {
	places := l.reservations.announced()
	for _, ref := range refs {
		if record := in.input.Record(ref); record != nil && record.Announced > 0 && record.Buffer == "" {
			places[types.UID(record.OwnerUID)]++
		}
	}
	l.pods.Cover(places)
}

// onReadyNodes are the pods that a plan puts on nodes that are ready, with the names of
// the nodes.
func onReadyNodes(in *planInputs, plan *model.Plan) map[model.PodRef]string {
	out := map[model.PodRef]string{}
	for _, placement := range plan.Placements {
		n := &in.input.Problem.Nodes[placement.Node]
		if n.Claim != "" && n.State != model.NodeReady {
			continue
		}
		for _, ref := range in.input.Pods(placement.Pods) {
			out[ref] = n.Name
		}
	}
	return out
}

// reserve remembers which pods have a place on a node that is on its way: one that
// was ordered before and is not ready, or one whose claim has just been created.
func (l *Loop) reserve(in *planInputs, plan *model.Plan, results []result) {
	l.leaveReady(in, plan)
	for _, placement := range plan.Placements {
		if n := &in.input.Problem.Nodes[placement.Node]; n.Claim != "" && n.State != model.NodeReady {
			l.reserveFor(in, in.input.Pods(placement.Pods), n.Claim)
		}
	}
	for i := range results {
		if r := &results[i]; r.created() {
			l.reserveFor(in, r.draft.pods, r.draft.claim.Name)
			l.admission.registrations.Bought(r.draft.claim)
			l.admission.backoff.purchases.Bought(r.draft.plan, r.draft.pool, r.draft.claim.Name, r.draft.workloads)
		}
	}
}

func (l *Loop) reserveFor(in *planInputs, refs []model.PodRef, claim string) {
	for _, ref := range refs {
		record := in.input.Record(ref)
		if record != nil && record.Buffer != "" {
			continue // others may have the room
		}
		l.reservations.put(record, claim)
		l.nominate(in.snapshot, record, claim)
	}
}

// nominateTransferred promises nodes to the pods that have taken over places of others. Such
// a node may be there already, and its own events long past.
func (l *Loop) nominateTransferred(ctx context.Context, in *planInputs) error {
	looked := map[string]bool{}
	for _, pod := range l.reservations.takeTransferred() {
		l.nominate(in.snapshot, pod.record, pod.claim)
		claim := in.snapshot.Claim(pod.claim)
		if l.nominations == nil || claim == nil || claim.NodeName == "" || looked[pod.claim] {
			continue
		}
		looked[pod.claim] = true
		if err := l.nominations.look(ctx, claim.NodeName); err != nil {
			return err
		}
	}
	return nil
}

// nominate promises the node of a claim to a pod that waits, once that exists.
func (l *Loop) nominate(snapshot *fleet.Snapshot, pod *fleet.Pod, claim string) {
	if l.nominations != nil && pod != nil && pod.Node == "" && pod.Announced == 0 {
		l.nominations.promise(snapshot, pod, claim)
	}
}

// unschedulablePods counts the pods for which a plan has no place, without virtual ones.
func unschedulablePods(in *planInputs, plan *model.Plan) int {
	n := 0
	for i := range plan.Unschedulable {
		u := &plan.Unschedulable[i]
		for _, ref := range in.input.Pods([]model.ClassPods{{Class: u.Class, Pods: u.Pods}}) {
			if record := in.input.Record(ref); record == nil || record.Buffer == "" {
				n++
			}
		}
	}
	return n
}
