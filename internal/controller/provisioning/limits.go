package provisioning

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/model"
)

// limits are the kinds of limits that a NodePool has, in the order in which they are named.
var limits = [...]model.Reason{model.ReasonCostLimit, model.ReasonNodeLimit, model.ReasonLimit}

// reachedLimits are the NodePools whose limits keep machines from being bought for pods
// that a plan leaves without a place.
func reachedLimits(in *planInputs, plan *model.Plan) []snapshot.ReachedLimit {
	var out []snapshot.ReachedLimit
	for i := range plan.Unschedulable {
		u := &plan.Unschedulable[i]
		for j := range u.Pools {
			reason, limited := limitOf(&u.Pools[j])
			if !limited {
				continue
			}
			refs := in.input.Pods([]model.ClassPods{{Class: u.Class, Pods: u.Pods}})
			out = append(out, snapshot.ReachedLimit{
				Pool: in.input.Problem.Pools[u.Pools[j].Pool].Name, Text: limitText(in.input.Problem, plan, u.Pools[j].Pool, reason), Pods: refs,
			})
		}
	}
	return out
}

// limitOf is the kind of limit that took offerings from a NodePool.
func limitOf(v *model.PoolVerdict) (model.Reason, bool) {
	for _, reason := range limits {
		if slices.ContainsFunc(v.Removed, func(r model.ReasonCount) bool { return r.Reason == reason }) {
			return reason, true
		}
	}
	return "", false
}

// limitText says what the NodePool's limits of a kind leave after the plan.
func limitText(p *model.Problem, plan *model.Plan, at int, reason model.Reason) string {
	pool := &p.Pools[at]
	cost, nodes, usage := pool.Cost, pool.Nodes, pool.Usage
	for i := range plan.NewNodes {
		if n := &plan.NewNodes[i]; n.Pool == at {
			cost, nodes = cost+n.Best().Price, nodes+1
			usage = usage.Add(p.Catalogs[pool.Catalog].InstanceTypes[n.Best().InstanceType].Capacity)
		}
	}
	var left string
	switch reason {
	case model.ReasonCostLimit:
		left = fmt.Sprintf("the limit of %s leaves %s", *pool.CostLimit, max(0, *pool.CostLimit-cost))
	case model.ReasonNodeLimit:
		left = fmt.Sprintf("spec.limits.nodes of %d leaves %d", pool.NodeLimit, max(0, pool.NodeLimit-nodes))
	default:
		var of []string
		for _, l := range pool.Limits {
			of = append(of, fmt.Sprintf("%s of %s leaves %s", p.Axes[l.Axis], model.FormatAmount(l.Axis, l.Value),
				model.FormatAmount(l.Axis, max(0, l.Value-usage.Get(l.Axis)))))
		}
		left = "spec.limits." + strings.Join(of, ", ")
	}
	return "Pods wait: " + left + ", too little for a machine for them"
}
