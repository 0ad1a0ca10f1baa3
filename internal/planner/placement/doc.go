// Package placement holds a partial plan: which pods are on which places, what is
// left of the places and of the limits, and how many pods are in which topology
// domain.
//
// A [State] grows by [State.Put] and [State.Buy], each of which keeps every rule if
// the caller asked before ([State.RoomOn], [topology.Counts.Room], the ledger). The
// order of the steps is therefore an order in which a scheduler could admit the pods.
//
// [State.Fork] is the one way to try something: the fork is independent, and a
// caller that keeps the original has undone the trial. Forks share a cache of label keys, so
// that they stay in one goroutine; [State.Detach] is a fork for another one.
//
// See docs/planner.md, section "Construction".
package placement
