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
// The checks run in one fixed order ([Checks]), each with its
// [model.Reason]; planning uses their conjunction and explanation counts what
// each removed.
package feasible
