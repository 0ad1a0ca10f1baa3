package vm

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// LooseNICs lists the network interfaces of a resource group that have no machine, each with
// its name. Some of them belong to machines that are about to be made.
func LooseNICs(ctx context.Context, client *armnetwork.InterfacesClient, resourceGroup string) ([]*armnetwork.Interface, error) {
	var loose []*armnetwork.Interface
	for pager := client.NewListPager(resourceGroup, nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the network interfaces of resource group %s: %w", resourceGroup, err)
		}
		for _, nic := range page.Value {
			if nic != nil && nic.Name != nil && nic.Properties != nil && nic.Properties.VirtualMachine == nil {
				loose = append(loose, nic)
			}
		}
	}
	return loose, nil
}

// OrphanClaims are the claims of those of the loose interfaces that are the cluster's.
func OrphanClaims(loose []*armnetwork.Interface, cluster string) []string {
	var claims []string
	for _, nic := range loose {
		tags := launch.Values(nic.Tags)
		if claim, ok := launch.ClaimOf(*nic.Name); ok && tags[launch.TagCluster] == cluster && tags[launch.TagClaim] == "" {
			claims = append(claims, claim)
		}
	}
	return claims
}
