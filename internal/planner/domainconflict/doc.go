// Package domainconflict finds conflicts between topology spread and the domains in
// which nodes are bought for other pods.
//
// The scheduler counts a node for a spread constraint although the constraint's pods
// cannot use it, for example because of their size. Once such a node is bought in a
// further domain, the scheduler refuses pods of the constraint beyond maxSkew over the
// pods in that domain:
//
//	web spreads over z1 and z2, where its size is sold; job is cheapest in z3
//	  shut     z3: job goes to z1 or z2 and no pod waits
//	  counted  z3: job goes there, and web stays at maxSkew pods per zone
//
// A [placement.Decision] shuts options or lets spread constraints count domains. Package
// portfolio decides; this package says where there is something to decide.
//
// See docs/planner.md, section "Topology".
package domainconflict
