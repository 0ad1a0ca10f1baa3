// Package pack decides which bins to buy for a set of counted items: it is
// variable-size vector bin packing, with nothing of pods or machines in it.
//
// A [Problem] has classes of identical items and types of bins; [Solve] returns
// patterns (a bin type, how many of each class go in, how often to buy it), what
// could not be placed, the cost, and a lower bound that no packing of the same
// items can beat. The package is pure: no clock, no global state, no
// randomness but the seed. It plans classes, not items, so a class of ten
// thousand costs no more than a class of ten.
//
// # Method
//
// Solve runs one deterministic trajectory and stops anywhere on it. The best
// packing so far is always at hand, so more budget is never worse.
//
//  1. reduce.go merges indistinguishable classes and drops bin types that
//     another one beats in every respect.
//  2. dual.go prices the resources: the fluid relaxation, in which items are
//     liquids, is a linear program with one row per dimension (and compatibility
//     signature); its dual prices say what a unit of each resource is worth.
//  3. greedy.go opens bins of the types that are tight under these prices, fills
//     each with the items best aligned with what is left in it (fill.go), keeps
//     the filling with the most dual value per dollar, and re-prices as the
//     demand shrinks. This is the first feasible packing, in milliseconds.
//
// # Why the bound can be trusted
//
// bound.go never relies on the linear program having been solved: for any
// prices y per item and μ per unit of a limited resource, weak duality gives
//
//	cost >= Σ y·count - Σ μ·limit - Σ over limited types Max·max(0, V(type) - cost - μ·use)
//
// as long as no unlimited type can hold items worth more than it costs, where
// V(type) is at least the value of the best filling of that type. V is computed
// by a relaxation of the knapsack that over-estimates; prices that violate the
// condition are scaled down until they meet it (Farley 1990; Lasdon 1970 for
// the limited types). Rounding goes down, except where integrality proves that
// it may go up.
package pack
