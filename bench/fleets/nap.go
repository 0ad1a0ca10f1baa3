package fleets

import (
	"context"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/bench/beside"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
)

// Figures are what was measured of one engine on one fleet.
type Figures struct {
	// First is the time to the first answer, All that of all answers until nothing
	// more is proposed.
	First, All time.Duration
	// CPU is what all answers took of all cores together.
	CPU time.Duration
	// Answers that proposed something, with so many moves (commands) in all, which
	// removed so many nodes and evicted so many pods.
	Answers, Moves, Removed, Evictions int
	// Cost is what is left, dollars per hour.
	Cost float64
	// TriedPerSecond are the sets of nodes that were looked at in a second of
	// deciding.
	TriedPerSecond float64
	// Peak is bytes of heap above the snapshot during the first answer, which nap
	// gives once more for that.
	Peak uint64
	// Stopped says that the time was over before it converged.
	Stopped bool
}

// nap is engine nap at work on a cluster.
type nap struct {
	*Cluster
	store   *fleet.Store
	catalog beside.Catalog
	terms   model.ConsolidationTerms
	// now is the moment of the next question.
	now time.Time
}

func newNap(c *Cluster, terms model.ConsolidationTerms) *nap {
	n := &nap{
		Cluster: c, store: fleet.NewStoreFor(len(c.pods)), catalog: beside.NewCatalog(c.Types), terms: terms, now: quietSince.Add(time.Hour),
	}
	mirror := kube.NewMirror(n.store, kube.Settings{EveryPod: true})
	for _, o := range c.Objects() {
		mirror.Apply(o)
	}
	c.Follow(func(o client.Object) { mirror.Apply(o) }, mirror.Delete)
	return n
}

// state states the fleet as it is at n.now.
func (n *nap) state(ctx context.Context, policy model.Policy) (*fleet.DisruptionInput, error) {
	return n.store.Snapshot().Disruption(ctx, n.catalog, fleet.DisruptionOptions{
		Options: fleet.Options{Now: n.now, Policy: policy}, Terms: n.terms,
	})
}

// ask states the fleet and decides within a budget.
func (n *nap) ask(ctx context.Context, budget time.Duration) (*fleet.DisruptionInput, *model.Commands, error) {
	start := time.Now()
	in, err := n.state(ctx, model.Policy{Budget: budget, Elapsed: func() time.Duration { return time.Since(start) }})
	if err != nil {
		return nil, nil, err
	}
	return in, consolidate.Plan(in.Disruption), nil
}

// converge asks and makes moves until nothing is proposed, or until deciding has
// taken longer than patience.
func (n *nap) converge(ctx context.Context) (*Figures, error) {
	later := laterBudget * time.Duration(max(1, len(n.nodes)/1000))
	f := &Figures{}
	var err error
	f.Peak = beside.Peak(time.Millisecond, func() { _, _, err = n.ask(ctx, firstBudget) })
	if err != nil {
		return nil, err
	}
	var tried int64
	defer func() { f.TriedPerSecond = float64(tried) / f.All.Seconds() }()
	for {
		share := firstBudget
		if f.Answers > 0 {
			share = later
		}
		start, cpu := time.Now(), beside.CPU()
		in, moves, err := n.ask(ctx, share)
		if err != nil {
			return nil, err
		}
		f.All += time.Since(start)
		f.CPU += beside.CPU() - cpu
		if f.Answers == 0 {
			f.First = f.All
		}
		tried += moves.Tried
		if f.Cost = n.Cost(); len(moves.Commands) == 0 {
			return f, nil
		}
		f.Answers++
		f.Moves += len(moves.Commands)
		f.Evictions += moves.Evictions
		for i := range moves.Commands {
			f.Removed += len(moves.Commands[i].Nodes)
			if err := n.make(in, &moves.Commands[i]); err != nil {
				return nil, err
			}
		}
		if err := n.check(); err != nil {
			return nil, fmt.Errorf("after answer %d: %w", f.Answers, err)
		}
		if f.All > patience {
			f.Stopped = true
			return f, nil
		}
	}
}

