// Package noderules answers which NodePools and nodes may suit a class of pods by taints and
// labels alone, without anything compiled: [Rules] are what the class asks, [CloudLabels] knows
// which labels are the cloud's to give. Where an answer would take more, it is yes.
//
// Package decompose divides problems by it, and package feasible leaves NodePools out.
//
// See docs/planner.md, section "Independent parts".
package noderules
