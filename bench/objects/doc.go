// Package objects measures a controller on a large cluster that exists as objects alone: a
// real API server, scheduler and controller manager, a simulated Azure with the machines,
// and no kubelets. Its nodes are registered and initialized by the controller itself; this
// package plays their kubelets as far as they write Nodes and renew leases.
//
//   - fleet.go: what the cluster is made of
//   - pods.go: its pods
//   - kubelets.go: Nodes and leases
//   - measure.go: what is measured, in which order
//   - standby.go: what the second of two replicas needs
//   - record.go: what earlier runs have measured
//   - table.go: the tables, and how figures grow
package objects
