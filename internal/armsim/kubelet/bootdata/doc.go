// Package bootdata knows what a simulated machine does with its custom data, which is
// what the node images of AKS do: cloud-init and its boothook (package cloudinit), the
// program that reads AKSNodeConfig (package nodeconfig), the provisioning scripts that end
// with an exit code, and the start of the kubelet (package kubeletflags). It is written from
// the public sources of these images, https://github.com/Azure/AgentBaker, and shares
// nothing with what writes custom data.
//
// [Read] goes to the point at which the scripts look for the API server, which is the
// business of the machine; [Data.StartKubelet] goes on from there; [End] is what the
// extension that waits for the end is told. Two refusals are stricter than those of a real
// machine: a configuration that every user of the machine may read, and a kubelet that
// serves every client on the network.
//
// [AKSNode] writes custom data as AKS does for the machines that it boots itself.
package bootdata
