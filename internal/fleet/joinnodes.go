package fleet

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// clusterNodes are the nodes of a snapshot.
type clusterNodes struct {
	// list is sorted by name.
	list []*stateNode
	// byNode finds the nodes with a Node object, by its name.
	byNode map[string]*stateNode
	// byName finds a node by its name and by its claim's; nil until the method
	// named needs it.
	byName map[string]*stateNode
	// byPool are the nodes of NodePools, by name; nil until the method inPool needs it.
	byPool map[string][]*stateNode
}

// joinNodes brings Nodes and NodeClaims together, by node name and provider ID or owner, and
// describes each.
func joinNodes(s *Snapshot, d *nodeDescriber) *clusterNodes {
	machines := joinMachines(s)
	c := &clusterNodes{byNode: make(map[string]*stateNode, len(s.nodes)), list: make([]*stateNode, len(machines))}
	for i := range machines {
		n := &machines[i]
		d.describe(n)
		c.list[i] = n
		if n.node != nil {
			c.byNode[n.node.Name] = n
		}
	}
	slices.SortFunc(c.list, func(x, y *stateNode) int { return cmp.Compare(x.name, y.name) })
	d.catalogs.cover(c.list)
	return c
}

// joinMachines are the machines of a snapshot, in no order: each has its Node and its
// NodeClaim, as far as they are there, and nothing else. A Node has one NodeClaim, of several
// that say to be its own the first by name: the others are no machines.
func joinMachines(s *Snapshot) []stateNode {
	out, at := make([]stateNode, 0, max(len(s.nodes), len(s.claims)+len(s.expected))), make(map[*Node]int, len(s.nodes))
	find := nodeFinder{nodes: s.nodes}
	for _, claims := range []map[string]*Claim{s.claims, s.expected} {
		for _, claim := range claims {
			node := find.of(claim)
			if node == nil {
				out = append(out, stateNode{claim: claim})
				continue
			}
			if i, taken := at[node]; !taken {
				at[node] = len(out)
				out = append(out, stateNode{node: node, claim: claim})
			} else if claim.Name < out[i].claim.Name {
				out[i].claim = claim
			}
		}
	}
	if len(at) < len(s.nodes) {
		for _, node := range s.nodes {
			if _, taken := at[node]; !taken {
				out = append(out, stateNode{node: node})
			}
		}
	}
	return out
}

// nodeFinder finds the Nodes of NodeClaims. Its indexes are nil until one is needed: most
// NodeClaims name their Node.
type nodeFinder struct {
	nodes map[string]*Node
	// byProvider is by provider ID in lower case: Azure's identifiers mean the same in any case,
	// and its components do not agree on one. byOwner is by the name of the NodeClaim.
	byProvider, byOwner map[string]*Node
}

// of returns the Node of a NodeClaim, or nil: the one with its provider ID, else the one that
// it names, else the one that it owns. The owner stands for a NodeClaim that is seen later
// than its Node: both would count otherwise, with room for twice the pods.
func (f *nodeFinder) of(claim *Claim) *Node {
	named := f.nodes[claim.NodeName]
	if named != nil && strings.EqualFold(named.ProviderID, claim.ProviderID) {
		return named
	}
	if claim.ProviderID != "" {
		if n := f.withProvider(claim.ProviderID); n != nil {
			return n
		}
	}
	if named != nil {
		return named
	}
	return f.ownedBy(claim.Name)
}

func (f *nodeFinder) withProvider(id string) *Node {
	if f.byProvider == nil {
		f.byProvider = make(map[string]*Node, len(f.nodes))
		for _, n := range f.nodes {
			f.byProvider[strings.ToLower(n.ProviderID)] = n
		}
	}
	return f.byProvider[strings.ToLower(id)]
}

func (f *nodeFinder) ownedBy(claim string) *Node {
	if f.byOwner == nil {
		f.byOwner = make(map[string]*Node, len(f.nodes))
		for _, n := range f.nodes {
			f.byOwner[n.Claim] = n
		}
	}
	return f.byOwner[claim]
}

// named returns the node with this name, or whose claim has it, or nil.
func (c *clusterNodes) named(name string) *stateNode {
	if c.byName == nil {
		c.byName = map[string]*stateNode{}
		for _, n := range c.list {
			c.byName[n.name] = n
			if n.claim != nil {
				c.byName[n.claim.Name] = n
			}
		}
	}
	return c.byName[name]
}

// hostStays reports whether a node with this hostname is there and does not leave.
func (c *clusterNodes) hostStays(host string) bool {
	return slices.ContainsFunc(c.list, func(n *stateNode) bool {
		return n.labels[model.LabelHostname] == host && n.state != model.NodeLeaving
	})
}

// inPool are the nodes of a NodePool, by name.
func (c *clusterNodes) inPool(pool string) []*stateNode {
	if c.byPool == nil {
		c.byPool = map[string][]*stateNode{}
		for _, n := range c.list {
			c.byPool[n.pool] = append(c.byPool[n.pool], n)
		}
	}
	return c.byPool[pool]
}

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
