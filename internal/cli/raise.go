package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

// everyLimit stands in the place of a reason for all limits of a NodePool.
const everyLimit model.Reason = ""

// poolLimit is a kind of limit of a NodePool: pods wait for this reason because it is full.
type poolLimit struct {
	// reason is the limit's, or everyLimit.
	reason model.Reason
	// pool is the index of the NodePool.
	pool int
}

// raisedLimit is a limit of a NodePool with which a plan of all pending pods gives more of them a
// place.
type raisedLimit struct {
	limit   poolLimit
	command string
	// left are the pods that the plan still leaves out.
	left map[model.PodRef]bool
	// waiting are the pods that wait for the limit.
	waiting []model.PodRef
}

// change says what the command does, and for how many pods: the others take room of the limit,
// too, so that it is not enough to raise it for one of them.
func (r *raisedLimit) change(pool string) string {
	change, it := "raise the limit of NodePool "+pool, "it"
	if r.limit.reason == everyLimit {
		change, it = "raise the limits of NodePool "+pool, "them"
	}
	placed := 0
	for _, pod := range r.waiting {
		if !r.left[pod] {
			placed++
		}
	}
	switch waiting := len(r.waiting); {
	case waiting < 2:
		return change
	case placed == waiting:
		return fmt.Sprintf("%s, for all %d pods that wait for %s", change, waiting, it)
	default:
		return fmt.Sprintf("%s, for %d of the %d pods that wait for %s", change, placed, waiting, it)
	}
}

// raise is how far the limit that is the reason must be raised in the nearest NodePool, or all of
// its limits where more than that one are full; nil where the reason is none of a limit, or no such
// limits give a pod of the class a place. It is looked for once for all pods.
func (a *adviser) raise(reason model.Reason, nearest *model.NearestMiss) *raisedLimit {
	at := slices.IndexFunc(a.made.input.Problem.Pools, func(pool model.Pool) bool { return pool.Name == nearest.Pool })
	if at < 0 || reason == everyLimit || unlimited(reason) == nil {
		return nil
	}
	for _, reason := range []model.Reason{reason, everyLimit} {
		raised := raisedOnce(a.made, poolLimit{reason, at})
		if raised != nil && slices.ContainsFunc(a.waiting, func(pod model.PodRef) bool { return !raised.left[pod] }) {
			return raised
		}
	}
	return nil
}

// raisedOnce is [madePlan.raised], which is kept.
func raisedOnce(m *madePlan, limit poolLimit) *raisedLimit {
	raised, known := m.raises[limit]
	if !known {
		if m.raises == nil {
			m.raises = map[poolLimit]*raisedLimit{}
		}
		raised = m.raised(limit)
		m.raises[limit] = raised
	}
	return raised
}

// unlimited takes away the limit that is a reason, or every one; nil where the reason is none of a
// limit.
func unlimited(reason model.Reason) func(pool *model.Pool) {
	switch reason {
	case model.ReasonLimit:
		return func(pool *model.Pool) { pool.Limits = nil }
	case model.ReasonNodeLimit:
		return func(pool *model.Pool) { pool.NodeLimit = -1 }
	case model.ReasonCostLimit:
		return func(pool *model.Pool) { pool.CostLimit = nil }
	case everyLimit:
		return func(pool *model.Pool) { pool.Limits, pool.NodeLimit, pool.CostLimit = nil, -1, nil }
	default:
		return nil
	}
}

