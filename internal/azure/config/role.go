package config

import "strings"

// ActionCreatePool is what nap needs besides Actions with NAP_CREATE_MACHINES_POOL, on
// the cluster: with it nap could change the cluster's other agent pools, too.
const ActionCreatePool = "Microsoft.ContainerService/managedClusters/agentPools/write"

// ActionReadFeature reads whether a preview feature is registered. The controller does so
// when it looks at the prerequisites.
const ActionReadFeature = "Microsoft.Features/providers/features/read"

// Actions are the Azure actions that nap needs, and no more: give them to its
// identity as a custom role. Those of Microsoft.Compute/skus, of locations and of preview
// features are asked of the subscription, those of the cluster and its agent pool of the cluster, those of a
// network, a disk encryption set, identities and image galleries of your own of
// themselves; everything else of the node resource group.
func Actions() []string {
	return []string{
		// What is sold, how much of it is left, and the images.
		"Microsoft.Compute/skus/read",
		"Microsoft.Compute/locations/usages/read",
		"Microsoft.Compute/locations/placementScores/generate/action", // with NAP_PLACEMENT_SCORES
		"Microsoft.Compute/locations/communityGalleries/images/versions/read",
		// Whether the preview feature is registered that managed GPUs need.
		ActionReadFeature,
		"Microsoft.ContainerService/managedClusters/maintenanceConfigurations/read",
		// What the cluster tells of itself.
		"Microsoft.ContainerService/managedClusters/read",
		// Machines.
		"Microsoft.Compute/virtualMachines/read",
		"Microsoft.Compute/virtualMachines/write",
		"Microsoft.Compute/virtualMachines/delete",
		"Microsoft.Compute/virtualMachines/restart/action", // with the feature gate NodeRepair
		"Microsoft.Compute/virtualMachines/instanceView/read",
		"Microsoft.Compute/virtualMachines/extensions/read",
		"Microsoft.Compute/virtualMachines/extensions/write",
		// The last lines of the console of a machine that says nothing else.
		"Microsoft.Compute/virtualMachines/retrieveBootDiagnosticsData/action",
		// The disk of a machine goes with it.
		"Microsoft.Compute/disks/delete",
		// The keys of their disks, with NODE_OSDISK_DISKENCRYPTIONSET_ID.
		"Microsoft.Compute/diskEncryptionSets/read",
		// What they are, with NODE_IDENTITIES, and what they boot from, with USE_SIG.
		"Microsoft.ManagedIdentity/userAssignedIdentities/assign/action",
		"Microsoft.Compute/galleries/images/versions/read",
		// Network interfaces, and what they join.
		"Microsoft.Network/networkInterfaces/read",
		"Microsoft.Network/networkInterfaces/write",
		"Microsoft.Network/networkInterfaces/delete",
		"Microsoft.Network/networkInterfaces/join/action",
		"Microsoft.Network/virtualNetworks/read", // without VNET_GUID, or without VNET_SUBNET_ID
		"Microsoft.Network/virtualNetworks/subnets/read",
		"Microsoft.Network/virtualNetworks/subnets/join/action",
		"Microsoft.Network/loadBalancers/read",
		"Microsoft.Network/loadBalancers/backendAddressPools/join/action",
		"Microsoft.Network/networkSecurityGroups/read",
		"Microsoft.Network/networkSecurityGroups/join/action",
		// Machines of an AKS agent pool, and the images of AKS's shared galleries.
		"Microsoft.ContainerService/managedClusters/agentPools/machines/read",
		"Microsoft.ContainerService/managedClusters/agentPools/machines/write",
		"Microsoft.ContainerService/managedClusters/agentPools/deleteMachines/action",
		"Microsoft.ContainerService/locations/nodeImageVersions/read",
	}
}

// OfSubscription reports whether an action of Actions is asked of the subscription: it is
// about what Azure sells and lets the subscription have, and not about the cluster.
func OfSubscription(action string) bool {
	return action == "Microsoft.Compute/skus/read" || action == ActionReadFeature || strings.Contains(action, "/locations/")
}
