package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Market is what the cloud knows of what can be bought.
type Market struct {
	// Region is where machines are bought, Prices says where their prices come from.
	Region string
	Prices v1alpha1.PriceSource
	// Terms are what the subscription pays instead of retail prices, nil for none.
	Terms *price.Terms
	// Quotas are all limits of the subscription, Refusals what Azure has refused.
	Quotas   []v1alpha1.QuotaLine
	Refusals []v1alpha1.Refusal
}

// Collector puts together what the controller knows.
type Collector struct {
	Engine string
	// Gates are the feature gates that are on, by name.
	Gates []string
	// DefaultSpread are the default spread constraints of the cluster's scheduler.
	DefaultSpread []corev1.TopologySpreadConstraint
	// ResourceClaims says that pods with resource claims are planned.
	ResourceClaims bool
	Clock          clock.PassiveClock
	// Market asks the cloud's memory.
	Market func() Market
	// Health says what is out and why nothing is bought, both empty while all is well.
	Health func() (azure, buying string)
	// Prerequisites names the checks that are not met, empty while all are; nil for none.
	Prerequisites func() string
	// Fleet is the mirror of the cluster, Decisions what was decided on its pods; nil
	// where another engine decides.
	Fleet     func() *fleet.Snapshot
	Decisions *Decisions
	// Moves are the removals of nodes; nil where another engine decides.
	Moves *Moves
	// Catalogs price the nodes.
	Catalogs fleet.Catalogs

	// last is what the fleet was like when it was looked at last. One goroutine uses it.
	last fleetState
}

// fleetState is what is told of a fleet.
type fleetState struct {
	// of is the fleet, nil before the first look; until is when it is looked at again though
	// nothing of it has changed: prices may have, and the time until which it is frozen ends.
	of    *fleet.Snapshot
	until time.Time

	pools    []v1alpha1.NodePoolState
	others   int32
	machines []v1alpha1.MachineUnderWay
	leaving  []v1alpha1.LeavingNode
	usual    int32
}

// fleetHolds is for how long what is told of a fleet holds while nothing of it changes.
const fleetHolds = 30 * time.Second

// stateOf looks at a fleet, unless it is the one of the last look.
func (c *Collector) stateOf(ctx context.Context, now *fleet.Snapshot) (*fleetState, error) {
	at := c.Clock.Now()
	if c.last.of == now && at.Before(c.last.until) {
		return &c.last, nil
	}
	views, err := now.Views(ctx, c.Catalogs)
	if err != nil {
		return nil, err
	}
	c.last = fleetState{of: now, until: at.Add(fleetHolds)}
	c.last.pools, c.last.others = Pools(now, views, at)
	c.last.machines, c.last.usual = Machines(now, at)
	c.last.leaving = Leaving(now, at)
	return &c.last, nil
}

// Collect fills in what is known now.
func (c *Collector) Collect(ctx context.Context, d *Document) error {
	s := &d.Status
	s.Engine, s.FeatureGates = c.Engine, c.Gates
	d.DefaultSpread, d.ResourceClaims = c.DefaultSpread, c.ResourceClaims
	azure, buying := c.Health()
	s.Health.Azure, s.Health.Buying = cmp.Or(azure, "ok"), buying
	if c.Prerequisites != nil {
		s.Health.Prerequisites = c.Prerequisites()
	}
	market := c.Market()
	s.Region, s.Prices, d.Terms = market.Region, market.Prices, market.Terms
	s.Quotas = market.Quotas
	slices.SortStableFunc(s.Quotas, func(x, y v1alpha1.QuotaLine) int { return cmp.Compare(x.Limit-x.Used, y.Limit-y.Used) })
	s.Refusals = market.Refusals
	slices.SortStableFunc(s.Refusals, func(x, y v1alpha1.Refusal) int { return y.Until.Compare(x.Until.Time) })
	s.RefusedOfferings = int32(len(s.Refusals))
	if c.Fleet == nil {
		return nil
	}
	now := c.Fleet()
	state, err := c.stateOf(ctx, now)
	if err != nil {
		return err
	}
	leftOut := c.Decisions.fill(d, now)
	s.NodePools, s.OtherNodes = slices.Clone(state.pools), state.others
	for i := range s.NodePools {
		s.NodePools[i].Why = leftOut[s.NodePools[i].Name]
	}
	s.Machines, s.UsualBootSeconds = slices.Clone(state.machines), state.usual
	s.Leaving = slices.Clone(state.leaving)
	c.Moves.fill(s)
	tellLeaving(s)
	return nil
}

