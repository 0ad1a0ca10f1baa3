// Package metrics defines what nap's own loops count and measure. Where Karpenter
// has a metric for the same thing, that one is written too, so that dashboards made
// for Karpenter keep working.
//
//   - provisioning.go: plans and the NodeClaims that come of them
//   - disruption.go: decisions about the whole fleet and what became of commands
//   - boots.go: machines that did not become nodes
//   - register.go: registration, shared by two controllers in one process
//
// Metrics are safe for concurrent use. Karpenter's own are global in Karpenter.
package metrics
