// Package binpack decides which bins to buy for a set of counted items: it is
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
//  1. reduce.go and merge.go merge indistinguishable classes and drop bin types that
//     another one beats in every respect. Where many are left that differ little but
//     in size, [reduced.Shortlist] picks some for the steps that look at all.
//  2. Package bound prices the resources: the fluid relaxation, in which items are
//     liquids, is a linear program with one row per dimension and group of classes
//     that fit the same bins; its dual prices say what a unit of each is worth.
//  3. It sharpens the prices, one vector per bin type, by a multiplicative ascent,
//     which knows which items are too large for which bins and how many of them may
//     share one. That comes near the dual of the linear program over all fillings of
//     bins (Gilmore and Gomory 1961) at a small part of its cost.
//  4. Package construct opens bins of the types that these prices send most of the
//     demand to, fills each with the items best aligned with what is left in it,
//     keeps the filling with the most dual value per dollar, and prices again as the
//     demand shrinks. When limits leave items out, it packs again by priority. This
//     is the first feasible packing, in milliseconds.
//  5. With a budget, package exact finds the best packing of a few items, which ends it.
//  6. Otherwise the prices and the bound are sharpened, on a longer shortlist and
//     in small problems by generating the fillings that matter.
//  7. Package localsearch moves items between bins until some fit in cheaper ones.
//  8. It takes a few bins apart and packs their items again, cheaper, for as long as
//     there is time: ruin and recreate, guided by the same prices and allowed to
//     stray a little.
//
// Steps 6 and 7 run at the same time. Where nothing runs out, two workers share the
// bins of steps 7 and 8, which are partitioned again time and again, and where there
// are very many classes the classes of step 4.
//
// # Why the bound can be trusted
//
// Package bound never relies on a program having been solved to the end: for any
// prices y per item and μ per unit of a limited resource, weak duality gives
//
//	cost >= Σ y·count - Σ μ·limit - Σ over limited types Max·max(0, V(type) - cost - μ·use)
//
// as long as no unlimited type can hold items worth more than it costs, where
// V(type) is at least the value of the best filling of that type (and the cost
// counts μ·use). V is computed by a relaxation of the knapsack that can only
// over-estimate; prices that violate the condition are scaled down
// until they meet it (Farley 1990; Lasdon 1970 for the limited types). Two
// arguments from integrality join it: items that cannot share a bin need one
// each, and every cost is a multiple of the greatest common divisor of all.
//
// What the bound does not know, but in small problems with a budget, is how
// awkwardly whole items fit together. Where bins hold only a handful of items it
// may stay one to three percent below the optimum; with many items per bin it is
// within a few tenths.
//
// See docs/planner.md, section "New nodes by bin packing".
package binpack
