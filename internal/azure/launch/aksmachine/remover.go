package aksmachine

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// Remover removes machines of any agent pool by the virtual machines behind them. A [Launcher]
// knows those of its own pool, by the names that it gives them; it does not know a machine of
// another pool, of a time when machines were made in another way, or with a name that another
// controller gave it.
type Remover struct {
	vms    *armcompute.VirtualMachinesClient
	pools  *armcontainerservice.AgentPoolsClient
	config *config.Config
}

// NewRemover returns a remover of the machines of a cluster.
func NewRemover(vms *armcompute.VirtualMachinesClient, pools *armcontainerservice.AgentPoolsClient, c *config.Config) *Remover {
	return &Remover{vms, pools, c}
}

// Delete starts the removal of the machine behind a claim's provider id. Call it until it gives
// [launch.ErrNotFound]: then Azure has no such virtual machine any more. It is the answer for
// virtual machines that are not of an agent pool's machines, too. The error is
// [launch.ErrForeign] where the tags are those of another claim or cluster.
func (r *Remover) Delete(ctx context.Context, claim, providerID string) error {
	pool, name, ok := launch.PoolAndMachineOfVM(providerID)
	if !ok {
		return launch.ErrNotFound
	}
	vm := providerID[strings.LastIndexByte(providerID, '/')+1:]
	answer, err := r.vms.Get(ctx, r.config.NodeResourceGroup, vm, nil)
	if launch.Status(err) == http.StatusNotFound {
		return launch.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("read virtual machine %s: %w", vm, err)
	}
	tags := launch.Values(answer.Tags)
	if other(tags[launch.TagCluster], r.config.ClusterName) || other(tags[launch.TagClaim], claim) {
		return fmt.Errorf("%w: virtual machine %s has the tags %s=%s and %s=%s, and NodeClaim %s is of cluster %s", launch.ErrForeign,
			vm, launch.TagCluster, tags[launch.TagCluster], launch.TagClaim, tags[launch.TagClaim], claim, r.config.ClusterName)
	}
	if answer.Properties != nil && launch.StateOf(launch.Value(answer.Properties.ProvisioningState)) == launch.Deleting {
		return nil
	}
	if r.config.ResourceGroup == "" {
		return fmt.Errorf("AKS machine %s of agent pool %s is there and cannot be deleted: set ARM_RESOURCE_GROUP, the cluster's resource group",
			name, pool)
	}
	_, err = r.pools.BeginDeleteMachines(ctx, r.config.ResourceGroup, r.config.ClusterName, pool,
		armcontainerservice.AgentPoolDeleteMachinesParameter{MachineNames: []*string{to.Ptr(name)}}, nil)
	if err != nil {
		return fmt.Errorf("delete AKS machine %s of agent pool %s, whose virtual machine %s is there: %w", name, pool, vm, err)
	}
	return nil
}

// other reports whether a tag has another value; without a tag nothing is known.
func other(tag, want string) bool { return tag != "" && tag != want }
