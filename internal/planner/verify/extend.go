package verify

import (
	"fmt"

	"github.com/nodeautoprovision/nap/internal/model"
)

// CouldAdd looks for a pod that the plan leaves out although one more place
// could be found for it without moving a pod: on a node, on a machine that
// the plan buys anyway, or on one machine more. It returns a sentence, or "".
func CouldAdd(p *model.Problem, plan *model.Plan) string {
	c := &checker{p: p, cloud: cloudLabels(p)}
	for u := range plan.Unschedulable {
		out := plan.Unschedulable[u]
		if out.Reason == model.ReasonPodInvalid {
			continue
		}
		pod := out.Pods[0]
		rest := *plan
		rest.Unschedulable = append([]model.Unschedulable(nil), plan.Unschedulable...)
		rest.Unschedulable[u].Pods = out.Pods[1:]
		if len(out.Pods) == 1 {
			rest.Unschedulable = append(rest.Unschedulable[:u], rest.Unschedulable[u+1:]...)
		}
		for n := range p.Nodes {
			more := rest
			more.Placements = append([]model.Placement(nil), plan.Placements...)
			at := -1
			for i := range more.Placements {
				if more.Placements[i].Node == n {
					at = i
				}
			}
			if at < 0 {
				more.Placements = append(more.Placements, model.Placement{Node: n})
				at = len(more.Placements) - 1
			}
			more.Placements[at].Pods = with(more.Placements[at].Pods, out.Class, pod)
			if c.admitsLast(&more, out.Class, n) {
				return fmt.Sprintf("class %d could go to node %s", out.Class, p.Nodes[n].Name)
			}
		}
		for i := range plan.NewNodes {
			more := rest
			more.NewNodes = append([]model.NewNode(nil), plan.NewNodes...)
			more.NewNodes[i].Pods = with(more.NewNodes[i].Pods, out.Class, pod)
			if c.admitsLast(&more, out.Class, len(p.Nodes)+i) {
				return fmt.Sprintf("class %d could go to new node %d", out.Class, i)
			}
		}
		for pool := range p.Pools {
			for _, m := range c.machinesFor(pool, &p.Classes[out.Class], func(map[string]string) bool { return true }) {
				more := rest
				more.NewNodes = append(append([]model.NewNode(nil), plan.NewNodes...), model.NewNode{
					Pool: pool, Offerings: []model.OfferingRef{m.ref}, Requirements: m.narrow, Pods: with(nil, out.Class, pod),
				})
				more.Cost += m.ref.Price
				if c.admitsLast(&more, out.Class, len(p.Nodes)+len(plan.NewNodes)) {
					return fmt.Sprintf("class %d could go to one more machine in %s, %v", out.Class, p.Pools[pool].Name, m.labels)
				}
			}
		}
	}
	return ""
}

// admitsLast: the plan breaks no rule, and the pod on the spot may come after
// all others.
func (c *checker) admitsLast(plan *model.Plan, class, at int) bool {
	one := &checker{p: c.p, cloud: c.cloud, plan: plan}
	if one.places(); len(one.found) > 0 {
		return false
	}
	r := newReplay(one)
	if len(one.found) > 0 {
		return false
	}
	for i := range r.items {
		if it := &r.items[i]; it.class == class && it.spot == at {
			it.left--
			it.all--
		}
	}
	return r.anyOrder() && r.admits(class, at)
}

// Lighter looks for a pod on a machine of one NodePool that a machine of a heavier
// one could have taken, with nothing else on it and as far as labels, taints, size
// and availability go. It returns a sentence, or "". It knows nothing of limits that
// are used up by then and of topology.
func Lighter(p *model.Problem, plan *model.Plan) string {
	c := &checker{p: p, cloud: cloudLabels(p)}
	for i := range plan.NewNodes {
		n := &plan.NewNodes[i]
		for _, cp := range n.Pods {
			for pool := range p.Pools {
				if p.Pools[pool].Weight <= p.Pools[n.Pool].Weight {
					continue
				}
				if all := c.machinesFor(pool, &p.Classes[cp.Class], func(map[string]string) bool { return true }); len(all) > 0 {
					return fmt.Sprintf("class %d is on a machine of %s, and %s sells %v",
						cp.Class, p.Pools[n.Pool].Name, p.Pools[pool].Name, all[0].labels)
				}
			}
		}
	}
	return ""
}
