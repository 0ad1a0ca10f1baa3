package vm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

// Update gives the virtual machine, its interface and its extensions the
// tags that they would be made with today, and the machine the identities that it
// lacks. What is right already is not written. Identities are only ever added:
// something on the machine may use one that is no longer configured.
func (v *Launcher) Update(ctx context.Context, m launch.Machine, class *nodeclass.NodeClass) error {
	name, group := launch.ResourceName(m.Claim), v.config.NodeResourceGroup
	want := launch.TagsOf(v.config, launch.NodeSpec{Pool: m.Pool, Class: class})
	answer, err := v.clients.Machines.Get(ctx, group, name, nil)
	if launch.Status(err) == http.StatusNotFound {
		return launch.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("read virtual machine %s: %w", name, err)
	}
	patch, changed := armcompute.VirtualMachineUpdate{}, false
	if !maps.Equal(launch.Values(answer.Tags), want) {
		patch.Tags, changed = pointers(want), true
	}
	if missing := missingIdentities(answer.Identity, v.config.NodeIdentities); len(missing) > 0 {
		patch.Identity, changed = &armcompute.VirtualMachineIdentity{
			Type: to.Ptr(armcompute.ResourceIdentityTypeUserAssigned), UserAssignedIdentities: missing,
		}, true
	}
	var errs []error
	if changed {
		if _, err := v.clients.Machines.BeginUpdate(ctx, group, name, patch, nil); err != nil {
			errs = append(errs, fmt.Errorf("update virtual machine %s: %w", name, err))
		}
	}
	for _, extension := range v.extensions() {
		e := extensionOf(&answer.VirtualMachine, extension)
		if e == nil || maps.Equal(launch.Values(e.Tags), want) {
			continue
		}
		if _, err := v.clients.Extensions.BeginUpdate(ctx, group, name, extension,
			armcompute.VirtualMachineExtensionUpdate{Tags: pointers(want)}, nil); err != nil {
			errs = append(errs, fmt.Errorf("update extension %s of virtual machine %s: %w", extension, name, err))
		}
	}
	return errors.Join(append(errs, v.tagNIC(ctx, name, want))...)
}

// tagNIC gives an interface its tags.
func (v *Launcher) tagNIC(ctx context.Context, name string, want map[string]string) error {
	nic, err := v.clients.NICs.Get(ctx, v.config.NodeResourceGroup, name, nil)
	if err != nil {
		return fmt.Errorf("read network interface %s: %w", name, err)
	}
	if maps.Equal(launch.Values(nic.Tags), want) {
		return nil
	}
	if _, err := v.clients.NICs.UpdateTags(ctx, v.config.NodeResourceGroup,
		name, armnetwork.TagsObject{Tags: pointers(want)}, nil); err != nil {
		return fmt.Errorf("update the tags of network interface %s: %w", name, err)
	}
	return nil
}

// missingIdentities are those that a machine should have and has not.
func missingIdentities(has *armcompute.VirtualMachineIdentity, want []string) map[string]*armcompute.UserAssignedIdentitiesValue {
	present := map[string]bool{}
	if has != nil {
		for id := range has.UserAssignedIdentities {
			present[strings.ToLower(id)] = true
		}
	}
	missing := map[string]*armcompute.UserAssignedIdentitiesValue{}
	for _, id := range want {
		if !present[strings.ToLower(id)] {
			missing[id] = &armcompute.UserAssignedIdentitiesValue{}
		}
	}
	return missing
}