// use is what the nodes of a NodePool have and what of it is requested.
type use struct {
	cost                        model.Money
	counted                     model.Money // for the limit in dollars
	spot                        int32
	cpu, memory, cpuAsk, memAsk int64
}

// percent is the share that is asked for, nil where there is no room at all.
func percent(asked, room int64) *int32 {
	if room <= 0 {
		return nil
	}
	out := int32(min(100, (100*asked+room/2)/room))
	return &out
}

// Pools states the NodePools of a fleet at a moment, ordered by name, and how many nodes
// belong to none.
func Pools(now *fleet.Snapshot, views []fleet.NodeView, at time.Time) (pools []v1alpha1.NodePoolState, others int32) {
	nodes, leaving, capacity := map[string]int{}, map[string]int{}, map[string]*fleet.Amounts{}
	for claim := range now.AllClaims() {
		if claim.Leaving {
			leaving[claim.Pool]++
		}
		if capacity[claim.Pool] == nil {
			capacity[claim.Pool] = &fleet.Amounts{}
		}
		capacity[claim.Pool].CPU += claim.Capacity.CPU
		capacity[claim.Pool].Memory += claim.Capacity.Memory
	}
	uses := map[string]*use{}
	for i := range views {
		v := &views[i]
		if v.Pool == "" {
			others++
			continue
		}
		u := uses[v.Pool]
		if u == nil {
			u = &use{}
			uses[v.Pool] = u
		}
		nodes[v.Pool]++
		u.cost += v.Price
		u.counted += v.Counted
		if v.CapacityType() == string(model.Spot) {
			u.spot++
		}
		u.cpu, u.cpuAsk = u.cpu+v.Allocatable.CPU, u.cpuAsk+v.Requested.CPU
		u.memory, u.memAsk = u.memory+v.Allocatable.Memory, u.memAsk+v.Requested.Memory
	}
	axes := model.NewAxes()
	for _, pool := range now.Pools() {
		state := v1alpha1.NodePoolState{Name: pool.Name, Nodes: int32(nodes[pool.Name])}
		if u := uses[pool.Name]; u != nil {
			state.SpotNodes, state.HourlyCost = u.spot, fmt.Sprintf("%.3f", u.cost.Dollars())
			state.CPUPercent, state.MemoryPercent = percent(u.cpuAsk, u.cpu), percent(u.memAsk, u.memory)
		}
		if pool.Disruption.Frozen.Holds(at) {
			state.Frozen = pool.Disruption.Frozen.String()
		}
		if pool.CostLimit != nil {
			used := model.Money(0)
			if u := uses[pool.Name]; u != nil {
				used = u.counted
			}
			setLimit(&state, LimitDollars, used.String(), pool.CostLimit.String())
		}
		for _, limit := range pool.Limits {
			axis := axes.Index(limit.Name)
			if axis != model.CPU && axis != model.Memory {
				continue
			}
			used := int64(0)
			if has := capacity[pool.Name]; has != nil {
				used = has.Get(limit.Name)
			}
			setLimit(&state, limit.Name, model.FormatAmount(axis, used), model.FormatAmount(axis, limit.Value))
		}
		if pool.NodeLimit >= 0 {
			setLimit(&state, "nodes", fmt.Sprint(nodes[pool.Name]), fmt.Sprint(pool.NodeLimit))
		}
		setBudgets(&state, pool, at, nodes[pool.Name], leaving[pool.Name])
		pools = append(pools, state)
	}
	return pools, others
}

