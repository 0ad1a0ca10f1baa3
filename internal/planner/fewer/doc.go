// Package fewer replaces machines that a plan buys by fewer ones where that costs next to
// nothing: a last step after the search, which moves the pods of two new nodes together.
//
//	where     the catalogue of the NodePool says what a node costs beside its machine
//	how much  up to [model.NearTie] of the plan's cost, as long as the plan stays near its
//	          bound; nothing where no bound is proven
//	which     the pairs whose joint machine costs least more, time after time; no machine
//	          costs over [model.LeastSplit] more than those that it stands for
//
// Places are joined only where every rule is met without a look at the order of pods: both
// nodes and the joint one are in the same domains of all keys but the host, and on the host
// each pod may be the last that comes. So the scheduler admits the pods in the order in
// which it would have admitted them before.
//
// The step reads no clock, and its work is bounded, so that equal plans end alike.
//
// See docs/planner.md, section "Fewer machines".
package fewer
