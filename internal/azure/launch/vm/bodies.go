package vm

import (
	"context"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/nodeautoprovision/nap/internal/azure/bootstrap/inputs"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/model"
)

func pointers(m map[string]string) map[string]*string {
	out := make(map[string]*string, len(m))
	for k, v := range m {
		out[k] = to.Ptr(v)
	}
	return out
}

// interfaceBody is the machine's network interface.
func (v *Launcher) interfaceBody(ctx context.Context, spec launch.NodeSpec) (armnetwork.Interface, error) {
	subnet := v.network.Subnet(spec.Class.SubnetID)
	pools, err := v.network.BackendPools(ctx)
	if err != nil {
		return armnetwork.Interface{}, err
	}
	group, err := v.network.SecurityGroup(ctx, subnet)
	if err != nil {
		return armnetwork.Interface{}, err
	}
	primary := &armnetwork.InterfaceIPConfiguration{
		Name: to.Ptr("ipconfig0"),
		Properties: &armnetwork.InterfaceIPConfigurationPropertiesFormat{
			Primary: to.Ptr(true), PrivateIPAllocationMethod: to.Ptr(armnetwork.IPAllocationMethodDynamic), Subnet: &armnetwork.Subnet{ID: &subnet},
		},
	}
	for _, id := range pools {
		primary.Properties.LoadBalancerBackendAddressPools = append(primary.Properties.LoadBalancerBackendAddressPools,
			&armnetwork.BackendAddressPool{ID: to.Ptr(id)})
	}
	body := armnetwork.Interface{
		Location: &v.config.Location, Tags: pointers(launch.TagsOf(v.config, spec)),
		Properties: &armnetwork.InterfacePropertiesFormat{
			EnableAcceleratedNetworking: to.Ptr(spec.SKU.AcceleratedNet),
			EnableIPForwarding:          to.Ptr(false),
			IPConfigurations:            []*armnetwork.InterfaceIPConfiguration{primary},
		},
	}
	if group != "" {
		body.Properties.NetworkSecurityGroup = &armnetwork.SecurityGroup{ID: &group}
	}
	if v.config.PodsTakeNodeSubnet() {
		for i := 1; i < spec.MaxPods; i++ {
			body.Properties.IPConfigurations = append(body.Properties.IPConfigurations, &armnetwork.InterfaceIPConfiguration{
				Name: to.Ptr(fmt.Sprintf("ipconfig%d", i)),
				Properties: &armnetwork.InterfaceIPConfigurationPropertiesFormat{
					Primary: to.Ptr(false), PrivateIPAllocationMethod: to.Ptr(armnetwork.IPAllocationMethodDynamic),
					Subnet: &armnetwork.Subnet{ID: &subnet},
				},
			})
		}
	}
	return body, nil
}

// customData is what the machine boots from, in base64.
func (v *Launcher) customData(ctx context.Context, spec launch.NodeSpec) (string, error) {
	group, err := v.network.AgentPoolGroup(ctx)
	if err != nil {
		return "", err
	}
	boot, err := inputs.Config(v.config, spec, group)
	if err != nil {
		return "", fmt.Errorf("write what the machine of NodeClaim %s boots from: %w", spec.Claim, err)
	}
	data, err := boot.CustomData()
	if err != nil {
		return "", fmt.Errorf("write what the machine of NodeClaim %s boots from: %w", spec.Claim, err)
	}
	return data, nil
}