// setBudgets says how many nodes may be disrupted now.
func setBudgets(state *v1alpha1.NodePoolState, pool *fleet.Pool, at time.Time, nodes, leaving int) {
	if pool.Disruption.Allowed == nil && state.Frozen == "" {
		return
	}
	state.Budgets = map[string]int32{}
	for _, reason := range []model.DisruptionReason{model.DisruptEmpty, model.DisruptUnderutilized, model.DisruptDrifted} {
		allowed := 0
		if state.Frozen == "" {
			allowed = max(0, min(pool.Disruption.Allowed(at, nodes, reason)-leaving, nodes))
		}
		state.Budgets[string(reason)] = int32(allowed)
	}
}

// LimitDollars is the name of the limit in dollars per hour in [v1alpha1.NodePoolState].
const LimitDollars = "dollars"

// setLimit says how much of a limit is used.
func setLimit(state *v1alpha1.NodePoolState, name, used, limit string) {
	if state.Limits == nil {
		state.Limits = map[string]string{}
	}
	state.Limits[name] = used + " of " + limit
}

// Machines states the NodeClaims that are not nodes yet at a moment, the oldest first, and how many
// seconds that usually takes, zero where it is not known.
func Machines(now *fleet.Snapshot, at time.Time) (machines []v1alpha1.MachineUnderWay, usual int32) {
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
		if m.Trouble = claim.Trouble; !claim.GivenUp.IsZero() {
			m.GivenUp = &metav1.Time{Time: claim.GivenUp}
		}
		if node := now.Node(claim.NodeName); node != nil && m.Trouble == "" {
			m.Trouble = NotInitialized(claim, node, at)
		}
		machines = append(machines, m)
	}
	slices.SortFunc(machines, func(x, y v1alpha1.MachineUnderWay) int {
		return cmp.Or(x.Ordered.Compare(y.Ordered.Time), cmp.Compare(x.NodeClaim, y.NodeClaim))
	})
	if len(took) > 0 {
		slices.Sort(took)
		usual = int32(took[len(took)/2].Seconds())
	}
	return machines, usual
}

// Leaving states the nodes whose deletion has been asked for, and what blocks it at a moment.
func Leaving(now *fleet.Snapshot, at time.Time) []v1alpha1.LeavingNode {
	var out []v1alpha1.LeavingNode
	for _, n := range now.LeavingNodes(at) {
		out = append(out, v1alpha1.LeavingNode{
			Node: n.Node, NodeClaim: n.Claim, NodePool: n.Pool, Since: metav1.NewTime(n.Since),
			BlockedBy: n.Blocks, WaitsFor: n.Waits, Move: n.Command,
		})
	}
	return out
}

// NotInitialized says what a node that is not initialized waits for. It is empty for one that
// is, for one whose NodeClaim has not noticed yet, and for one that is not late at this moment.
func NotInitialized(claim *fleet.Claim, node *fleet.Node, at time.Time) string {
	awaited := fleet.Awaited(claim, node)
	if len(awaited) == 0 || at.Sub(node.Created) < fleet.InitializeWithin {
		return ""
	}
	return fmt.Sprintf("node %s is not initialized: %s", node.Name, strings.Join(awaited, "; "))
}

// OnItsWay says of the machine of a NodeClaim how long it has been ordered, how long that usually
// takes, how far it is, what Azure says, and when it is given up. These are the words of all
// commands.
func OnItsWay(s *v1alpha1.SnapshotStatus, claim string, now time.Time) string {
	at := slices.IndexFunc(s.Machines, func(m v1alpha1.MachineUnderWay) bool { return m.NodeClaim == claim })
	if at < 0 {
		return "NodeClaim " + claim
	}
	m := &s.Machines[at]
	text := fmt.Sprintf("NodeClaim %s of NodePool %s, ordered %s ago", claim, m.NodePool, seconds(now.Sub(m.Ordered.Time)))
	if s.UsualBootSeconds > 0 {
		text += fmt.Sprintf(" (usually there after %s)", seconds(time.Duration(s.UsualBootSeconds)*time.Second))
	}
	text += ", " + m.Stage
	if m.GivenUp != nil {
		text += fmt.Sprintf(", given up at %s and then planned again", m.GivenUp.UTC().Format("15:04:05Z"))
	}
	if m.Trouble != "" {
		text += "; " + m.Trouble
	}
	return text
}

func seconds(d time.Duration) string { return model.FormatDuration(d.Truncate(time.Second)) }
