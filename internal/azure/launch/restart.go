package launch

import (
	"context"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
)

// Restart reboots a virtual machine (Virtual Machines - Restart), and returns once Azure has
// accepted: that it boots is seen on its node. The error is ErrNotFound when there is none.
// Azure knows no key for the request, so a machine of which the answer was lost may be
// restarted twice.
func Restart(ctx context.Context, machines *armcompute.VirtualMachinesClient, group, name string) error {
	_, err := machines.BeginRestart(ctx, group, name, nil)
	switch {
	case Status(err) == http.StatusNotFound:
		return ErrNotFound
	case err != nil:
		return fmt.Errorf("restart virtual machine %s: %w", name, err)
	}
	return nil
}
