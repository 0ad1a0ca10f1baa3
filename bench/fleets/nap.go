package fleets

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/bench/beside"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
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

// ask states the fleet and decides within a budget.
func (n *nap) ask(ctx context.Context, budget time.Duration) (*fleet.DisruptionInput, *model.Commands, error) {
	start := time.Now()
	in, err := n.store.Snapshot().Fleet(ctx, n.catalog, fleet.DisruptionOptions{
		Options: fleet.Options{Now: n.now, Policy: model.Policy{Budget: budget, Elapsed: func() time.Duration { return time.Since(start) }}},
		Terms:   n.terms,
	})
	if err != nil {
		return nil, nil, err
	}
	return in, consolidate.Plan(in.Fleet), nil
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
	in, err := n.store.Snapshot().Fleet(ctx, n.catalog, fleet.DisruptionOptions{
		Options: fleet.Options{Now: n.now, Policy: model.Policy{Budget: work}}, Terms: n.terms,
	})
	if err != nil {
		return 0, err
	}
	return consolidate.LowerBound(in.Fleet).Dollars(), nil
}

// Decide draws a fleet and answers once, with the work that a machine with two cores
// does in about effort instead of time itself: the answer is always the same.
func Decide(ctx context.Context, f Fleet, effort time.Duration) (*model.DisruptionProblem, *model.Commands, error) {
	drawn, err := Draw(f)
	if err != nil {
		return nil, nil, fmt.Errorf("fleet %s: %w", f.Name, err)
	}
	n := newNap(drawn, model.DefaultConsolidationTerms())
	in, err := n.store.Snapshot().Fleet(ctx, n.catalog, fleet.DisruptionOptions{
		Options: fleet.Options{Now: n.now, Policy: model.Policy{Budget: effort}}, Terms: n.terms,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("fleet %s: %w", f.Name, err)
	}
	return in.Fleet, consolidate.Plan(in.Fleet), nil
}
