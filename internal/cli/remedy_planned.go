package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// afterPlan is the problem that a plan leaves, without pods to plan: its machines stand there
// with the pods that it puts on them, and what they take of limits and quotas is used. What
// they take of capacity reservations is not.
func afterPlan(from *model.Problem, plan *model.Plan) *model.Problem {
	p := *from
	p.Pools, p.Nodes, p.Quotas = slices.Clone(p.Pools), slices.Clone(p.Nodes), slices.Clone(p.Quotas)
	p.Shapes = slices.Clone(p.Shapes)
	shapes := len(p.Shapes)
	for i := range from.Classes {
		p.Shapes = append(p.Shapes, from.Classes[i].PodShape)
	}
	p.Classes = nil
	settle := func(n *model.Node, pods []model.ClassPods) {
		n.Bound, n.HostPorts, n.Attached = slices.Clone(n.Bound), slices.Clone(n.HostPorts), slices.Clone(n.Attached)
		n.VolumeSlots = maps.Clone(n.VolumeSlots)
		for _, held := range pods {
			holdPods(n, &from.Classes[held.Class], shapes+held.Class, len(held.Pods))
		}
	}
	for _, placed := range plan.Placements {
		settle(&p.Nodes[placed.Node], placed.Pods)
	}
	for i := range plan.NewNodes {
		n := boughtNode(from, plan, i)
		book(&p, &plan.NewNodes[i])
		settle(&n, plan.NewNodes[i].Pods)
		p.Nodes = append(p.Nodes, n)
	}
	return &p
}

// holdPods puts pods of a class, whose shape has a number in the problem, on a node.
func holdPods(n *model.Node, class *model.PodClass, shape, pods int) {
	for range pods {
		n.Used = n.Used.Add(class.Requests)
	}
	n.Bound = append(n.Bound, model.BoundPods{Shape: shape, Count: pods})
	n.HostPorts = append(n.HostPorts, class.HostPorts...)
	for _, v := range class.Volumes {
		if slices.Contains(n.Attached, v) {
			continue
		}
		n.Attached = append(n.Attached, v)
		if free, limited := n.VolumeSlots[v.Driver]; limited {
			n.VolumeSlots[v.Driver] = max(0, free-1)
		}
	}
}

// boughtNode is a machine of a plan as the node that it becomes, without its pods.
func boughtNode(p *model.Problem, plan *model.Plan, i int) model.Node {
	bought := &plan.NewNodes[i]
	pool := &p.Pools[bought.Pool]
	t := &p.Catalogs[pool.Catalog].InstanceTypes[bought.Best().InstanceType]
	o := &t.Offerings[bought.Best().Offering]
	n := model.Node{
		Name: fmt.Sprintf("%s of the plan, machine %d", pool.Name, i), Pool: pool.Name, State: model.NodeLaunching,
		Taints: pool.Taints, Allocatable: t.Allocatable(), Used: bought.Daemons, VolumeSlots: t.VolumeSlots, Price: bought.Best().Price,
		Labels: maps.Clone(pool.Labels),
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	maps.Copy(n.Labels, t.Labels)
	for _, r := range bought.Requirements {
		if r.Operator == model.In && len(r.Values) == 1 {
			n.Labels[r.Key] = r.Values[0]
		}
	}
	n.Labels[model.LabelInstanceType], n.Labels[model.LabelCapacityType] = t.Name, string(o.CapacityType)
	n.Labels[model.LabelNodePool], n.Labels[model.LabelHostname] = pool.Name, n.Name
	if o.Zone != "" {
		n.Labels[model.LabelZone] = o.Zone
	}
	maps.Copy(n.Labels, o.Labels)
	return n
}

// book takes a machine of the plan from the limits of its NodePool and from quotas.
func book(p *model.Problem, bought *model.NewNode) {
	pool := &p.Pools[bought.Pool]
	t := &p.Catalogs[pool.Catalog].InstanceTypes[bought.Best().InstanceType]
	pool.Usage = pool.Usage.Add(t.Capacity)
	pool.Nodes++
	pool.Cost += bought.Best().Price
	for _, use := range t.Offerings[bought.Best().Offering].Quotas {
		for i := range p.Quotas {
			if p.Quotas[i].Name == use.Quota {
				p.Quotas[i].Left -= use.Amount
			}
		}
	}
}
