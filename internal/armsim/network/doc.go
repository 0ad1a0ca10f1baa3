// Package network is the simulated Microsoft.Network: network interfaces, subnets
// and their addresses, and the network that AKS makes for a cluster.
//
// Interfaces keep a state besides their documents (attached, reserved, their
// addresses); everything else is documents. Machines use interfaces through
// Attachable, Reserve, Attach and Detach of [Provider].
package network
