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
//	catalogs := kube.ProviderCatalogs{Provider: cloudProvider, Reader: mgr.GetClient()}
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
// What an object gets wrong is kept in its record (PodSpec.Invalid,
// Pool.Invalid) with field, value and what is allowed, so that it is refused by
// name while the rest is planned. No object, however broken, panics.
package kube
