// Package decompose divides a problem into subproblems whose pods do not compete for the
// same NodePools and nodes, and makes one plan of their plans. Clusters with a NodePool for
// each tenant are such problems: compiled as a whole, every class of pods has a set over the
// options of all NodePools, so that work and memory grow with the square of the tenants.
//
//   - split.go: which pods depend on each other, and the subproblems
//   - relations.go: what makes pods depend on each other
//   - places.go: which NodePools and nodes may suit pods
//   - shapes.go: which running pods count for others
//   - merge.go: one plan of all
//   - supply.go: whether quotas, reservations and limits suffice for it
//   - alike.go: parts that differ in names alone, which have one plan
//   - common.go: pods that keep a problem from being divided, for a phase of their own
//   - after.go: the problem that a plan leaves
//   - disruption.go: the same for problems of consolidation
//
// See docs/planner.md, section "Independent parts".
package decompose
