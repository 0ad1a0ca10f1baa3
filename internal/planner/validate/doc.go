// Package validate refuses what is malformed in a problem, by field, value and what is allowed:
// NodePools, instance types, offerings and classes of pods, each by itself, so that one of them
// spoils no other. Packages feasible and instance leave out what it refuses.
//
// See docs/planner.md, section "The pipeline".
package validate
