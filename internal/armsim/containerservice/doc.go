// Package containerservice is the simulated Microsoft.ContainerService: the managed
// cluster, its agent pools, and the AKS machine API with its batches.
//
// A machine of an agent pool is a document in front of a VM and a network interface,
// which are made with the providers of compute and network. The end of the VM's
// creation is carried over to the machine, and the machine goes with its VM. The
// machines that an agent pool has from the start have no VM behind them.
package containerservice
