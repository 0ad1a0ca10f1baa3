package azure

import (
	"errors"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch/aksmachine"
	"github.com/nodeautoprovision/nap/internal/azure/launch/vm"
	"github.com/nodeautoprovision/nap/internal/azure/network"
)

// clients are the SDK clients of one subscription.
type clients struct {
	skus    *armcompute.ResourceSKUsClient
	usage   *armcompute.UsageClient
	images  *armcompute.CommunityGalleryImageVersionsClient
	network network.Clients
	vms     vm.Clients
	// diskSets reads in the cluster's subscription, where its keys are too.
	diskSets *armcompute.DiskEncryptionSetsClient

	maintenance *armcontainerservice.MaintenanceConfigurationsClient
	clusters    *armcontainerservice.ManagedClustersClient
	pools       *armcontainerservice.AgentPoolsClient
	aks         aksmachine.Clients // empty without AKS machines, be it to come
}

// newClients makes them. auxiliary, where set, goes with virtual machines.
func newClients(c *config.Config, credential azcore.TokenCredential, options *arm.ClientOptions, auxiliary policy.Policy) (clients, error) {
	subscription := c.SubscriptionID
	// A network of one's own may be in another subscription than the cluster.
	subnet, err := network.ParseSubnet(c.VNETSubnetID)
	if err != nil {
		return clients{}, fmt.Errorf("VNET_SUBNET_ID: %w", err)
	}
	compute, err1 := armcompute.NewClientFactory(subscription, credential, options)
	net, err2 := armnetwork.NewClientFactory(subscription, credential, options)
	aks, err3 := armcontainerservice.NewClientFactory(subscription, credential, options)
	vnets, err4 := armnetwork.NewClientFactory(subnet.Subscription, credential, options)
	forVMs := *options
	if auxiliary != nil {
		forVMs.PerCallPolicies = append(slices.Clone(options.PerCallPolicies), auxiliary)
	}
	vms, err5 := armcompute.NewVirtualMachinesClient(subscription, credential, &forVMs)
	lists, err6 := vm.NewLists(subscription, c.NodeResourceGroup, credential, options)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return clients{}, err
	}
	out := clients{
		skus:     compute.NewResourceSKUsClient(),
		usage:    compute.NewUsageClient(),
		diskSets: compute.NewDiskEncryptionSetsClient(),
		images:   compute.NewCommunityGalleryImageVersionsClient(),

		maintenance: aks.NewMaintenanceConfigurationsClient(),
		clusters:    aks.NewManagedClustersClient(),
		pools:       aks.NewAgentPoolsClient(),
		network: network.Clients{
			VNETs: vnets.NewVirtualNetworksClient(), Subnets: vnets.NewSubnetsClient(),
			LoadBalancers: net.NewLoadBalancersClient(), Groups: net.NewSecurityGroupsClient(),
		},
		vms: vm.Clients{
			Lists: lists, Machines: vms, Extensions: compute.NewVirtualMachineExtensionsClient(), NICs: net.NewInterfacesClient(),
		},
	}
	if !c.HasAKSMachines() && !config.AwaitsMachineAPI(c) {
		return out, nil
	}
	machines, err := aksmachine.NewMachineClient(c.PoolID(), credential, options)
	out.aks = aksmachine.Clients{Machines: machines, Pools: out.pools, VMs: out.vms.Machines}
	return out, err
}
