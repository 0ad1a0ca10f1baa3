// Package maintenance knows when machines may be replaced for a newer node image:
// in the cluster's maintenance window aksManagedNodeOSUpgradeSchedule, where its
// owner has set one.
//
//	schedule of the cluster in Azure ─┐
//	                                  ├─> Window ── Open(now) ──> may they be replaced, and until when does that hold
//	ConfigMap of AKS, its next window ┘
//
// The package is pure: it reads no clock and makes no calls.
package maintenance
