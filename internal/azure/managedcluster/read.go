package managedcluster

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"
)

// Read asks Azure for a cluster. The error wraps Azure's own.
func Read(ctx context.Context, client *armcontainerservice.ManagedClustersClient, resourceGroup, name string) (Facts, error) {
	answer, err := client.Get(ctx, resourceGroup, name, nil)
	if err != nil {
		return Facts{}, fmt.Errorf("read AKS cluster %s of resource group %s: %w", name, resourceGroup, err)
	}
	text, err := json.Marshal(answer.ManagedCluster)
	if err != nil {
		return Facts{}, fmt.Errorf("read AKS cluster %s of resource group %s: %w", name, resourceGroup, err)
	}
	return Parse(text)
}
