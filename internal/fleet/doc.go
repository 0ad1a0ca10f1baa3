// Package fleet mirrors a cluster: events go in, immutable revisioned snapshots
// come out. It decides nothing and knows no Kubernetes type; package kube turns
// objects into the records that are stored here.
//
// # Use by a controller
//
//	store := fleet.NewStore()
//	mirror := kube.NewMirror(store, kube.Settings{})
//	err := mirror.Feed(ctx, manager.GetCache())      // informers write to the store
//	...
//	snapshot := store.Snapshot()                     // cheap; never changes
//	input, err := snapshot.Problem(ctx, catalogs, fleet.Options{Policy: policy, Now: now})
//	plan := planner.Solve(input.Problem)
//	for _, n := range plan.NewNodes {
//		refs := input.Pods(n.Pods)                   // which pods go there
//		...write the NodeClaim...
//		store.Expect(claim)                          // counts as capacity at once
//	}
//	for _, r := range input.Rejected { ... }         // pods that cannot be planned, and why
//	for _, p := range input.Problem.LeftOut { ... }          // pools that buy nothing, and why
//
// [Store.Revision] grows with every change. A claim that was created but is not
// observed yet is an expectation ([Store.Expect]); it vanishes when the informer
// delivers the claim, or by [Store.Forget].
//
// # Use without a cluster
//
// The same calls with mirror.Apply(object) instead of Feed serve nap plan, the
// tests and the dashboard's what-if.
//
// # How pods become classes
//
// Pods that nothing in the problem can tell apart become one model.PodClass:
// labels and namespaces count only where some affinity or spread term speaks of
// them. Therefore a class can hold pods of several workloads; [Input.Owner]
// tells whose a pod is.
package fleet
