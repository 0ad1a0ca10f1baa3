// Package provision turns pods that wait into NodeClaims: nap's own provisioning
// loop.
//
// One round of [Loop] is a straight line:
//
//	triggers ──> Batch ──> snapshot ──> problem ──> Solve ──> verify ──> NodeClaims
//	 trigger.go  batch.go   fleet        fleet      planner   verify.go  create.go
//
// and what it did is told by report.go: events on pods, Karpenter's mirror of
// the cluster, metrics, logs.
//
// # When a batch closes
//
// A batch opens with the first trigger and closes at the earliest of
//
//   - complete: every pod that the owners of the new pods still have to create
//     has been seen, and the scheduler has judged every pod (see [Roster]);
//   - idle: no new trigger for the idle duration (1 s);
//   - max: the maximum duration (10 s) has passed.
//
// # Never bought twice
//
// A claim counts as capacity from the moment in which it is created, long before
// the informers deliver it: the fleet's store expects it. Its name is chosen here
// and not by the API server, so that a create whose answer was lost can be asked
// for again without a second machine. Nothing else is remembered: after a restart
// the claims themselves say what is on its way.
//
// A claim that is slow to launch blocks nobody, since it is a place like any
// other. When it dies, its pods are still waiting and the next round places them
// elsewhere.
package provision
