package fleets

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/bench/beside"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Churn is a fleet under hours of change: deployments that grow and shrink at
// random and with the time of day, machines that the cloud takes back, prices that
// move. A step is a minute.
type Churn struct {
	Fleet
	Minutes int
	Seed    uint64
	// audit looks at every answer of nap, where a test wants to.
	audit func(*model.DisruptionProblem, *model.Commands) error
}

// Churns lists the lives of the benchmark.
func Churns() []Churn {
	return []Churn{{
		Fleet: Fleet{
			Name: "churn-40", Nodes: 40, Guarded: true, About: "two hours: deployments with PodDisruptionBudgets, a third of " +
				"them spread over zones, that grow and shrink at random and with the time of day, machines taken back, prices that move",
		},
		Minutes: 120, Seed: 1,
	}}
}

// LivedRow is the outcome of one life; Karpenter is nil when it was left out.
type LivedRow struct {
	Churn
	Nap, Karpenter *Lived
}

// RunChurn lets the engines live through the same hours.
func RunChurn(ctx context.Context, f Churn, s Settings) (*LivedRow, error) {
	row := &LivedRow{Churn: f}
	var err error
	if row.Nap, err = Live(ctx, f, false); err != nil {
		return nil, fmt.Errorf("%s: nap: %w", f.Name, err)
	}
	if s.SkipUpstream {
		return row, nil
	}
	if row.Karpenter, err = Live(ctx, f, true); err != nil {
		return nil, fmt.Errorf("%s: Karpenter: %w", f.Name, err)
	}
	return row, nil
}

// Lived is what an engine made of such hours.
type Lived struct {
	// Cost is what was paid, dollars; Hindsight what no fleet for the pods of every
	// moment can undercut.
	Cost, Hindsight float64
	// Evictions counts pods moved by consolidation, TakenBack those that lost their
	// machine to the cloud.
	Evictions, TakenBack int
	Bought, Removed      int
	// Deciding is the time that consolidation took to decide.
	Deciding time.Duration
}

// quietFor is the pool's consolidateAfter.
const quietFor = 5 * time.Minute

// Live lets an engine live through the hours.
func Live(ctx context.Context, f Churn, karpenterInstead bool) (*Lived, error) {
	c, err := Draw(f.Fleet)
	if err != nil {
		return nil, err
	}
	c.Types = ownPrices(c.Types)
	np := c.Fixed[0].(*v1.NodePool)
	np.Spec.Disruption.ConsolidateAfter = v1.MustParseNillableDuration(quietFor.String())
	l := &life{
		cluster: c, churn: f, lived: &Lived{}, buyer: newNap(c, model.DefaultConsolidationTerms()), demand: newDemand(c, f.Seed),
		cloud: &cloud{cluster: c, interruptions: rand.New(rand.NewPCG(f.Seed, 2)), market: rand.New(rand.NewPCG(f.Seed, 3))},
	}
	if l.engine, err = l.consolidator(ctx, karpenterInstead); err != nil {
		return nil, err
	}
	for minute := range f.Minutes {
		if err := l.minute(ctx, minute); err != nil {
			return nil, fmt.Errorf("minute %d: %w", minute, err)
		}
	}
	return l.lived, nil
}

// ownPrices copies instance types, so that their prices can be changed.
func ownPrices(list []*cloudprovider.InstanceType) []*cloudprovider.InstanceType {
	var out []*cloudprovider.InstanceType
	for _, t := range list {
		own := &cloudprovider.InstanceType{Name: t.Name, Requirements: t.Requirements, Capacity: t.Capacity, Overhead: t.Overhead}
		for _, o := range t.Offerings {
			offering := *o
			own.Offerings = append(own.Offerings, &offering)
		}
		out = append(out, own)
	}
	return out
}

// life is a cluster under change, with the engine that consolidates it.
type life struct {
	cluster *Cluster
	churn   Churn
	// demand and cloud change the cluster, each with draws of its own, so that every
	// engine sees the same demand.
	demand *demand
	cloud  *cloud
	// buyer plans the pods that wait, whatever the engine.
	buyer  *nap
	engine consolidator
	// lived adds up the minutes so far.
	lived *Lived
}

func (l *life) consolidator(ctx context.Context, karpenterInstead bool) (consolidator, error) {
	if !karpenterInstead {
		return &napMinutes{l.buyer, l.churn.audit}, nil
	}
	k, err := newKarpenter(ctx, l.cluster)
	if err != nil {
		return nil, err
	}
	return &karpenterMinutes{k}, nil
}

func (l *life) minute(ctx context.Context, minute int) error {
	now := quietSince.Add(time.Duration(minute+1) * time.Minute)
	l.cluster.now = metav1.NewTime(now)
	l.buyer.now = now
	if minute%60 == 59 {
		l.cloud.movePrices()
		l.buyer.catalog = beside.NewCatalog(l.cluster.Types)
	}
	l.lived.TakenBack += l.cloud.interrupt()
	l.demand.scale(minute)
	bought, err := l.buyer.provision(ctx)
	if err != nil {
		return err
	}
	l.lived.Bought += bought
	if err := l.cluster.check(); err != nil {
		return fmt.Errorf("after provisioning: %w", err)
	}
	f, err := l.engine.minute(ctx, now)
	if err != nil {
		return err
	}
	l.lived.Evictions += f.Evictions
	l.lived.Removed += f.Removed
	l.lived.Deciding += f.All
	if err := l.cluster.check(); err != nil {
		return err
	}
	return l.pay(ctx)
}

// pay adds up a minute.
func (l *life) pay(ctx context.Context) error {
	bound, err := l.buyer.needed(ctx)
	if err != nil {
		return err
	}
	if cost := l.cluster.Cost(); bound > cost+1e-6 {
		return fmt.Errorf("the bound of $%.4f/h is above the fleet's $%.4f/h", bound, cost)
	}
	l.lived.Cost += l.cluster.Cost() / 60
	l.lived.Hindsight += bound / 60
	return nil
}
