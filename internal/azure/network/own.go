package network

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
)

// ownSubnetName is how AKS names the subnet of the networks that it makes.
const ownSubnetName = "aks-subnet"

// OwnSubnet is the id of the subnet that AKS made for a cluster in its node resource
// group; empty where there is none, because the cluster is in a network of the user's
// own.
func OwnSubnet(ctx context.Context, vnets *armnetwork.VirtualNetworksClient, nodeResourceGroup string) (string, error) {
	for pager := vnets.NewListPager(nodeResourceGroup, nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return "", fmt.Errorf("list the virtual networks of resource group %s: %w", nodeResourceGroup, err)
		}
		for _, v := range page.Value {
			if v == nil || v.Name == nil || !managedVNET.MatchString(*v.Name) || v.Properties == nil {
				continue
			}
			for _, s := range v.Properties.Subnets {
				if s != nil && s.Name != nil && s.ID != nil && *s.Name == ownSubnetName {
					return *s.ID, nil
				}
			}
		}
	}
	return "", nil
}
