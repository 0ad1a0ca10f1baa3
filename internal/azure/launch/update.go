package launch

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

	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

// Update gives the virtual machine, its interface and its billing extension the
// tags that they would be made with today, and the machine the identities that it
// lacks. What is right already is not written. Identities are only ever added:
// something on the machine may use one that is no longer configured.
func (v *VMs) Update(ctx context.Context, m Machine, class *nodeclass.NodeClass) error {
	name, group := ResourceName(m.Claim), v.config.NodeResourceGroup
	want := tagsOf(v.config, NodeSpec{Pool: m.Pool, Class: class})
	answer, err := v.clients.Machines.Get(ctx, group, name, nil)
	if status(err) == http.StatusNotFound {
		return ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("read virtual machine %s: %w", name, err)
	}
	patch, changed := armcompute.VirtualMachineUpdate{}, false
	if !maps.Equal(values(answer.Tags), want) {
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
	if e := extensionOf(&answer.VirtualMachine, billingExtension); e != nil && !maps.Equal(values(e.Tags), want) {
		if _, err := v.clients.Extensions.BeginUpdate(ctx, group, name, billingExtension,
			armcompute.VirtualMachineExtensionUpdate{Tags: pointers(want)}, nil); err != nil {
			errs = append(errs, fmt.Errorf("update extension %s of virtual machine %s: %w", billingExtension, name, err))
		}
	}
	return errors.Join(append(errs, v.tagNIC(ctx, name, want))...)
}

// tagNIC gives an interface its tags.
func (v *VMs) tagNIC(ctx context.Context, name string, want map[string]string) error {
	nic, err := v.clients.NICs.Get(ctx, v.config.NodeResourceGroup, name, nil)
	if err != nil {
		return fmt.Errorf("read network interface %s: %w", name, err)
	}
	if maps.Equal(values(nic.Tags), want) {
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

// Update gives the machine the tags that it would be made with today; AKS carries
// them on. Identities are the agent pool's business.
func (a *AKSMachines) Update(ctx context.Context, m Machine, class *nodeclass.NodeClass) error {
	raw, err := a.read(ctx, m.Claim)
	if err != nil {
		return err
	}
	want := a.tags(NodeSpec{Claim: m.Claim, Pool: m.Pool, Class: class})
	if maps.Equal(raw.Properties.Tags, want) {
		return nil
	}
	if err := a.clients.Machines.patchTags(ctx, raw.Name, raw.Properties.ETag, want); err != nil {
		return fmt.Errorf("update the tags of AKS machine %s: %w", raw.Name, err)
	}
	return nil
}

// Update updates the machine of either kind.
func (x *Mixed) Update(ctx context.Context, m Machine, class *nodeclass.NodeClass) error {
	return x.of(m).Update(ctx, m, class)
}
