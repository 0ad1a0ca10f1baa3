// Package purchasebackoff stops purchases that lead to nothing.
//
// A machine that is bought for a pod and that the pod then does not use would be
// bought again and again: the plan sees the same pod and the same offering. Whatever the
// cause is, known or not, the same mechanism ends it. A [Breaker] counts per key how
// many purchases in a row have failed, and makes the next one wait for longer each
// time; from a certain failure on, single purchases probe whether the cause is gone.
// The first success forgets everything. The keys are
//
//   - a workload, which is the owner of pods together with what planning reads of
//     their template: a purchase fails when machines are there, or gone, and none of
//     its pods runs on them ([Purchases]); the virtual pods of a CapacityBuffer are a
//     workload, too, and a plan that has room for them stands for a pod that runs;
//   - an AKSNodeClass with the versions of its image and of Kubernetes: a purchase
//     fails when its machine does not register as a node ([Registrations]).
//
// Sizes and zones that Azure refuses rest in package azure/unavailable. A [Ceiling]
// bounds what is bought at all.
//
// What is known survives a restart: a NodeClaim carries the workloads that it was
// bought for, and a [Store] writes down what the breakers know.
//
//   - breaker.go, store.go: the mechanism, and how it is written down
//   - purchases.go, workload.go: what was bought for which workload, and what became of it
//   - landings.go: which purchases led to a running pod
//   - room.go: which purchases led to room for the virtual pods of a CapacityBuffer
//   - forgiven.go: purchases whose outcome says nothing about the workload
//   - rounds.go: how often in a row a plan is made again because of refusals
//   - differences.go: how a node differs from what was promised
//   - sizes.go: machines that come smaller than promised
//   - registrations.go: machines that do not register
//   - guard.go: the cloud, which holds back NodeClaims that no plan made
//   - ceiling.go: how many machines may be bought
//   - loop.go: conditions of NodePools and AKSNodeClasses, events, metrics
package purchasebackoff
