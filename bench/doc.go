// Package bench measures nap's planner side by side with Karpenter's scheduler:
// one process, one run, the same objects. Package workload holds what they are
// measured on, package upstream runs Karpenter, package differential compares
// the two on thousands of small clusters, and cmd/bench prints the table.
//
// # What is measured
//
// Time runs from Kubernetes objects in memory to a finished plan, for both: for
// nap that is reading every object, stating the problem and solving it, for
// Karpenter counting the topology and its scheduling pass (its informers' work
// is not counted). Catalogues are ready in both engines' own form. nap's figures
// are medians of several runs; Karpenter runs once.
//
// Allocations are those of one run. The peak heap is what a run adds to the heap
// at most, sampled in a run of its own for nap, so that sampling disturbs no
// time. Every plan of nap is judged by the independent checker, outside of the
// timed part: all of its places, prices and limits, and up to 5,000 pods its
// topology; a plan that breaks a rule is an error.
//
// Costs are compared with the lower bound that nap's plan carries. It holds for
// the pods that nap places, so for Karpenter only where it places the same.
package bench
