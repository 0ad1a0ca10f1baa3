// Package bootstrap writes what a plain virtual machine is told so that it becomes a
// node of an AKS cluster.
//
//	Cluster, Node ── New ──> Config ── CustomData ──> custom data of the machine
//	                                   Extension  ──> how Azure learns whether the boot worked
//
// Every node image of AKS carries a program, aks-node-controller, that reads one
// document of type AKSNodeConfig and makes everything else from it: the
// configuration of containerd, azure.json, the kubeconfig, drivers of GPUs.
// [Config] is that document, version v1, with the field names and the names of enum
// values of its published definition (Azure/AgentBaker,
// aks-node-controller/proto/aksnodeconfig/v1). [New] is strict: what is missing or
// cannot be right is refused by the name of the contract's field.
//
// The package is pure: values in, values out. It reads no environment, speaks to no
// cloud, and holds no number that planning knows too; reserved resources and eviction
// thresholds come in with [Node].
package bootstrap
