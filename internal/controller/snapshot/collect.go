package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Market is what the cloud knows of what can be bought.
type Market struct {
	// Region is where machines are bought, Prices says where their prices come from.
	Region string
	Prices v1alpha1.PriceSource
	// Quotas are all limits of the subscription, Refusals what Azure has refused.
	Quotas   []v1alpha1.QuotaLine
	Refusals []v1alpha1.Refusal
}

// Collector puts together what the controller knows.
type Collector struct {
	Engine string
	Clock  clock.PassiveClock
	// Market asks the cloud's memory.
	Market func() Market
	// Health says what is out and why nothing is bought, both empty while all is well.
	Health func() (azure, buying string)
	// Fleet is the mirror of the cluster, Decisions what was decided on its pods; nil
	// where another engine decides.
	Fleet     func() *fleet.Snapshot
	Decisions *Decisions
}

// Collect fills in what is known now.
func (c *Collector) Collect(d *Document) {
	s := &d.Status
	s.Engine = c.Engine
	azure, buying := c.Health()
	s.Health.Azure, s.Health.Buying = cmp.Or(azure, "ok"), buying
	market := c.Market()
	s.Region, s.Prices = market.Region, market.Prices
	s.Quotas = market.Quotas
	slices.SortStableFunc(s.Quotas, func(x, y v1alpha1.QuotaLine) int { return cmp.Compare(x.Limit-x.Used, y.Limit-y.Used) })
	s.Refusals = market.Refusals
	slices.SortStableFunc(s.Refusals, func(x, y v1alpha1.Refusal) int { return y.Until.Compare(x.Until.Time) })
	s.RefusedOfferings = int32(len(s.Refusals))
	if c.Fleet == nil {
		return
	}
	now := c.Fleet()
	leftOut := c.Decisions.fill(d, now)
	c.pools(s, now, leftOut)
	c.machines(s, now)
}

// pools states the NodePools, ordered by name; leftOut is why they buy nothing.
func (c *Collector) pools(s *v1alpha1.SnapshotStatus, now *fleet.Snapshot, leftOut map[string]string) {
	nodes, leaving := map[string]int{}, map[string]int{}
	used := map[string]map[string]int64{}
	for claim := range now.AllClaims() {
		nodes[claim.Pool]++
		if claim.Leaving {
			leaving[claim.Pool]++
		}
		if used[claim.Pool] == nil {
			used[claim.Pool] = map[string]int64{}
		}
		used[claim.Pool]["cpu"] += claim.Capacity.CPU
		used[claim.Pool]["memory"] += claim.Capacity.Memory
	}
	axes := model.NewAxes()
	for _, pool := range now.Pools() {
		state := v1alpha1.NodePoolState{Name: pool.Name, Nodes: int32(nodes[pool.Name]), Why: leftOut[pool.Name]}
		for _, limit := range pool.Limits {
			axis := axes.Index(limit.Name)
			if axis != model.CPU && axis != model.Memory {
				continue
			}
			setLimit(&state, limit.Name, model.FormatAmount(axis, used[pool.Name][limit.Name]), model.FormatAmount(axis, limit.Value))
		}
		if pool.NodeLimit >= 0 {
			setLimit(&state, "nodes", fmt.Sprint(nodes[pool.Name]), fmt.Sprint(pool.NodeLimit))
		}
		if pool.Disruption.Allowed != nil {
			state.Budgets = map[string]int32{}
			for _, reason := range []model.DisruptionReason{model.DisruptEmpty, model.DisruptUnderutilized, model.DisruptDrifted} {
				allowed := pool.Disruption.Allowed(c.Clock.Now(), nodes[pool.Name], reason) - leaving[pool.Name]
				state.Budgets[string(reason)] = int32(max(0, min(allowed, nodes[pool.Name])))
			}
		}
		s.NodePools = append(s.NodePools, state)
	}
}

// setLimit says how much of a limit is used.
func setLimit(state *v1alpha1.NodePoolState, name, used, limit string) {
	if state.Limits == nil {
		state.Limits = map[string]string{}
	}
	state.Limits[name] = used + " of " + limit
}

// machines states the NodeClaims that are not nodes yet, and how long that usually takes.
func (c *Collector) machines(s *v1alpha1.SnapshotStatus, now *fleet.Snapshot) {
	var took []time.Duration
	for claim := range now.AllClaims() {
		if !claim.Initialized.IsZero() {
			took = append(took, claim.Initialized.Sub(claim.Created))
			continue
		}
		if claim.Leaving {
			continue
		}
		m := v1alpha1.MachineUnderWay{
			NodeClaim: claim.Name, NodePool: claim.Pool, Size: claim.Labels[model.LabelInstanceType],
			Ordered: metav1.NewTime(claim.Created), Stage: "Ordered",
		}
		switch {
		case claim.NodeName != "":
			m.Stage = "Registered"
		case claim.ProviderID != "":
			m.Stage = "Launched"
		}
		if claim.BootFailed {
			m.Trouble = "the machine says that it cannot become a node"
		}
		s.Machines = append(s.Machines, m)
	}
	slices.SortFunc(s.Machines, func(x, y v1alpha1.MachineUnderWay) int {
		return cmp.Or(x.Ordered.Compare(y.Ordered.Time), cmp.Compare(x.NodeClaim, y.NodeClaim))
	})
	if len(took) > 0 {
		slices.Sort(took)
		s.UsualBootSeconds = int32(took[len(took)/2].Seconds())
	}
}
