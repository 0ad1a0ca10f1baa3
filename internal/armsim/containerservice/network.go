package containerservice

import (
	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// Networks are the names of the networks that a cluster can have, the usual one first:
// Azure CNI with an overlay or with pods in the subnet of the nodes, each with the data
// plane of Azure or of Cilium, and none of AKS's own (bring your own CNI).
func Networks() []string {
	return []string{"overlay-cilium", "overlay", "subnet", "subnet-cilium", "byo"}
}

// Outbounds are the ways in which nodes reach the internet, the usual one first.
func Outbounds() []string { return []string{"loadBalancer", "natGateway", "udr", "none"} }

// OutboundType is how AKS names one of Outbounds.
func OutboundType(outbound string) string {
	switch outbound {
	case "natGateway":
		return "managedNATGateway"
	case "udr":
		return "userDefinedRouting"
	default:
		return outbound
	}
}

// Cilium says whether Cilium's agent runs on the nodes of a network.
func Cilium(network string) bool { return network == "overlay-cilium" || network == "subnet-cilium" }

// networkProfile is what AKS tells of a network (Microsoft.ContainerService, NetworkProfile).
func networkProfile(network, outbound string) arm.Document {
	const pods, services = "192.168.0.0/16", "10.0.0.0/16"
	doc := arm.Document{
		"networkPlugin": "azure", "networkPolicy": "none", "networkDataplane": "azure",
		"loadBalancerSku": "standard", "serviceCidr": services, "serviceCidrs": []any{services}, "dnsServiceIP": "10.0.0.10",
		"outboundType": OutboundType(outbound), "ipFamilies": []any{"IPv4"},
	}
	switch network {
	case "overlay", "overlay-cilium":
		doc["networkPluginMode"] = "overlay"
		doc["podCidr"], doc["podCidrs"] = pods, []any{pods}
	case "byo":
		doc["networkPlugin"] = "none"
		delete(doc, "networkDataplane")
	}
	if Cilium(network) {
		doc["networkPolicy"], doc["networkDataplane"] = "cilium", "cilium"
	}
	if outbound == "natGateway" {
		doc["natGatewayProfile"] = arm.Document{
			"managedOutboundIPProfile": arm.Document{"count": 1}, "idleTimeoutInMinutes": 4,
		}
	}
	return doc
}

// bootstrapProfile says where machines get their programs from: without a way out, from a
// registry that AKS keeps in the network.
func bootstrapProfile(registry, outbound string) arm.Document {
	if outbound == "none" {
		return arm.Document{"artifactSource": "Cache", "containerRegistryId": registry}
	}
	return arm.Document{"artifactSource": "Direct"}
}
