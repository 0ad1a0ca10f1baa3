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