// raised looks for how far a limit must be raised: so far that what a plan without it buys has
// room. Plans with a limit are made otherwise than without, so that one must show that it is
// enough; where it is not, one machine more has room.
func (m *madePlan) raised(limit poolLimit) *raisedLimit {
	free, all := m.planAll(limit.pool, unlimited(limit.reason))
	bought := boughtFrom(m.input.Problem, free, limit.pool)
	if bought.count == 0 {
		return nil
	}
	most := leftPods(free, all)
	var out *raisedLimit
	for range 2 {
		pool := m.input.Problem.Pools[limit.pool]
		command := raiseTo(m.input.Problem.Axes, &pool, limit.reason, &bought)
		if command == "" {
			return out
		}
		plan, classes := m.planAll(limit.pool, func(p *model.Pool) { *p = pool })
		left := leftPods(plan, classes)
		if out == nil || len(left) < len(out.left) {
			out = &raisedLimit{limit: limit, command: command, left: left, waiting: m.waitingFor(limit)}
		}
		if len(left) <= len(most) {
			return out
		}
		bought = bought.andOneMore()
	}
	return out
}

// planAll is the first plan for all pods that wait with a change of a NodePool, and its classes.
func (m *madePlan) planAll(pool int, change func(*model.Pool)) (*model.Plan, []model.PodClass) {
	p := *m.input.Problem
	p.Pools = slices.Clone(p.Pools)
	change(&p.Pools[pool])
	p.Classes = slices.Clone(p.Classes)
	for i := range m.decided {
		d := &m.decided[i]
		if d.verdict.NodeClaim == "" && len(d.class.Pods) > 0 {
			class := d.class
			class.Pods = d.refs
			p.Classes = append(p.Classes, class)
		}
	}
	p.Policy.Budget, p.Policy.Replay = 0, nil
	return planner.Solve(&p), p.Classes
}

// leftPods are the pods of classes that a plan leaves out.
func leftPods(plan *model.Plan, classes []model.PodClass) map[model.PodRef]bool {
	out := map[model.PodRef]bool{}
	for i := range plan.Unschedulable {
		u := &plan.Unschedulable[i]
		for _, pod := range u.Pods {
			out[classes[u.Class].Pods[pod]] = true
		}
	}
	return out
}

// holdsBack reports whether pods that wait for a reason wait for the limit.
func (l poolLimit) holdsBack(reason model.Reason) bool {
	return reason == l.reason || l.reason == everyLimit && reason != everyLimit && unlimited(reason) != nil
}

// waitingFor are the pods which wait because a limit is full.
func (m *madePlan) waitingFor(limit poolLimit) []model.PodRef {
	p := m.input.Problem
	var out []model.PodRef
	for i := range m.plan.Unschedulable {
		u := &m.plan.Unschedulable[i]
		if !limit.holdsBack(u.Reason) || u.Nearest == nil || u.Nearest.Pool != p.Pools[limit.pool].Name {
			continue
		}
		for _, pod := range u.Pods {
			out = append(out, p.Classes[u.Class].Pods[pod])
		}
	}
	for i := range m.decided {
		if limit.holdsBack(model.Reason(m.decided[i].verdict.Reason)) {
			out = append(out, m.decided[i].refs...)
		}
	}
	return out
}

// boughtMachines are what a plan buys of one NodePool.
type boughtMachines struct {
	count    int
	capacity model.Resources
	price    model.Money
	// largest and dearest are the most that one of them has of each resource, and costs.
	largest model.Resources
	dearest model.Money
}

// boughtFrom is what a plan for a problem buys of a NodePool.
func boughtFrom(p *model.Problem, plan *model.Plan, pool int) boughtMachines {
	types := p.Catalogs[p.Pools[pool].Catalog].InstanceTypes
	out := boughtMachines{capacity: make(model.Resources, len(p.Axes)), largest: make(model.Resources, len(p.Axes))}
	for i := range plan.NewNodes {
		n := &plan.NewNodes[i]
		if n.Pool != pool {
			continue
		}
		capacity := types[n.Best().InstanceType].Capacity
		out.count++
		out.capacity = out.capacity.Add(capacity)
		out.price += n.Best().Price
		out.dearest = max(out.dearest, n.Best().Price)
		for axis := range out.largest {
			out.largest[axis] = max(out.largest[axis], capacity.Get(axis))
		}
	}
	return out
}

