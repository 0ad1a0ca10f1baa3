// Package offers turns a partial plan into a [model.Plan]: for every node to be
// bought it lists all offerings that would hold the same pods, cheapest first, and
// the requirements that a NodeClaim needs to get one of them. [Alternatives.RightSize]
// uses the same index to plan each node as the cheapest option that holds its pods.
//
// See docs/planner.md, section "The pipeline".
package offers
