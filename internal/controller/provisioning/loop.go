package provisioning

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclaims"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Mirror is the fleet as the loop uses it.
type Mirror interface {
	Snapshot() *fleet.Snapshot
	// Expect counts a claim that was just created as capacity until it is
	// observed; Forget takes that back.
	Expect(*karpv1.NodeClaim)
	Forget(claim string)
}

// Cluster is Karpenter's mirror of the cluster, which its disruption decides on.
// The loop tells it what it does, so that a node that is about to get a pod is
// not taken away. *state.Cluster implements it, but for Leaving.
type Cluster interface {
	AckPods(pods ...*corev1.Pod)
	MarkPodSchedulingDecisions(ctx context.Context, failed map[*corev1.Pod]error, byPool, byClaim map[string][]*corev1.Pod)
	UpdatePodToNodeClaimMapping(byClaim map[string][]*corev1.Pod)
	UpdateNodeClaim(claim *karpv1.NodeClaim)
	DeleteNodeClaim(name string)
	NominateNodeForPod(ctx context.Context, providerID string)
	// Leaving are the names of the nodes that Karpenter gives up. A node that
	// carries the disrupted taint and is not among them is one whose replacement
	// is still being bought by whoever put the taint there.
	Leaving() map[string]bool
}

// Clients reach the API server.
type Clients struct {
	// Cached reads from the informers and writes through.
	Cached client.Client
	// Live reads from the API server itself.
	Live client.Reader
}

// Settings are what users may set.
type Settings struct {
	Batch BatchDurations
	// Budget is the time for improving a plan.
	Budget                            time.Duration
	IgnorePreferences, RelaxMinValues bool
	// Nominate tells the scheduler where the plan put each pod.
	Nominate bool
}

// Config is what a Loop is made of.
type Config struct {
	Clients  Clients
	Mirror   Mirror
	Catalogs fleet.Catalogs
	// Solve is the planner.
	Solve    func(*model.Problem) *model.Plan
	Cluster  Cluster
	Recorder events.Recorder
	Metrics  *metrics.Provisioning
	Clock    clock.Clock
	Settings Settings
	// NewID returns a fresh random word of n characters, of which claims' names
	// and plans' ids are made.
	NewID func(n int) string
}

// Loop buys nodes for pods that wait. It implements the manager's Runnable and
// runs on the leader alone.
type Loop struct {
	Config
	batch    *Batch
	roster   *Roster
	complete *Completeness
	expected *expectations
	holds    *holds
	// nominations is nil when they are switched off.
	nominations *nominations
	// explained limits FailedScheduling events.
	explained flowcontrol.RateLimiter
	leftOut   map[string]string
}

// NewLoop returns a loop; its triggers are registered with RegisterTriggers.
func NewLoop(cfg Config) *Loop {
	roster := NewRoster(cfg.Clock, cfg.Settings.Batch.Max)
	l := &Loop{
		Config:    cfg,
		batch:     NewBatch(cfg.Settings.Batch, cfg.Clock),
		roster:    roster,
		complete:  &Completeness{Kube: cfg.Clients.Cached, Roster: roster},
		expected:  newExpectations(cfg),
		holds:     newHolds(cfg.Clock),
		explained: flowcontrol.NewTokenBucketRateLimiterWithClock(explainedPerSecond, explainedBurst, cfg.Clock),
		leftOut:   map[string]string{},
	}
	if cfg.Settings.Nominate {
		l.nominations = newNominations(cfg.Clients, cfg.Clock)
	}
	return l
}

// NeedLeaderElection makes the manager run the loop on the leader alone.
func (l *Loop) NeedLeaderElection() bool { return true }

// maxRounds is how often one batch is planned again at once because something
// changed while it was planned. After that the pods' own triggers come again.
const maxRounds = 3

// Start runs rounds until ctx ends.
func (l *Loop) Start(ctx context.Context) error {
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() { l.watchScheduler(ctx) })
	if l.nominations != nil {
		watch.Go(func() { l.watchNominations(ctx) })
	}
	for {
		why, ok := l.batch.Wait(ctx, l.complete.Complete)
		if !ok {
			return nil
		}
		l.Metrics.BatchClosed(string(why))
		for n := 1; n <= maxRounds; n++ {
			again, err := l.round(ctx, n)
			if err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "provisioning failed, the pods are tried again")
			}
			if err != nil || !again {
				break
			}
		}
	}
}

// watchScheduler triggers when the scheduler is done with new nodes and pods are
// left over, so that these need not wait for their reminders.
func (l *Loop) watchScheduler(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.Clock.After(settleLook):
			if l.roster.TakeSettled() {
				l.batch.Trigger("settled", News{Urgent: true})
			}
		}
	}
}

// basis is what a plan was made on: what the applier compares the present with.
type basis struct {
	snapshot *fleet.Snapshot
	input    *fleet.Input
	pools    map[string]*karpv1.NodePool
	pods     map[model.PodRef]*corev1.Pod
}

// round plans once and buys what the plan says. It reports whether planning
// again at once is worth while.
func (l *Loop) round(ctx context.Context, n int) (again bool, err error) {
	id := l.NewID(8)
	logger := log.FromContext(ctx).WithValues("plan", id)
	ctx = log.IntoContext(ctx, logger)
	if err := l.expected.settle(ctx); err != nil {
		return false, err
	}
	b, err := l.basis(ctx, id)
	if err != nil {
		return false, err
	}
	l.reportLeftOut(ctx, b.input.LeftOut)
	l.reportRejected(ctx, b)
	if b.input.Problem.PodCount() == 0 {
		l.Metrics.Unschedulable(0)
		return false, nil
	}
	start := l.Clock.Now()
	plan := l.Solve(b.input.Problem)
	took := l.Clock.Since(start)
	l.Metrics.Planned(plan, took)
	l.Metrics.Unschedulable(unschedulablePods(plan))
	logger.Info("planned",
		"pods", b.input.Problem.PodCount(), "classes", len(b.input.Problem.Classes),
		"newNodes", len(plan.NewNodes), "unschedulable", unschedulablePods(plan),
		"cost", plan.Cost.String(), "lowerBound", plan.LowerBound.String(), "took", took.String(), "round", n)

	results := l.apply(ctx, b, l.drafts(b, plan, id), n == maxRounds)
	l.report(ctx, b, plan, results)
	return slices.ContainsFunc(results, func(r result) bool { return r.rejected != nil }), nil
}

