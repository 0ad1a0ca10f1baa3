package vm

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// behind reads the virtual machine behind an AKS machine of nap's that no other launcher reads: it
// is of another agent pool, or AKS machines are not looked after. Such a machine is paid for as any
// other, and has its NodeClaim; unlisted, the claim would be taken for one without a machine. False
// for all others.
func behind(c *config.Config, vm *armcompute.VirtualMachine) (launch.Machine, bool) {
	if vm == nil || vm.Name == nil || vm.Properties == nil {
		return launch.Machine{}, false
	}
	pool, _, ok := launch.PoolAndMachineOfVM(*vm.Name)
	if !ok || c.HasAKSMachines() && strings.EqualFold(pool, c.MachinesPool) {
		return launch.Machine{}, false
	}
	tags := launch.Values(vm.Tags)
	if tags[launch.TagCluster] != c.ClusterName || tags[launch.TagClaim] == "" {
		return launch.Machine{}, false
	}
	m := described(vm, tags)
	m.Claim, m.AKS = tags[launch.TagClaim], true
	m.ProviderID = launch.ProviderIDOf("/subscriptions/" + c.SubscriptionID + "/resourceGroups/" + c.NodeResourceGroup +
		"/providers/Microsoft.Compute/virtualMachines/" + *vm.Name)
	if m.State != launch.Deleting {
		m.State = launch.Succeeded // AKS alone sees to its making, and nothing here follows it
	}
	return m, true
}

// findBehind is Find for the name of a virtual machine that AKS made.
func findBehind(ctx context.Context, c *config.Config, machines *armcompute.VirtualMachinesClient, name string) (launch.Machine, error) {
	answer, err := machines.Get(ctx, c.NodeResourceGroup, name, nil)
	if launch.Status(err) == http.StatusNotFound {
		return launch.Machine{}, launch.ErrNotFound
	}
	if err != nil {
		return launch.Machine{}, fmt.Errorf("read virtual machine %s: %w", name, err)
	}
	m, ours := behind(c, &answer.VirtualMachine)
	if !ours {
		return launch.Machine{}, fmt.Errorf("%w: virtual machine %s is not behind an AKS machine of nap's with the tags %s=%s and %s",
			launch.ErrForeign, name, launch.TagCluster, c.ClusterName, launch.TagClaim)
	}
	return m, nil
}
