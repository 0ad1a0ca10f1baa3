// Package instance compiles a problem for planning: classes of pods with the levels
// of their preferences, the options that no other option dominates, and the
// pools' minValues.
//
// An [Instance] never changes after [New], so that the search for a plan, the proof
// of its bound and its explanation may read one instance at the same time.
//
// # Levels
//
// A preference is a requirement that the planner may give up. A [Class] has one
// [Level] for every state: at the first all preferences are requirements, and each
// further one gives up one more, pod affinity first and PreferNoSchedule taints
// last. A pod is placed at the first level at which it finds a place.
//
// # Dominance
//
// A catalogue has thousands of options. [Instance.Undominated] keeps those worth
// buying: if no rule of the problem tells two options apart and one is at least as
// large in every dimension and not dearer, the other is left out.
//
// See docs/planner.md, section "Instance".
package instance
