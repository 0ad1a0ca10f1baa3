package fleet

import "github.com/nodeautoprovision/nap/internal/model"

// ofPool sums the capacity of a NodePool's nodes and counts them, as limits do: without those that
// leave, but with those that a command is to remove until they are deleted, for it may fail. What
// replaces these counts for what it exceeds them.
func (c *clusterNodes) ofPool(pool string, axes model.Axes) (model.Resources, int) {
	rest := held{usage: make(model.Resources, len(axes))}
	removed, replacing := map[string]*held{}, map[string]*held{}
	for _, n := range c.inPool(pool) {
		group := &rest
		switch command := n.removedBy(); {
		case command != "":
			group = heldBy(command, removed, axes)
		case n.state == model.NodeLeaving:
			continue
		case n.claim != nil && n.claim.Replaces != "":
			group = heldBy(n.claim.Replaces, replacing, axes)
		}
		n.capacity.addTo(group.usage, axes)
		group.nodes++
	}
	for command, r := range removed {
		rest.add(r.larger(replacing[command]))
		delete(replacing, command)
	}
	for _, r := range replacing {
		rest.add(r)
	}
	return rest.usage, rest.nodes
}

// removedBy is the id of the command that is to remove a node which still counts in limits: nothing
// is deleted of it yet. It is empty where there is none.
func (n *stateNode) removedBy() string {
	if n.claim == nil || n.claim.Command == nil || n.claim.Leaving || n.node != nil && n.node.Deleting {
		return ""
	}
	return n.claim.Command.ID
}

// held is what some nodes of a NodePool count for in its limits.
type held struct {
	usage model.Resources
	nodes int
}

// heldBy is what the nodes of a command count for, to be added to.
func heldBy(command string, of map[string]*held, axes model.Axes) *held {
	if of[command] == nil {
		of[command] = &held{usage: make(model.Resources, len(axes))}
	}
	return of[command]
}

// add adds what other nodes count for.
func (h *held) add(o *held) {
	for axis, v := range o.usage {
		h.usage[axis] = saturatingAdd(h.usage[axis], v)
	}
	h.nodes += o.nodes
}

// larger is the larger of what two groups of nodes count for, by axis; the other one may be nil.
func (h *held) larger(o *held) *held {
	if o == nil {
		return h
	}
	out := &held{usage: make(model.Resources, len(h.usage)), nodes: max(h.nodes, o.nodes)}
	for axis := range out.usage {
		out.usage[axis] = max(h.usage[axis], o.usage[axis])
	}
	return out
}

// hold states what each node that may be removed holds of the limits of its NodePool, as ofPool
// counts it. One that has its replacement gives nothing back: that takes its place.
func (a *assembly) hold(d *model.DisruptionProblem) {
	limited := map[string]bool{}
	for i := range d.Problem.Pools {
		limited[d.Problem.Pools[i].Name] = len(d.Problem.Pools[i].Limits) > 0 || d.Problem.Pools[i].NodeLimit >= 0
	}
	replaced := map[string]bool{} // by the id of the command
	for _, n := range a.nodes.list {
		if n.claim != nil && n.claim.Replaces != "" && n.state != model.NodeLeaving {
			replaced[n.claim.Replaces] = true
		}
	}
	for i, n := range a.nodes.list {
		if !limited[n.pool] || n.state == model.NodeLeaving || replaced[n.removedBy()] {
			continue
		}
		d.Usages[i].Held = make(model.Resources, len(d.Problem.Axes))
		n.capacity.addTo(d.Usages[i].Held, d.Problem.Axes)
	}
}
