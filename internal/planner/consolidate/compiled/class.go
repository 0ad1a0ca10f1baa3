package compiled

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// Class is a class of pods: pending ones, or movable ones of all nodes.
type Class struct {
	// Size is what every pod takes in each dimension. It is nil for invalid classes.
	Size []int64
	// Shared are the disks that all pods of the class use together. Each takes a slot
	// once per node, in the dimension SharedDim of the same index.
	Shared    []model.Volume
	SharedDim []int
	HostPorts []model.HostPort
	// Levels are the states of the preferences, from all honoured to none. Invalid
	// classes have none.
	Levels []planner.PreparedLevel
	// FirstLevel is the number of Levels[0] among the levels of all classes.
	FirstLevel int32
	// Plain classes have no rule beyond Size and the sets of nodes and options of
	// their levels: no topology, no host ports, no shared disks.
	Plain bool
	// Invalid classes ask for something that no scheduler can grant.
	Invalid bool
	// EvictionUnits is what evicting one pod costs in Karpenter's unit, at least 0;
	// 0 for pending classes.
	EvictionUnits float64
	// Value is the shadow price of Size, in Money per hour.
	Value float64
	// SpotPools are the NodePools, by index in Planning.Pools, in which the pods may be on spot
	// nodes, whether any are left to buy or not. It is nil where none of them is on one now.
	SpotPools bitset.Set
}

// Shares reports whether pods of the class use something that they may have in common
// with other pods on a node: host ports or disks.
func (c *Class) Shares() bool { return len(c.HostPorts)+len(c.Shared) > 0 }

// LevelFor is the first level at which pods of the class may go to a node of an
// option (an index into Space.Options), or -1.
func (c *Class) LevelFor(option int) int {
	for l := range c.Levels {
		if c.Levels[l].Options.Has(option) {
			return l
		}
	}
	return -1
}

// LevelOn is the first level at which pods of the class may be on a node, the last
// level when they may not; -1 for invalid classes.
func (c *Class) LevelOn(node int) int8 {
	for l := range c.Levels {
		if c.Levels[l].Nodes.Has(node) {
			return int8(l)
		}
	}
	return int8(len(c.Levels) - 1)
}

// PodGroup is a number of pods of a class on a node.
type PodGroup struct {
	Class, Count int32
	// Level is the first of the class's levels which is so where the pods are: those of
	// their preferences that hold there are to hold where they move.
	Level int8
}

// Draw is a number of evictions that count against a PodDisruptionBudget, an index into
// Input.Budgets.
type Draw struct {
	Budget int
	Pods   int32
}

// Node is a node that exists, as something that could be removed.
type Node struct {
	// Price is Money per hour.
	Price model.Money
	// Pods are those of its movable pods that move when it goes, and Moving says which they are, in
	// the same order, that of NodeUsage.Pods. Evictions counts all movable ones, Staying those that
	// stay until the grace period of the node has ended, and move nowhere.
	Pods               []PodGroup
	Moving             []model.ClassPods
	Evictions, Staying int
	// Draws are what a drain of the node takes of PodDisruptionBudgets, each once: with its
	// movable pods and those of DaemonSets.
	Draws []Draw
	// EvictionUnits adds up the EvictionUnits of the pods.
	EvictionUnits float64
	// EvictionCost is what removing the node must save, in Money per hour:
	// EvictionUnits at Problem.EvictionPrice, and what the command that brought the
	// pods here was to save (NodeUsage.ExpectedSaving).
	EvictionCost float64
	// Policy indexes Input.Policies, -1 for a node of no NodePool.
	Policy int
	Spot   bool
	// Returns is what limits get back when the node is removed.
	Returns []feasible.Use
}

// draw adds evictions to Draws.
func (n *Node) draw(budgets []int, pods int) {
	for _, k := range budgets {
		at := slices.IndexFunc(n.Draws, func(d Draw) bool { return d.Budget == k })
		if at < 0 {
			at, n.Draws = len(n.Draws), append(n.Draws, Draw{Budget: k})
		}
		n.Draws[at].Pods += int32(pods)
	}
}

// Empty is Karpenter's notion: nothing on the node costs anything to evict. The node
// may still run pods.
func (n *Node) Empty() bool { return n.EvictionUnits == 0 }

// NodeOption is an offering in a NodePool that is worth buying.
type NodeOption struct {
	// Option is its index in Space.Options.
	Option int
	Price  model.Money
	// Net is what a new node of it has free for pods, DaemonSet pods deducted.
	Net []int64
	// Value is the shadow price of Net, at most Price. It is 0 for options that were
	// added by WithOptions.
	Value float64
	Spot  bool
}

// PoolTotals are the sums over all nodes of a NodePool against which the policy
// Balanced measures a command.
type PoolTotals struct {
	Price model.Money
	// Disruption is 1 per node plus its EvictionUnits.
	Disruption float64
}
