// Package meter says when a search has to stop: after a number of steps, which is
// the same on every machine, or when a clock that the caller gives passes its
// budget.
//
// See docs/planner.md, section "Guarantees".
package meter
