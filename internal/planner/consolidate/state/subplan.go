package state

import "slices"

// SubPlan is nodes to remove, nodes to buy, and where the pods go: all that a search
// ended with, or a part of it that can be made without the rest.
type SubPlan struct {
	// Nodes are removed, as indices, sorted.
	Nodes     []int32
	Purchases []Purchase
	// Assignments are the pods that move to nodes which exist.
	Assignments []Assignment
}

// Purchase is a new node with its pods.
type Purchase struct {
	// Option indexes the problem's Options.
	Option int32
	Pods   []Relocated
}

// Assignment is pods that move to a bin.
type Assignment struct {
	Bin int32
	Relocated
}

// First is the first node of a sub-plan, -1 when it removes none.
func (p *SubPlan) First() int32 {
	if len(p.Nodes) == 0 {
		return -1
	}
	return p.Nodes[0]
}

// Difference is how the state differs from the one in which it began: what the log
// has changed.
func (s *State) Difference() *SubPlan {
	out := &SubPlan{}
	for at := range s.log {
		if c := &s.log[at]; c.Kind == Removed && s.Bins.IsNode(c.Bin) {
			out.Nodes = append(out.Nodes, c.Bin)
		}
	}
	slices.Sort(out.Nodes)
	for i := range int32(s.Bins.Len()) {
		bin := s.Bins.At(i)
		switch {
		case bin.Removed || len(bin.Pods) == 0:
		case s.Bins.IsNode(i):
			for _, r := range bin.Pods {
				out.Assignments = append(out.Assignments, Assignment{i, r})
			}
		case !bin.Frozen:
			out.Purchases = append(out.Purchases, Purchase{bin.Option, slices.Clone(bin.Pods)})
		}
	}
	return out
}
