// Package planner decides what to buy and what goes where: [Solve] takes a
// [model.Problem] and returns a [model.Plan].
//
// It has no client, no logger and no global state. It imports the standard library,
// package model and its own subpackages alone, so that the same code serves the
// controller, the command line, tests and what-if questions. Time, seed and budget are
// inputs. Without a clock (model.Policy.Elapsed) the same problem gives the same plan,
// byte for byte, on any number of processors: budgets are then counted in steps. With a
// clock the plan also depends on how much could be tried in time.
//
// # The pipeline
//
//	feasible.New         every way to buy a node becomes a numbered option with known
//	                     labels; conditions become sets of options
//	instance.New         pods become classes with levels of preferences, each with its
//	                     sets of options and nodes and its topology rules; dominated
//	                     options are left out
//	portfolio.Search     constructs plans by several strategies, decides domain conflicts,
//	                     and keeps the best plan:
//	  construct          places classes, in order, on existing nodes, and assigns the
//	                     rest to topology domains or opens new nodes
//	  nodechoice         has the bin packer choose new nodes for what only size and rules
//	                     on hosts still tie down, and proves a bound in another goroutine
//	                     if the packer's problem is stricter than the rules
//	  lns                large neighbourhood search in small problems: for pods that
//	                     have no place, and for a lower price
//	domainconflict       drops offerings that would make the scheduler refuse pods of the
//	                     plan that are spread
//	offers.Plan          lists for each new node the offerings that hold its pods,
//	                     cheapest first
//	explain              says why the rest has no place
//
// Package placement is the partial plan that these share. Package consolidate decides
// which nodes to remove, and package verify checks plans against the rules, stated again.
//
// docs/planner.md explains the algorithm: the problem as an integer program, what is
// relaxed where, bounds, guarantees, and what each part earns.
package planner