// machineBody is the virtual machine, with the resource id of its interface.
func (v *Launcher) machineBody(spec launch.NodeSpec, nic, customData string) armcompute.VirtualMachine {
	name := launch.ResourceName(spec.Claim)
	vm := armcompute.VirtualMachine{
		Location: &v.config.Location, Tags: pointers(launch.TagsOf(v.config, spec)),
		Properties: &armcompute.VirtualMachineProperties{
			HardwareProfile: &armcompute.HardwareProfile{VMSize: to.Ptr(armcompute.VirtualMachineSizeTypes(spec.SKU.Name))},
			StorageProfile:  v.storage(spec),
			OSProfile: &armcompute.OSProfile{
				ComputerName: &name, AdminUsername: &v.config.AdminUsername,
				CustomData: &customData,
				LinuxConfiguration: &armcompute.LinuxConfiguration{
					DisablePasswordAuthentication: to.Ptr(true),
					SSH: &armcompute.SSHConfiguration{PublicKeys: []*armcompute.SSHPublicKey{{
						KeyData: &v.config.SSHPublicKey, Path: to.Ptr("/home/" + v.config.AdminUsername + "/.ssh/authorized_keys"),
					}}},
				},
			},
			NetworkProfile: &armcompute.NetworkProfile{NetworkInterfaces: []*armcompute.NetworkInterfaceReference{{
				ID: &nic,
				Properties: &armcompute.NetworkInterfaceReferenceProperties{
					Primary: to.Ptr(true), DeleteOption: to.Ptr(armcompute.DeleteOptionsDelete),
				},
			}}},
			// Without a storage account it is Azure's own. It keeps the serial log, see Console.
			DiagnosticsProfile: &armcompute.DiagnosticsProfile{BootDiagnostics: &armcompute.BootDiagnostics{Enabled: to.Ptr(true)}},
			Priority:           to.Ptr(armcompute.VirtualMachinePriorityTypesRegular),
			SecurityProfile:    security(spec),
		},
	}
	if spec.CapacityType == model.Spot {
		vm.Properties.Priority = to.Ptr(armcompute.VirtualMachinePriorityTypesSpot)
		vm.Properties.EvictionPolicy = to.Ptr(armcompute.VirtualMachineEvictionPolicyTypesDelete)
		// -1: never more than the on-demand price, and no eviction for price.
		vm.Properties.BillingProfile = &armcompute.BillingProfile{MaxPrice: to.Ptr(-1.0)}
	}
	if spec.UltraSSD {
		vm.Properties.AdditionalCapabilities = &armcompute.AdditionalCapabilities{UltraSSDEnabled: to.Ptr(true)}
	}
	if spec.Zone != "" {
		vm.Zones = []*string{to.Ptr(spec.Zone)}
	}
	if len(v.config.NodeIdentities) > 0 {
		vm.Identity = &armcompute.VirtualMachineIdentity{
			Type:                   to.Ptr(armcompute.ResourceIdentityTypeUserAssigned),
			UserAssignedIdentities: map[string]*armcompute.UserAssignedIdentitiesValue{},
		}
		for _, id := range v.config.NodeIdentities {
			vm.Identity.UserAssignedIdentities[id] = &armcompute.UserAssignedIdentitiesValue{}
		}
	}
	return vm
}

// storage is the system disk: on the machine's own drive where it fits, else a
// managed disk.
func (v *Launcher) storage(spec launch.NodeSpec) *armcompute.StorageProfile {
	disk := &armcompute.OSDisk{
		Name: to.Ptr(launch.ResourceName(spec.Claim)), DiskSizeGB: to.Ptr(int32(spec.Class.OSDiskSizeGB)),
		CreateOption: to.Ptr(armcompute.DiskCreateOptionTypesFromImage), DeleteOption: to.Ptr(armcompute.DiskDeleteOptionTypesDelete),
	}
	if local := spec.SKU.EphemeralDisk; spec.SKU.HoldsOSDisk(spec.Class.OSDiskSizeGB) {
		disk.DiffDiskSettings = &armcompute.DiffDiskSettings{
			Option: to.Ptr(armcompute.DiffDiskOptionsLocal), Placement: to.Ptr(armcompute.DiffDiskPlacement(local.Placement)),
		}
		disk.Caching = to.Ptr(armcompute.CachingTypesReadOnly)
	}
	if v.config.DiskEncryptionSetID != "" {
		disk.ManagedDisk = &armcompute.ManagedDiskParameters{
			DiskEncryptionSet: &armcompute.DiskEncryptionSetParameters{ID: &v.config.DiskEncryptionSetID},
		}
	}
	out := &armcompute.StorageProfile{OSDisk: disk, ImageReference: &armcompute.ImageReference{ID: to.Ptr(spec.Image.ID)}}
	if strings.HasPrefix(strings.ToLower(spec.Image.ID), "/communitygalleries/") {
		out.ImageReference = &armcompute.ImageReference{CommunityGalleryImageID: to.Ptr(spec.Image.ID)}
	}
	if spec.SKU.NVMeOnly {
		out.DiskControllerType = to.Ptr(armcompute.DiskControllerTypesNVMe)
	}
	return out
}

// security is nil where the class leaves everything to Azure's defaults.
func security(spec launch.NodeSpec) *armcompute.SecurityProfile {
	c := spec.Class
	if c.EncryptionAtHost == nil && !c.TrustedLaunch() {
		return nil
	}
	out := &armcompute.SecurityProfile{EncryptionAtHost: c.EncryptionAtHost}
	if c.TrustedLaunch() {
		out.SecurityType = to.Ptr(armcompute.SecurityTypesTrustedLaunch)
		out.UefiSettings = &armcompute.UefiSettings{SecureBootEnabled: to.Ptr(c.SecureBoot), VTpmEnabled: to.Ptr(c.VTPM)}
	}
	return out
}
