// Package explain says why pods cannot be scheduled: [Explainer] counts, for a
// class of pods, what each check removed from each NodePool and finds the
// nearest miss; [Describe] and [Line] put the result into words for a terminal and
// for an event.
//
// All words about reasons come from the model's closed set of reasons, so that
// a user who has read one message knows them all.
//
// See docs/planner.md, section "Explanation and verification".
package explain
