// Package state is the cluster as it would be after some commands: which nodes are
// removed, which new nodes are bought, and where the pods of removed nodes go.
//
//	State          what is removed, bought and placed, with its price; every change
//	               is written to a log and can be undone
//	Bins           nodes and new nodes with their free capacity
//	Unplaced       the pods of removed nodes which have no place yet
//	Budgets        what removals take of PodDisruptionBudgets and NodePool budgets
//	CapacityIndex  the bins that may take in pods, summarized in blocks
//	Placer         finds places for unplaced pods on the bins that there are
//	Buyer          buys new nodes for the unplaced pods that the Placer leaves
//	SubPlan        a part of a state that can be taken from one and built in another
//
// A set of nodes is evaluated by changing a state and undoing that, so no evaluation
// copies anything. See docs/planner.md, section "Consolidation".
package state
