// Package feasible answers what may go where, before anything is decided about
// how many: it compiles a [model.Problem] into a [Space], in which every way to
// buy a machine is one numbered [Option] with all its labels known, and every
// condition on labels, taints or sizes is a set of options.
//
// An option is NodePool x instance type x choice of open labels x offering.
// Because its labels are determined, OR-ed affinity terms, NotIn, Gt and zones
// are exact: a class of pods may use exactly the options in the AND of its
// sets.
//
// [New] runs a compiler that exists only while it runs, and composes the result of parts.
// Each part has data of its own, and nothing changes any of them afterwards, so that any
// number of goroutines may read a space:
//
//	part             answers                                      built by
//	Dimensions       what a vector means, what a pod takes        newDimensions (dimensions.go)
//	Options, Pools   what may be bought, from which NodePool      compiler (compile.go), which reads
//	                                                              catalogues (catalog.go) and what a
//	                                                              pool says of labels (template.go)
//	DaemonSets       what daemons take of an option               compiler (compile.go)
//	LabelIndex       values of labels, masks of requirements      labelCompiler (labelcompiler.go)
//	CapacityIndex    options with at least so much of a dimension newCapacityIndex (capacity.go)
//	Supply           what is sold, limits, quotas, reservations   supplyCompiler (supply.go)
//
// Where NodePools sell very many offerings, those are left out that no plan needs (prune.go);
// [Space.Whole] has them all.
//
// Two things that change have owners of their own: a [Ledger] belongs to a plan and keeps
// what it leaves of the supply, and [bitset.Interned] belong to an instance and number the
// masks of its classes.
//
// The rules stand in one list ([Constraints]). Each rule is a value: its reason, the
// part of a pod on which it depends, the options and nodes that it leaves, and the
// figures of a miss. Everything else derives from the list: the masks of planning
// ([Space.Allowed], [Space.AllowedNodes]), the keys under which masks are shared
// ([Space.AppendKey]), and the counts and the nearest miss of an explanation
// ([Space.Checks]).
//
// See docs/planner.md, section "Constraints and masks".
package feasible
