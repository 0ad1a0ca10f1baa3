// Package kube is the only converter between Kubernetes objects and nap's
// vocabulary: objects become the records of package fleet, and instance types of
// any Karpenter provider, or of a catalogue file, become what can be bought.
//
// Start with [Mirror]: Apply and Delete write single objects to a fleet.Store,
// Feed lets the informers of a controller-runtime cache do it.
//
// # Intended use in the controller
//
//	store := fleet.NewStore()
//	mirror := kube.NewMirror(store, kube.Settings{})
//	if err := mirror.Feed(ctx, mgr.GetCache()); err != nil { ... }
//	input, err := store.Snapshot().Problem(ctx, catalogs, fleet.Options{...})
//
// A NodeClaim that the controller has just created counts at once with
//
//	store.Expect(mirror.Claim(nodeClaim))
//
// # What planning sees
//
// Conversion keeps what the scheduler looks at and nothing else. Pods of one
// template share one fleet.PodSpec: a pod is first read into a compact key of
// its scheduling fields, and only an unknown key is converted. Labels that mean
// the same under several names get the stable one ([NormalizeLabel]).
//
// # Where it differs from Karpenter, on purpose
//
//   - A pod may name a host, or a node by matchFields: it goes there if there is
//     room and gets no new machine. Karpenter ignores such pods.
//   - A volume of one host keeps its pod there as long as the host stays.
//     Karpenter drops the host and buys machines on which the pod cannot run.
//   - Volumes in different places are refused with the names of both claims.
//     Karpenter plans with their contradictory requirements.
//   - Host ports of sidecars count.
//   - Devices of resource claims are counted; pods with claims that counting does not
//     cover are refused.
//   - A claim that is not launched is capacity: with the least room of all
//     offerings that it allows, and with the cheapest of them against the limits
//     of its NodePool.
//   - A node that has not its DaemonSets' pods yet keeps room for each of them,
//     by DaemonSet rather than by the difference of sums.
//
// What an object gets wrong is kept in its record (PodSpec.Invalid,
// Pool.Invalid) with field, value and what is allowed, so that it is refused by
// name while the rest is planned. No object, however broken, panics.
package kube
