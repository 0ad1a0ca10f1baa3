package kubelet

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/bootdata"
)

// Machine is a virtual machine as its kubelet sees it: what the hypervisor and
// the instance metadata service would tell it.
type Machine struct {
	// ID is the resource ID of the virtual machine.
	ID string
	// ComputerName is the host name; in lower case it names the node.
	ComputerName string
	// Size is the SKU name, for example Standard_D4s_v5.
	Size string
	// VCPUs is the number of virtual CPUs.
	VCPUs int64
	// MemoryBytes is the memory of the size as sold. The operating system
	// sees less, see [Config.MemoryOverhead].
	MemoryBytes int64
	// GPUs is the number of GPUs; GPUVendor is "nvidia" or "amd".
	GPUs      int64
	GPUVendor string
	// Arch is "amd64" or "arm64".
	Arch string
	// MaxDataDisks is how many data disks can be attached.
	MaxDataDisks int32
	// OSDiskGB is the size of the operating system disk in GB (10⁹ bytes).
	OSDiskGB int64
	// Region is the location, for example eastus. Zone is the number of the
	// availability zone, empty for a regional machine.
	Region string
	Zone   string
	// PrivateIP is the address of the primary network interface.
	PrivateIP string
	// Broken ends the machine's provisioning, as with an image that is broken; nil
	// without that.
	Broken *bootdata.Failure
	// OSImage is what the node reports as its operating system.
	OSImage string
	// CustomData is what the machine boots from, decoded from base64: see package bootdata.
	CustomData string
}

// resourceGroupInID finds the resource group in a resource ID.
var resourceGroupInID = regexp.MustCompile(`(?i)^(/subscriptions/[^/]+/resourceGroups/)([^/]+)(/providers/.+)$`)

// NodeName is the name of the machine's node.
func (m Machine) NodeName() string { return strings.ToLower(m.ComputerName) }

// ProviderID is the node's spec.providerID: the resource ID with the resource
// group in lower case, as the cloud provider for Azure writes it, because
// Resource Manager does not keep the case of resource groups.
func (m Machine) ProviderID() string {
	return providerScheme + resourceGroupInID.ReplaceAllStringFunc(m.ID, func(id string) string {
		parts := resourceGroupInID.FindStringSubmatch(id)
		return parts[1] + strings.ToLower(parts[2]) + parts[3]
	})
}

const providerScheme = "azure://"

// zoneLabel is the value of topology.kubernetes.io/zone: region and zone
// number, or "0" for a regional machine.
func (m Machine) zoneLabel() string {
	if m.Zone == "" {
		return "0"
	}
	return strings.ToLower(m.Region) + "-" + m.Zone
}

// diskZoneLabel is the value of topology.disk.csi.azure.com/zone, which the
// disk driver leaves empty on regional machines.
func (m Machine) diskZoneLabel() string {
	if m.Zone == "" {
		return ""
	}
	return m.zoneLabel()
}

// validate names everything that keeps the machine from having a kubelet.
func (m Machine) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !resourceGroupInID.MatchString(m.ID) {
		bad("machine ID %q: want /subscriptions/…/resourceGroups/…/providers/…", m.ID)
	}
	if msgs := validation.IsDNS1123Subdomain(m.NodeName()); len(msgs) > 0 {
		bad("computer name %q cannot name a node: %s", m.ComputerName, strings.Join(msgs, "; "))
	}
	if m.VCPUs <= 0 || m.MemoryBytes <= 0 {
		bad("size %q: %d vCPUs and %d bytes of memory, both must be positive", m.Size, m.VCPUs, m.MemoryBytes)
	}
	if m.Arch != "amd64" && m.Arch != "arm64" {
		bad("architecture %q: want amd64 or arm64", m.Arch)
	}
	if m.GPUs > 0 && gpuResource(m.GPUVendor) == "" {
		bad("GPU vendor %q: want nvidia or amd", m.GPUVendor)
	}
	return errors.Join(errs...)
}
