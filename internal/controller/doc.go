// Package controller is nap's body: the process that stands between the API
// server and the cloud. It wires, and leaves the work to one folder per verb:
//
//	upstream   Karpenter's lifecycle controllers, assembled on our manager
//	provision  pending pods in, NodeClaims out (engine nap)
//	nodeclass  the AKSNodeClass's status, hash and termination
//	garbage    machines and network interfaces that no NodeClaim has
//	preflight  whether the cluster can be worked with, before anything starts
//	rbac       the permissions that all of this needs
//
// Start with [Run].
package controller
