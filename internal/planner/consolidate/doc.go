// Package consolidate decides which nodes to remove: [Plan] takes a
// [model.DisruptionProblem] and returns [model.Commands], each of which deletes some
// nodes, or replaces any number of nodes by any number of cheaper ones. [Recheck] says
// whether a command that was decided earlier still stands.
//
// # Objective
//
// Plan minimizes, over the set R of nodes to remove, the set B of nodes to buy and the
// places of the pods of R,
//
//	sum of the prices of the nodes kept and of B
//	+ sum over R of the eviction cost of the node
//
// where the eviction cost of a node is what its evictions must save per hour: the units
// of its pods at EvictionPrice/Payback, and what the command that moved them there was
// to save. Every pod of R must have a place that the scheduler accepts. Limits, quotas,
// NodePool budgets, PodDisruptionBudgets, do-not-disrupt annotations, quiet times, the
// minimum saving of replacements, and that spot nodes alone give way to no on-demand one
// where spot is allowed, are constraints.
//
// # Stages
//
//	compile    the problem as vectors with shadow prices (compiled)
//	rules      which nodes may be removed, and which take pods in (eligibility)
//	pending    pending pods get their room first (pending.go)
//	forced     nodes that are unhealthy, expire or have drifted are emptied at any price, their
//	           replacements bought first (forced.go)
//	empty      nodes without pods that cost anything to evict are removed (builder.go)
//	search     the cheapest state is sought on states whose changes can be undone
//	           (search, state)
//	split      the difference is cut into parts that can be made alone (split.go)
//	commands   each part is made, checked against the terms and written down, so that
//	           all are feasible in their order (builder.go, terms.go, spread.go)
//	kept       every node that stays gets its reason (kept.go)
//
// # Guarantees
//
// The commands are feasible in their order under the rules that the planner knows, and
// each of them satisfies the terms by itself. A pod moves at most once in one answer,
// and a node that takes in pods is not removed by another command of the answer. The
// search is a heuristic: it proves nothing about the optimum, but [LowerBound] says how
// far at most the answer is from it.
//
// Like the planner that it builds on, the package is pure: time, budget and seed are in
// the problem. With Policy.Elapsed nil the same problem gives the same Commands on any
// machine; with a clock, how long the search goes on depends on the machine.
//
// See docs/planner.md, section "Consolidation".
package consolidate
