// Package metrics defines what nap's own loops count and measure. Where Karpenter
// has a metric for the same thing, that one is written too, so that dashboards made
// for Karpenter keep working.
//
//   - provisioning.go: plans and the NodeClaims that come of them
//   - scheduling.go: the pods that a plan is made for, by zone, and its time so far
//   - consolidation.go: budgets, scores and second looks, in Karpenter's metrics
//   - disruption.go: decisions about the whole fleet and what became of commands
//   - boots.go: machines that did not become nodes
//   - offerings.go: what the offerings of nodes and of the last plan cost
//   - build.go: what the program was built from
//   - register.go: registration, shared by two controllers in one process
//
// Metrics are safe for concurrent use. Karpenter's own are global in Karpenter.
package metrics
