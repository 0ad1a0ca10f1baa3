// Package planner decides what to buy and what goes where: [Solve] takes a
// [model.Problem] and returns a [model.Plan].
//
// It is pure: no clock, no client, no logger, no global state. The same problem
// gives the same plan, byte for byte; time, seed and budget are inputs. It
// imports the standard library, package model and its own subpackages alone, so
// that the same code serves the controller, the command line, tests and
// what-if questions.
//
// # The way of a problem
//
//	feasible.New       every way to buy a machine becomes a numbered option with
//	                   known labels; conditions become sets of options
//	compile            pods become classes with levels of preferences, each with
//	                   its set of options and nodes
//	topology.Compile   rules of topology, and counters of pods per domain
//	placer             puts classes, count by count, on nodes that exist, and
//	                   assigns the rest to topology domains or machines to buy
//	binpack.Solve         decides which machines to buy for what only size and
//	                   per-machine rules still tie down, near the optimum
//	mender             empties some places of a small plan and fills them again in
//	                   other orders: for pods that wait, and for a lower price
//	ruling             decides, and plans again, where a machine bought for some
//	                   would make the scheduler refuse others that are spread
//	binpack.Bound         proves a floor under the cost where the packer's problem was
//	                   stricter than the rules
//	finish             picks for every machine the offerings that would hold the
//	                   same pods, cheapest first
//	explain            says why the rest could not be placed
package planner
