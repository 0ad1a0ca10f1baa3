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
// The rules stand in one list ([Constraints]). Each rule is a value: its reason, the
// part of a pod on which it depends, the options and nodes that it leaves, and the
// figures of a miss. Everything else derives from the list: the masks of planning
// ([Space.Allowed], [Space.AllowedNodes]), the keys under which masks are shared
// ([Space.AppendKey]), and the counts and the nearest miss of an explanation
// ([Space.Checks]).
//
// See docs/planner.md, section "Constraints and masks".
package feasible
