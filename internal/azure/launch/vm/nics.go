package vm

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// OrphanNICs lists the claims of network interfaces of the cluster that have no
// machine. Some of them belong to machines that are about to be made.
func OrphanNICs(ctx context.Context, client *armnetwork.InterfacesClient, resourceGroup, cluster string) ([]string, error) {
	var claims []string
	for pager := client.NewListPager(resourceGroup, nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the network interfaces of resource group %s: %w", resourceGroup, err)
		}
		for _, nic := range page.Value {
			if nic == nil || nic.Name == nil || nic.Properties == nil || nic.Properties.VirtualMachine != nil {
				continue
			}
			tags := launch.Values(nic.Tags)
			if claim, ok := launch.ClaimOf(*nic.Name); ok && tags[launch.TagCluster] == cluster && tags[launch.TagClaim] == "" {
				claims = append(claims, claim)
			}
		}
	}
	return claims, nil
}
