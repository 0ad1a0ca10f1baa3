package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/model"
)

// furtherMachines are new ones of one NodePool.
type furtherMachines struct {
	count    int
	capacity model.Resources
	price    model.Money
}

// beyondLimit are the machines of the nearest NodePool that all waiting pods of the class take
// once its limit allows them; nil where they wait for another reason, where that is not the way for
// all of them, and where just one waits, for which the machine of the nearest miss does.
func (a *adviser) beyondLimit(reason model.Reason, nearest *model.NearestMiss) *furtherMachines {
	p := a.made.input.Problem
	at := slices.IndexFunc(p.Pools, func(pool model.Pool) bool { return pool.Name == nearest.Pool })
	if at < 0 || len(a.waiting) < 2 {
		return nil
	}
	var lift func(pool *model.Pool)
	switch reason {
	case model.ReasonLimit:
		lift = func(pool *model.Pool) { pool.Limits = nil }
	case model.ReasonNodeLimit:
		lift = func(pool *model.Pool) { pool.NodeLimit = -1 }
	case model.ReasonCostLimit:
		lift = func(pool *model.Pool) { pool.CostLimit = nil }
	default:
		return nil
	}
	plan := a.plan(func(p *model.Problem, class *model.PodClass) {
		class.Pods = a.waiting
		lift(&p.Pools[at])
	})
	if len(plan.Unschedulable) > 0 {
		return nil
	}
	out := &furtherMachines{capacity: make(model.Resources, len(p.Axes))}
	for i := range plan.NewNodes {
		if n := &plan.NewNodes[i]; n.Pool == at {
			out.count++
			out.capacity = out.capacity.Add(p.Catalogs[p.Pools[at].Catalog].InstanceTypes[n.Best().InstanceType].Capacity)
			out.price += n.Best().Price
		}
	}
	if out.count == 0 {
		return nil
	}
	return out
}

// pendingCommand is a command that gives a pod which waits for this reason a place, or "". A
// limit is raised for more, or where that is nil for the machine of the nearest miss.
func (m *madePlan) pendingCommand(reason model.Reason, nearest *model.NearestMiss, more *furtherMachines) string {
	if nearest == nil {
		return ""
	}
	switch reason {
	case model.ReasonUnavailable:
		return "nap retry " + nearest.InstanceType
	case model.ReasonQuota:
		short := nearest.Quota // which may be that of the region, or of spot
		if short == "" {
			_, short, _ = offline.SizeAndFamily(nearest.InstanceType)
		}
		if short != "" {
			return fmt.Sprintf("az vm list-usage --location %s --query \"[?name.value=='%s']\"", m.source.Region, short)
		}
	case model.ReasonLimit:
		return m.limitCommand(nearest, more)
	case model.ReasonNodeLimit:
		return m.nodeLimitCommand(nearest, more)
	case model.ReasonCostLimit:
		return m.costLimitCommand(nearest, more)
	default:
	}
	return ""
}

// costLimitCommand raises the limit in dollars of a NodePool so far that the machine of the
// nearest miss has room beside those that are planned.
func (m *madePlan) costLimitCommand(nearest *model.NearestMiss, more *furtherMachines) string {
	p := m.input.Problem
	at := slices.IndexFunc(p.Pools, func(pool model.Pool) bool { return pool.Name == nearest.Pool })
	if at < 0 {
		return ""
	}
	types := p.Catalogs[p.Pools[at].Catalog].InstanceTypes
	i := sizeNamed(types, nearest.InstanceType)
	if i < 0 {
		return ""
	}
	need := p.Pools[at].Cost
	for j := range m.plan.NewNodes {
		if n := &m.plan.NewNodes[j]; n.Pool == at {
			need += n.Best().Price
		}
	}
	command := func(limit model.Money) string {
		return fmt.Sprintf("kubectl annotate nodepool %s %s=%s --overwrite", nearest.Pool, v1beta1.AnnotationMaxHourlyCost, upToCent(limit))
	}
	if more != nil {
		return command(need + more.price)
	}
	for j := range types[i].Offerings {
		if o := &types[i].Offerings[j]; o.Zone == nearest.Zone && o.CapacityType == nearest.CapacityType {
			return command(need + o.Price)
		}
	}
	return ""
}

// upToCent is an amount in dollars with two decimals, rounded up.
func upToCent(m model.Money) string {
	const cent = 10_000
	return fmt.Sprintf("%.2f", float64((m+cent-1)/cent)/100)
}

// limitCommand raises the limits of a NodePool so far that one more machine, or all of more, have
// room beside those that are planned.
func (m *madePlan) limitCommand(nearest *model.NearestMiss, more *furtherMachines) string {
	p := m.input.Problem
	at := slices.IndexFunc(p.Pools, func(pool model.Pool) bool { return pool.Name == nearest.Pool })
	if at < 0 {
		return ""
	}
	pool := &p.Pools[at]
	types := p.Catalogs[pool.Catalog].InstanceTypes
	i := sizeNamed(types, nearest.InstanceType)
	if i < 0 {
		return ""
	}
	capacity := types[i].Capacity
	if more != nil {
		capacity = more.capacity
	}
	used := pool.Usage
	for j := range m.plan.NewNodes {
		if n := &m.plan.NewNodes[j]; n.Pool == at {
			used = used.Add(types[n.Best().InstanceType].Capacity)
		}
	}
	var raised []string
	for _, limit := range pool.Limits {
		if need := used.Get(limit.Axis) + capacity.Get(limit.Axis); need > limit.Value {
			raised = append(raised, fmt.Sprintf(`"%s":"%s"`, p.Axes[limit.Axis], atLeast(limit.Axis, need)))
		}
	}
	if len(raised) == 0 {
		return ""
	}
	return fmt.Sprintf(`kubectl patch nodepool %s --type merge -p '{"spec":{"limits":{%s}}}'`, pool.Name, strings.Join(raised, ","))
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
