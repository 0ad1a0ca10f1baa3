// Package construct makes the first packing: it opens one bin after the other,
// fills each by the prices of package bound, and buys the filling with the most
// value per dollar as often as the mix of what is left allows.
//
// openbin.go keeps one bin while it is filled, candidates.go chooses its next item,
// fill.go fills it, fillings.go remembers fillings while the prices last.
// greedy.go is the loop, opening.go decides what to open next, cappedgroup.go looks after
// items that need a bin each or nearly so, ration.go packs by priority where limits
// leave items out, twobuilders.go divides very many classes among two workers.
//
// See docs/planner.md, section "First packing".
package construct
