package vm

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime/datetime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"github.com/nodeautoprovision/nap/internal/azure/resourcelist"
)

// The versions of Azure's API that the lists are read with: those of the SDK's clients.
const (
	machinesVersion = "2025-04-01"
	nicsVersion     = "2025-05-01"
)

// Lists reads the virtual machines and network interfaces of a resource group: all of them
// are read every two minutes, and the SDK's models, which decode every field of each, took
// a third of the controller's processor time in a cluster of 5,000 nodes at rest. What nap
// does not read is skipped.
type Lists struct {
	arm                         *arm.Client
	subscription, resourceGroup string
}

// NewLists returns the lists of a resource group of a subscription.
func NewLists(subscription, resourceGroup string, credential azcore.TokenCredential, options *arm.ClientOptions) (*Lists, error) {
	client, err := arm.NewClient("nap/lists", "v1.0.0", credential, options)
	if err != nil {
		return nil, err
	}
	return &Lists{client, subscription, resourceGroup}, nil
}

// path is the list of a provider's resources in the resource group.
func (l *Lists) path(provider string) string {
	return "/subscriptions/" + url.PathEscape(l.subscription) + "/resourceGroups/" + url.PathEscape(l.resourceGroup) + "/providers/" + provider
}

// Machines lists the virtual machines of the resource group, those that nap did not make
// too, with the fields that nap reads: name, tags, zones, the ids and names of extensions with their
// provisioning state, and of the properties what [listedMachine] names. It asks Resource
// Manager itself, which is never behind, unlike Resource Graph.
func (l *Lists) Machines(ctx context.Context) ([]*armcompute.VirtualMachine, error) {
	listed, err := resourcelist.Read[*listedMachine](ctx, l.arm, l.path("Microsoft.Compute/virtualMachines"), machinesVersion)
	if err != nil {
		return nil, fmt.Errorf("list the virtual machines of resource group %s: %w", l.resourceGroup, err)
	}
	out := make([]*armcompute.VirtualMachine, 0, len(listed))
	for _, m := range listed {
		if m != nil {
			out = append(out, m.model())
		}
	}
	return out, nil
}

// listedMachine is what is read of a virtual machine of a list.
type listedMachine struct {
	Name       *string            `json:"name"`
	Tags       map[string]*string `json:"tags"`
	Zones      []*string          `json:"zones"`
	Properties *struct {
		ProvisioningState *string                                 `json:"provisioningState"`
		TimeCreated       *datetime.RFC3339                       `json:"timeCreated"`
		Priority          *armcompute.VirtualMachinePriorityTypes `json:"priority"`
		HardwareProfile   *struct {
			VMSize *armcompute.VirtualMachineSizeTypes `json:"vmSize"`
		} `json:"hardwareProfile"`
		OSProfile *struct {
			ComputerName *string `json:"computerName"`
		} `json:"osProfile"`
		StorageProfile *struct {
			ImageReference *struct {
				ID                      *string `json:"id"`
				CommunityGalleryImageID *string `json:"communityGalleryImageId"`
			} `json:"imageReference"`
			OSDisk *struct {
				Name *string `json:"name"`
			} `json:"osDisk"`
		} `json:"storageProfile"`
		NetworkProfile *struct {
			NetworkInterfaces []*struct {
				ID *string `json:"id"`
			} `json:"networkInterfaces"`
		} `json:"networkProfile"`
	} `json:"properties"`
	Resources []*struct {
		ID         *string `json:"id"`
		Name       *string `json:"name"`
		Properties *struct {
			ProvisioningState *string `json:"provisioningState"`
		} `json:"properties"`
	} `json:"resources"`
}

// model is the machine as the SDK has it, all that is not read left out.
func (m *listedMachine) model() *armcompute.VirtualMachine {
	out := &armcompute.VirtualMachine{Name: m.Name, Tags: m.Tags, Zones: m.Zones}
	for _, r := range m.Resources {
		if r == nil {
			continue
		}
		e := &armcompute.VirtualMachineExtension{ID: r.ID, Name: r.Name}
		if r.Properties != nil {
			e.Properties = &armcompute.VirtualMachineExtensionProperties{ProvisioningState: r.Properties.ProvisioningState}
		}
		out.Resources = append(out.Resources, e)
	}
	p := m.Properties
	if p == nil {
		return out
	}
	q := &armcompute.VirtualMachineProperties{
		ProvisioningState: p.ProvisioningState, TimeCreated: (*time.Time)(p.TimeCreated), Priority: p.Priority,
	}
	out.Properties = q
	if p.HardwareProfile != nil {
		q.HardwareProfile = &armcompute.HardwareProfile{VMSize: p.HardwareProfile.VMSize}
	}
	if p.OSProfile != nil {
		q.OSProfile = &armcompute.OSProfile{ComputerName: p.OSProfile.ComputerName}
	}
	if s := p.StorageProfile; s != nil {
		q.StorageProfile = &armcompute.StorageProfile{}
		if s.ImageReference != nil {
			q.StorageProfile.ImageReference = &armcompute.ImageReference{
				ID: s.ImageReference.ID, CommunityGalleryImageID: s.ImageReference.CommunityGalleryImageID,
			}
		}
		if s.OSDisk != nil {
			q.StorageProfile.OSDisk = &armcompute.OSDisk{Name: s.OSDisk.Name}
		}
	}
	if p.NetworkProfile != nil {
		q.NetworkProfile = &armcompute.NetworkProfile{}
		for _, n := range p.NetworkProfile.NetworkInterfaces {
			if n == nil {
				q.NetworkProfile.NetworkInterfaces = append(q.NetworkProfile.NetworkInterfaces, nil)
				continue
			}
			q.NetworkProfile.NetworkInterfaces = append(q.NetworkProfile.NetworkInterfaces, &armcompute.NetworkInterfaceReference{ID: n.ID})
		}
	}
	return out
}