// make makes a move.
func (n *nap) make(in *fleet.DisruptionInput, mv *model.Command) error {
	for _, pl := range mv.Placements {
		n.settleAll(in, pl.Pods, in.Problem.Nodes[pl.Node].Name)
	}
	for i := range mv.New {
		best := mv.New[i].Best()
		t := &in.Problem.Catalogs[in.Problem.Pools[mv.New[i].Pool].Catalog].InstanceTypes[best.InstanceType]
		o := &t.Offerings[best.Offering]
		name, err := n.buy(t.Name, o.Zone, string(o.CapacityType))
		if err != nil {
			return err
		}
		n.settleAll(in, mv.New[i].Pods, name)
	}
	for _, node := range mv.Nodes {
		n.giveBack(in.Problem.Nodes[node].Name)
	}
	return nil
}

func (n *nap) settleAll(in *fleet.DisruptionInput, entries []model.ClassPods, node string) {
	for _, ref := range in.Movable(entries) {
		n.place(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, node)
	}
}

// bound is a floor under the price of any fleet for the same pods, found with about
// so much work.
func (n *nap) bound(ctx context.Context, work time.Duration) (float64, error) {
	in, err := n.state(ctx, model.Policy{Budget: work})
	if err != nil {
		return 0, err
	}
	return consolidate.LowerBound(in.Disruption).Dollars(), nil
}

// needed is a floor under the price of any fleet for the pods of the moment, whatever
// the fleet is now: nodes that have no quiet yet could be others as well.
func (n *nap) needed(ctx context.Context) (float64, error) {
	in, err := n.state(ctx, model.Policy{Budget: 20 * time.Millisecond})
	if err != nil {
		return 0, err
	}
	for i := range in.Disruption.Policies {
		in.Disruption.Policies[i].After = 0
	}
	for i := range in.Disruption.Budgets {
		b := &in.Disruption.Budgets[i]
		b.Allowed, b.Owed, b.Blocking = math.MaxInt32, 0, false
	}
	return consolidate.LowerBound(in.Disruption).Dollars(), nil
}

// provision plans the pods that wait and binds every one; it fails if the plan leaves
// a pod out. It returns how many nodes it added.
func (n *nap) provision(ctx context.Context) (bought int, err error) {
	in, err := n.store.Snapshot().Problem(ctx, n.catalog, fleet.Options{Now: n.now, Policy: model.Policy{Budget: 50 * time.Millisecond}})
	if err != nil {
		return bought, err
	}
	plan := planner.Solve(in.Problem)
	if len(plan.Unschedulable) > 0 {
		return bought, fmt.Errorf("%d kinds of pods find no place: %s", len(plan.Unschedulable), plan.Unschedulable[0].Message)
	}
	bind := func(entries []model.ClassPods, node string) {
		for _, ref := range in.Pods(entries) {
			key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
			n.pods[key].Status = corev1.PodStatus{
				Phase: corev1.PodRunning, StartTime: &n.Cluster.now,
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			}
			n.place(key, node)
		}
	}
	for _, pl := range plan.Placements {
		bind(pl.Pods, in.Problem.Nodes[pl.Node].Name)
	}
	for i := range plan.NewNodes {
		node := &plan.NewNodes[i]
		t := &in.Problem.Catalogs[in.Problem.Pools[node.Pool].Catalog].InstanceTypes[node.Best().InstanceType]
		o := &t.Offerings[node.Best().Offering]
		name, err := n.buy(t.Name, o.Zone, string(o.CapacityType))
		if err != nil {
			return bought, err
		}
		bought++
		bind(node.Pods, name)
	}
	return bought, nil
}

// Decide draws a fleet and answers once, with the work that a machine with two cores
// does in about effort instead of time itself: the answer is always the same.
func Decide(ctx context.Context, f Fleet, effort time.Duration) (*model.DisruptionProblem, *model.Commands, error) {
	drawn, err := Draw(f)
	if err != nil {
		return nil, nil, fmt.Errorf("fleet %s: %w", f.Name, err)
	}
	n := newNap(drawn, model.DefaultConsolidationTerms())
	in, err := n.state(ctx, model.Policy{Budget: effort})
	if err != nil {
		return nil, nil, fmt.Errorf("fleet %s: %w", f.Name, err)
	}
	return in.Disruption, consolidate.Plan(in.Disruption), nil
}
