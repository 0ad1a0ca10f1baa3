// Package exact packs problems of a few items at least cost.
//
// It counts over the items left, by class: with f(n) the least cost of bins that hold the
// items n, and c(x) the cost of the cheapest bin that holds the items x,
//
//	f(0) = 0
//	f(n) = min over 0 < x <= n of c(x) + f(n-x)
//
// which is dynamic programming (Bellman 1957) over Π(count+1) states. One bin must hold an
// item of the last class of n that has any left, so that fillings without one need no look.
//
// See docs/planner.md, section "New nodes by bin packing".
package exact
