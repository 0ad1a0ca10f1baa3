// Package snapshot publishes what the controller knows and decides, as objects: a
// Snapshot that is small enough to be looked at, and shards with all of it, compressed.
// Commands read the same objects ([Read]), so that they say what the controller says, and
// a controller that starts takes from them what it must not forget ([Source]).
//
// There is one writer, the leader. It writes when something has changed, at most every
// five seconds: first a set of shards that the Snapshot does not name, then the Snapshot,
// which names them by their digest. A reader therefore never sees a mixture, and a crash
// leaves the earlier snapshot whole.
//
// See docs/snapshot.md.
package snapshot
