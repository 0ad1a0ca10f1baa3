// Package karpenterengine runs the scheduler of sigs.k8s.io/karpenter, unchanged, on
// the objects of a workload, so that nap can be measured and checked against it.
//
// [New] does what the caches of a running controller have done before a
// scheduling pass begins; [Scheduler.Solve] is the pass itself:
//
//	s, err := karpenterengine.New(ctx, input, karpenterengine.Options{})
//	result, err := s.Solve(ctx)
//
// The scheduler leaves the choice of an offering to the provider; the cost here
// is that of the cheapest offering that each of its NodeClaims allows.
package karpenterengine
