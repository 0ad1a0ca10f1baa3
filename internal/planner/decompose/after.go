package decompose

import (
	"fmt"
	"maps"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// After is the problem that a plan leaves, without pods to plan: its machines stand behind the
// nodes, in the order of the plan, each as its best offering with the pods that the plan puts on
// it, and what they take of limits, quotas and capacity reservations is used. The shapes of the problem's classes are behind its shapes.
func After(from *model.Problem, plan *model.Plan) *model.Problem {
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
		book(&p, &plan.NewNodes[i], 1)
		settle(&n, plan.NewNodes[i].Pods)
		p.Nodes = append(p.Nodes, n)
	}
	reserve(&p, from, plan.NewNodes, 1)
	return &p
}

// holdPods puts pods of a class, whose shape has a number in the problem, on a node.
func holdPods(n *model.Node, class *model.PodClass, shape, pods int) {
	requests := class.Requests
	if requests.Get(model.Pods) == 0 {
		requests = requests.Add(model.Resources{model.Pods: 1})
	}
	for range pods {
		n.Used = n.Used.Add(requests)
	}
	n.Bound = append(n.Bound, model.BoundPods{Shape: shape, Count: pods})
	n.HostPorts = append(n.HostPorts, class.HostPorts...)
	for i, v := range class.Volumes {
		disks := pods // one of its own for each pod
		if v.ID != "" {
			disks = 1
			if slices.Contains(n.Attached, v) {
				continue
			}
			n.Attached = append(n.Attached, v)
		} else if slices.Contains(class.Volumes[:i], v) {
			continue
		}
		if free, limited := n.VolumeSlots[v.Driver]; limited {
			n.VolumeSlots[v.Driver] = max(0, free-disks)
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
	for i := range pool.Daemons { // all of them: which run on it is of no account
		n.HostPorts = append(n.HostPorts, pool.Daemons[i].HostPorts...)
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	maps.Copy(n.Labels, t.Labels)
	for _, r := range slices.Concat(pool.Requirements, bought.Requirements) {
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

// book takes a machine of a plan from the limits of its NodePool and from quotas, or gives it back
// where times is -1.
func book(p *model.Problem, bought *model.NewNode, times int) {
	pool := &p.Pools[bought.Pool]
	t := &p.Catalogs[pool.Catalog].InstanceTypes[bought.Best().InstanceType]
	capacity := t.Capacity
	if times < 0 {
		capacity = model.Resources(nil).Sub(capacity)
	}
	pool.Usage = pool.Usage.Add(capacity)
	pool.Nodes += times
	pool.Cost += bought.Best().Price * model.Money(times)
	for _, use := range t.Offerings[bought.Best().Offering].Quotas {
		for i := range p.Quotas {
			if p.Quotas[i].Name == use.Quota {
				p.Quotas[i].Left -= use.Amount * int64(times)
			}
		}
	}
}

// reserve takes machines of a problem's plan so many times from the reservations that they are of,
// in another one with the same catalogues, which it copies where that changes them.
func reserve(p, from *model.Problem, machines []model.NewNode, times int) {
	used := map[string]int{}
	for i := range machines {
		of := machines[i].Best()
		o := &from.Catalogs[from.Pools[machines[i].Pool].Catalog].InstanceTypes[of.InstanceType].Offerings[of.Offering]
		if o.CapacityType == model.Reserved && o.Reservation != "" {
			used[o.Reservation] += times
		}
	}
	if len(used) == 0 {
		return
	}
	p.Catalogs = slices.Clone(p.Catalogs)
	for c := range p.Catalogs {
		p.Catalogs[c].InstanceTypes = slices.Clone(p.Catalogs[c].InstanceTypes)
		for t := range p.Catalogs[c].InstanceTypes {
			it := &p.Catalogs[c].InstanceTypes[t]
			it.Offerings = slices.Clone(it.Offerings)
			for i := range it.Offerings {
				it.Offerings[i].Remaining = max(0, it.Offerings[i].Remaining-used[it.Offerings[i].Reservation])
			}
		}
	}
}

// Alone is the problem of one machine of a plan: its NodePool, the classes of its pods in their
// order, and what the other machines leave of limits, quotas and reservations. Behind these classes
// are those of the phase whose topology terms select some of its pods: the machine has to stay in
// its domains for them. After is the problem that the plan leaves ([After]), from the one that it
// is a plan of.
func (t *Part) Alone(from, after *model.Problem, machine *model.NewNode) *model.Problem {
	p := *after
	p.Pools, p.Quotas = slices.Clone(p.Pools), slices.Clone(p.Quotas)
	book(&p, machine, -1)
	reserve(&p, after, []model.NewNode{*machine}, -1)
	p.Pools, p.Nodes, p.Classes = p.Pools[machine.Pool:machine.Pool+1], nil, nil
	for _, pods := range machine.Pods {
		p.Classes = append(p.Classes, from.Classes[pods.Class])
	}
	for _, c := range t.classes {
		if !slices.ContainsFunc(machine.Pods, func(pods model.ClassPods) bool { return pods.Class == c }) &&
			selects(&from.Classes[c], p.Classes[:len(machine.Pods)]) {
			p.Classes = append(p.Classes, from.Classes[c])
		}
	}
	return &p
}

// selects reports whether topology terms of a class select pods of others.
func selects(class *model.PodClass, others []model.PodClass) (found bool) {
	eachTerm(class, func(t *model.AffinityTerm) {
		found = found || slices.ContainsFunc(others, func(o model.PodClass) bool { return t.Selects(o.Namespace, o.Labels) })
	})
	return found
}