// andOneMore are the machines and another one that is as large and dear as any of them.
func (b *boughtMachines) andOneMore() boughtMachines {
	out := *b
	out.count, out.capacity, out.price = b.count+1, b.capacity.Add(b.largest), b.price+b.dearest
	return out
}

// raiseTo raises the limit that is a reason so far that machines have room beside what the
// NodePool has, and returns the command which does that; "" where they have room already.
func raiseTo(axes model.Axes, pool *model.Pool, reason model.Reason, bought *boughtMachines) string {
	switch reason {
	case model.ReasonNodeLimit:
		return patchLimits(pool.Name, raiseNodes(pool, bought), "")
	case model.ReasonCostLimit:
		most := raiseCost(pool, bought)
		return fmt.Sprintf("kubectl annotate nodepool %s %s=%s --overwrite", pool.Name, v1beta1.AnnotationMaxHourlyCost, most)
	case everyLimit:
		raised, most := raiseResources(axes, pool, bought), ""
		if pool.NodeLimit >= 0 && pool.Nodes+bought.count > pool.NodeLimit {
			raised = append(raised, raiseNodes(pool, bought)...)
		}
		if pool.CostLimit != nil && pool.Cost+bought.price > *pool.CostLimit {
			most = raiseCost(pool, bought)
		}
		return patchLimits(pool.Name, raised, most)
	default:
		return patchLimits(pool.Name, raiseResources(axes, pool, bought), "")
	}
}

// raiseResources raises the limits of resources that are too low, and returns them as JSON fields.
func raiseResources(axes model.Axes, pool *model.Pool, bought *boughtMachines) []string {
	var raised []string
	pool.Limits = slices.Clone(pool.Limits)
	for i := range pool.Limits {
		limit := &pool.Limits[i]
		if need := pool.Usage.Get(limit.Axis) + bought.capacity.Get(limit.Axis); need > limit.Value {
			limit.Value = need
			raised = append(raised, fmt.Sprintf(`"%s":"%s"`, axes[limit.Axis], atLeast(limit.Axis, need)))
		}
	}
	return raised
}

// raiseNodes raises the limit of nodes, and returns it as a JSON field.
func raiseNodes(pool *model.Pool, bought *boughtMachines) []string {
	pool.NodeLimit = pool.Nodes + bought.count
	return []string{fmt.Sprintf(`"nodes":"%d"`, pool.NodeLimit)}
}

// raiseCost raises the limit of cost, and returns it as the annotation has it.
func raiseCost(pool *model.Pool, bought *boughtMachines) string {
	most := upToCent(pool.Cost + bought.price)
	pool.CostLimit = &most
	return fmt.Sprintf("%.2f", most.Dollars())
}

// patchLimits is the command that sets limits, which are JSON fields, and the one of cost if it is
// not empty; "" where there is nothing to set.
func patchLimits(pool string, limits []string, cost string) string {
	var fields []string
	if cost != "" {
		fields = append(fields, fmt.Sprintf(`"metadata":{"annotations":{"%s":"%s"}}`, v1beta1.AnnotationMaxHourlyCost, cost))
	}
	if len(limits) > 0 {
		fields = append(fields, fmt.Sprintf(`"spec":{"limits":{%s}}`, strings.Join(limits, ",")))
	}
	if len(fields) == 0 {
		return ""
	}
	return fmt.Sprintf("kubectl patch nodepool %s --type merge -p '{%s}'", pool, strings.Join(fields, ","))
}

// upToCent is an amount rounded up to a cent.
func upToCent(m model.Money) model.Money {
	const cent = 10_000
	return (m + cent - 1) / cent * cent
}

// atLeast is an amount as a quantity that is not less: [model.FormatAmount] cuts off of bytes what
// does not fit into its figures.
func atLeast(axis int, v int64) string {
	const mebi = 1 << 20
	if axis == model.Memory || axis == model.EphemeralStorage {
		return fmt.Sprintf("%dMi", (v+mebi-1)/mebi)
	}
	return model.FormatAmount(axis, v)
}
