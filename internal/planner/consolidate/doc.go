// Package consolidate decides which machines to give back: [Plan] takes a
// [model.DisruptionProblem] and returns [model.Commands], each of which deletes some nodes, or
// replaces any number of nodes by any number of cheaper ones; [Recheck] says
// whether a move that was decided earlier still stands.
//
// Like the planner that it builds on it is pure: time, budget and seed are in
// the Fleet, and the same Fleet gives the same Moves.
//
// # The way of a fleet
//
//	survey     compiles the fleet (site.go) and says of every node whether it
//	           may be given back and whether it may take in pods (guard.go)
//	waiting    pods that wait get their room first (waiting.go)
//	forced     nodes that expire or have drifted are emptied, whatever that
//	           costs, their replacements first (forced.go)
//	search     looks for the cheapest fleet that holds the same pods, counting
//	           what evictions cost (search.go): sets of nodes are shut on a
//	           board (board.go), their pods housed in the room of the others or
//	           on machines bought for them (shop.go), and all of it is taken
//	           back when it does not pay. It begins with the better of what
//	           giving nodes up one by one comes to and of what the planner
//	           would do with all pods of the nodes that are not worth their
//	           price (design.go). What budgets do not allow at once is first
//	           sought without them, and then a part of it is made (seek.go)
//	parcel     cuts the difference between the fleet as it is and as it should
//	           be into moves that stand alone, each of which pays for itself
//	           (parcel.go), and makes them one after the other to see that they
//	           are feasible in that order (moves.go)
//	stays      says of every node that is kept why (stays.go)
//
// A pod moves at most once in all moves of one answer, and a node that takes in
// pods is not given back by another move of the same answer.
package consolidate
