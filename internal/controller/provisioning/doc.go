// Package provisioning turns pods that wait into NodeClaims: nap's own provisioning
// loop.
//
// One round of [Loop] is a straight line:
//
//	triggers ──> Batch ──> snapshot ──> problem ──> Solve ──> verify ──> NodeClaims
//	 triggers.go batch.go   fleet        inputs.go  planner   verify.go  apply.go
//
// and what it did is told by report.go: events on pods, Karpenter's mirror of
// the cluster, metrics, logs.
//
// # When a batch closes
//
// A batch opens with the first trigger and closes at the earliest of
//
//   - complete: it is known which pods the owners of the new pods still have to
//     create (see [Completeness]), and no further owner has joined for 200 ms, or the
//     first one did 1 s ago; and none of them replaces another one, or has lost a pod
//     that ran within the idle duration;
//   - idle: no new trigger for the idle duration (1 s);
//   - max: the maximum duration (10 s) has passed.
//
// A batch of pods that the scheduler has not looked at yet is dropped when it has found
// places for all of them meanwhile.
//
// # Pods that do not exist yet
//
// The snapshot announces the pods that owners are about to create: the plan has places
// for them, and when they come they take these over (reservations.go). Before a claim is
// written it is looked at what the owner wants now (verify.go). While they are
// announced they count as pending for disruption as well, so that nothing with room for
// them goes (fleet/workload.go, fleet/creating.go). A place that was planned for a pod to come is
// only for one of the same spec (exchanges.go).
//
// # Never bought twice
//
// A claim counts as capacity from the moment in which it is created, long before
// the informers deliver it: the fleet's store expects it. Its name is chosen here
// and not by the API server, so that a create whose answer was lost can be asked
// for again without a second machine. Nothing else is remembered: after a restart
// the claims themselves say what is on its way.
//
// A claim that is slow to launch blocks no pod, since it is a place like any
// other. When it dies, its pods are still waiting and the next round places them
// elsewhere.
//
// # While machines come up
//
// The scheduler binds pods in an order of its own, so pods seldom land exactly
// where the plan put them. Until a machine is there and the scheduler has come to
// rest, the pods that have a place on it are not planned again and their room is
// kept (reservations.go). A pod whose room another of its kind has taken has the room that
// this one has left (exchanges.go). What is left over then is planned at once. So that they do
// land there, pods are nominated for their node once it has registered, the largest
// first (nominees.go, nominations.go).
//
//   - batch.go, expectedpods.go, losses.go, owners.go, startingowners.go: when a batch closes
//   - triggers.go: what opens one
//   - endings.go: claims that end without a machine end together
//   - loop.go: the rounds
//   - inputs.go, unjudged.go: what a plan is made on
//   - draft.go and package nodeclaims: a planned node as a NodeClaim
//   - verify.go, apply.go, expectedclaims.go: each claim is created once, if it still holds
//   - reservations.go, exchanges.go: pods that have a place on a node that is on its way
//   - nominees.go, nominations.go: the scheduler is told of those places
//   - backoff.go, misfit.go: pods whose last purchases came to nothing, and why
//   - uninitialized.go: nodes that do not become able to run pods
//   - report.go and package metrics: what is reported, and where
package provisioning
