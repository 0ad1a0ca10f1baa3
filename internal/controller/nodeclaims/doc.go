// Package nodeclaims writes planned nodes as NodeClaims, for provisioning and for
// disruption alike.
//
// Start with [NewWriter]. A NodeClaim that it writes holds everything that
// Karpenter's lifecycle controllers and the cloud provider read:
//
//   - writer.go: the claim from the template of its NodePool
//   - requirements.go: the requirements and labels, and what can be bought
//   - headroom.go: alternatives only as far as the limits of the NodePool allow
//   - minvalues.go: as many values as minValues asks for, or a lower minValues
//   - annotation.go: why this offering was chosen
//   - create.go: what an error of a create leaves open
package nodeclaims
