// Package fleets measures how nodes are consolidated: nap's whole-fleet
// decisions beside Karpenter's consolidation methods, on the same fragmented
// fleets, in the same process.
//
// A fleet is made of objects ([Draw]); an engine answers, what it answers is
// made at once ([Cluster]), and it is asked again until it proposes nothing:
//
//	draw ──> answer ──> make it ──> answer ──> … ──> converged
//
// Only the time of the answers counts: neither launching nor draining, nor the 15
// seconds for which Karpenter validates each of its commands. Start with [Run].
package fleets
