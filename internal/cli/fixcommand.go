package cli

import (
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/model"
)

// pendingCommand is a command that gives a pod which waits for this reason a place, or "".
func (m *madePlan) pendingCommand(reason model.Reason, nearest *model.NearestMiss) string {
	if nearest == nil {
		return ""
	}
	switch reason {
	case model.ReasonUnavailable:
		return "nap retry " + nearest.InstanceType
	case model.ReasonQuota:
		if _, family, err := offline.SizeAndFamily(nearest.InstanceType); err == nil {
			return fmt.Sprintf("az vm list-usage --location %s --query \"[?name.value=='%s']\"", m.source.Region, family)
		}
	case model.ReasonLimit:
		return m.limitCommand(nearest)
	case model.ReasonNodeLimit:
		return m.nodeLimitCommand(nearest)
	case model.ReasonCostLimit:
		return m.costLimitCommand(nearest)
	default:
	}
	return ""
}

// costLimitCommand raises the limit in dollars of a NodePool so far that the machine of the
// nearest miss has room beside those that are planned.
func (m *madePlan) costLimitCommand(nearest *model.NearestMiss) string {
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
	for j := range types[i].Offerings {
		if o := &types[i].Offerings[j]; o.Zone == nearest.Zone && o.CapacityType == nearest.CapacityType {
			return fmt.Sprintf("kubectl annotate nodepool %s %s=%s --overwrite",
				nearest.Pool, v1beta1.AnnotationMaxHourlyCost, upToCent(need+o.Price))
		}
	}
	return ""
}

// upToCent is an amount in dollars with two decimals, rounded up.
func upToCent(m model.Money) string {
	const cent = 10_000
	return fmt.Sprintf("%.2f", float64((m+cent-1)/cent)/100)
}

// limitCommand raises the limit of a NodePool so far that one more machine has room beside
// those that are planned.
func (m *madePlan) limitCommand(nearest *model.NearestMiss) string {
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
	used := pool.Usage
	for j := range m.plan.NewNodes {
		if n := &m.plan.NewNodes[j]; n.Pool == at {
			used = used.Add(types[n.Best().InstanceType].Capacity)
		}
	}
	for _, limit := range pool.Limits {
		need := used.Get(limit.Axis) + types[i].Capacity.Get(limit.Axis)
		if need > limit.Value {
			return fmt.Sprintf(`kubectl patch nodepool %s --type merge -p '{"spec":{"limits":{"%s":"%s"}}}'`,
				pool.Name, p.Axes[limit.Axis], model.FormatAmount(limit.Axis, need))
		}
	}
	return ""
}