// basis reads everything that a plan depends on. The pools are read before the
// snapshot is taken: a change in between is then seen when the plan is applied,
// and not lost.
func (l *Loop) basis(ctx context.Context, id string) (*basis, error) {
	var pools karpv1.NodePoolList
	if err := l.Clients.Cached.List(ctx, &pools); err != nil {
		return nil, fmt.Errorf("listing NodePools: %w", err)
	}
	b := &basis{snapshot: l.Mirror.Snapshot(), pools: map[string]*karpv1.NodePool{}}
	for i := range pools.Items {
		b.pools[pools.Items[i].Name] = &pools.Items[i]
	}
	started := l.Clock.Now()
	input, err := b.snapshot.Problem(ctx, l.Catalogs, fleet.Options{
		Now: started,
		Policy: model.Policy{
			IgnorePreferences: l.Settings.IgnorePreferences,
			RelaxMinValues:    l.Settings.RelaxMinValues,
			Budget:            l.Settings.Budget,
			Elapsed:           l.stopwatch(),
			Seed:              seed(id),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("stating the planning problem: %w", err)
	}
	b.input = input
	l.dropBegunMoves(b)
	if l.nominations != nil {
		l.holds.end(l.nominations.takeWithdrawn())
	}
	l.holds.keep(b, l.roster.Quiet())
	if b.pods, err = l.podObjects(ctx, input); err != nil {
		return nil, err
	}
	return b, nil
}

// stopwatch starts when it is first asked, which is when the planner begins.
func (l *Loop) stopwatch() func() time.Duration {
	var start time.Time
	return func() time.Duration {
		if start.IsZero() {
			start = l.Clock.Now()
		}
		return l.Clock.Since(start)
	}
}

// seed makes a plan reproducible from its id.
func seed(id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	return h.Sum64()
}

// dropBegunMoves takes pods out of the problem whose node is tainted but not yet
// given up: whoever tainted it is buying a place for them at this moment.
func (l *Loop) dropBegunMoves(b *basis) {
	leaving := l.Cluster.Leaving()
	p := b.input.Problem
	for i := range p.Classes {
		p.Classes[i].Pods = slices.DeleteFunc(p.Classes[i].Pods, func(ref model.PodRef) bool {
			record := b.input.Record(ref)
			return record != nil && record.Node != "" && !leaving[record.Node]
		})
	}
	p.Classes = slices.DeleteFunc(p.Classes, func(c model.PodClass) bool { return len(c.Pods) == 0 })
}

// podObjects finds the objects of the problem's pods, for events and for
// Karpenter's mirror. A pod that is gone is simply absent. The objects belong to
// the cache and are not changed.
func (l *Loop) podObjects(ctx context.Context, input *fleet.Input) (map[model.PodRef]*corev1.Pod, error) {
	var list corev1.PodList
	if err := l.Clients.Cached.List(ctx, &list, client.MatchingFields{"spec.nodeName": ""}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the pods that wait: %w", err)
	}
	pods := make(map[model.PodRef]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		p := &list.Items[i]
		pods[model.PodRef{Namespace: p.Namespace, Name: p.Name}] = p
	}
	for i := range input.Problem.Classes {
		for _, ref := range input.Problem.Classes[i].Pods {
			if pods[ref] != nil {
				continue
			}
			pod := &corev1.Pod{}
			if err := l.Clients.Cached.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, pod); err == nil {
				pods[ref] = pod
			} else if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("reading pod %s: %w", ref, err)
			}
		}
	}
	return pods, nil
}

// draft is a NodeClaim that is about to be created, with what is told about it.
type draft struct {
	claim *karpv1.NodeClaim
	pods  []model.PodRef
	pool  string
	// best is what the plan counts on; alternatives how many other ways there are.
	best         string
	price        model.Money
	alternatives int
	requests     string
}

// drafts writes the plan's new nodes as claims.
func (l *Loop) drafts(b *basis, plan *model.Plan, id string) []*draft {
	p := b.input.Problem
	writer := nodeclaims.NewWriter(p, plan.NewNodes, b.pools)
	var out []*draft
	for i := range plan.NewNodes {
		node := &plan.NewNodes[i]
		name := p.Pools[node.Pool].Name
		claim, offerings := writer.Write(node, name+"-"+l.NewID(5))
		if claim == nil {
			// The pool went between the two readings; its pods are tried again.
			continue
		}
		claim.Annotations[v1beta1.AnnotationPlan] = id
		best := node.Best()
		out = append(out, &draft{
			claim: claim, pods: b.input.Pods(node.Pods), pool: name,
			best:  nodeclaims.OfferingName(&p.Catalogs[p.Pools[node.Pool].Catalog], best),
			price: best.Price, alternatives: len(offerings) - 1,
			requests: node.Requests.Add(node.Daemons).Format(p.Axes),
		})
	}
	return out
}

func unschedulablePods(plan *model.Plan) int {
	n := 0
	for i := range plan.Unschedulable {
		n += len(plan.Unschedulable[i].Pods)
	}
	return n
}
