package compute

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

var (
	zonePattern     = regexp.MustCompile(`^[1-9]$`)
	computerPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,63}$`)
)

// check answers everything that Azure refuses at once about a new machine, and
// returns the IDs of its network interfaces with the case of their creation.
func (h *handlers) check(p arm.Path, b vmBody, m Spec) (nics []string, err error) {
	switch {
	case b.Location == "":
		return nil, arm.NewError(http.StatusBadRequest, "LocationRequired", "The location property is required for this definition.")
	case !strings.EqualFold(strings.ReplaceAll(b.Location, " ", ""), h.sub.Region):
		return nil, arm.NewError(http.StatusBadRequest, "LocationNotAvailableForResourceType",
			"The provided location '%s' is not available for resource type '%s'. List of available regions for the resource type is '%s'.",
			b.Location, p.DisplayType(), h.sub.Region)
	case len(b.Zones) > 1 || len(b.Zones) == 1 && !zonePattern.MatchString(b.Zones[0]):
		return nil, arm.ErrInvalidParameter("zones", "The zone(s) '%s' for resource '%s' is not supported. A virtual "+
			"machine takes one zone: 1, 2 or 3.", strings.Join(b.Zones, ","), p.Name())
	case !computerPattern.MatchString(m.ComputerName):
		return nil, arm.ErrInvalidParameter("computerName", "Linux host name cannot exceed 64 characters in length or "+
			"contain the following characters: ` ~ ! @ # $ %% ^ & * ( ) = + _ [ ] { } \\ | ; : ' \" , < > / ?")
	case len(m.NICs) == 0:
		return nil, arm.ErrInvalidParameter("networkProfile", "Virtual Machine must have at least one network interface.")
	}
	if _, err := base64.StdEncoding.DecodeString(b.Properties.OSProfile.CustomData); err != nil {
		return nil, arm.ErrInvalidParameter("customData",
			"Custom data in OSProfile must be in Base64 encoding and with a maximum length of 87380 characters.")
	}
	if len(b.Properties.OSProfile.CustomData) > 87380 {
		return nil, arm.ErrInvalidParameter("customData",
			"Custom data in OSProfile must be in Base64 encoding and with a maximum length of 87380 characters.")
	}
	if set := b.Properties.StorageProfile.OSDisk.ManagedDisk.DiskEncryptionSet.ID; set != "" && h.sub.Resources.Find(set) == nil {
		return nil, arm.ErrInvalidReference(set, p.ID())
	}
	if err := h.sizes.check(m); err != nil {
		return nil, err
	}
	if err := h.images.check(m); err != nil {
		return nil, err
	}
	for _, ref := range m.NICs {
		id, err := h.life.interfaces.Attachable(ref.ID, p.ID())
		if err != nil {
			return nil, err
		}
		nics = append(nics, id)
	}
	return nics, nil
}

// defaultController is what a machine gets that asks for none.
const defaultController = "SCSI"

// check answers what a size cannot do.
func (s *sizes) check(m Spec) error {
	size, ok := s.sub.SKUTable.Size(m.Size)
	zones := s.sub.SKUTable.Zones(m.Size, s.sub.Region)
	if !ok || zones == nil {
		return arm.ErrInvalidParameter("vmSize", "The value %s provided for the VM size is not valid. The valid sizes in "+
			"the current region are returned by the list of SKUs of location %s.", m.Size, s.sub.Region)
	}
	if s.isRestricted(m.Size, m.Zone) || m.Zone != "0" && !slices.Contains(zones, m.Zone) {
		return errSkuNotAvailable(m.Size, s.sub.Region)
	}
	switch {
	case m.Priority == arm.Spot && !size.SpotCapable():
		return arm.ErrInvalidParameter("priority",
			"The VM size '%s' does not support Azure Spot. Choose a size whose LowPriorityCapable capability is True.", m.Size)
	case m.HostCrypt && !size.EncryptionAtHost():
		return arm.ErrInvalidParameter("encryptionAtHost", "The VM size '%s' does not support encryption at host.", m.Size)
	case m.UltraSSD && (!size.UltraSSD() || m.Zone == "0"):
		return arm.ErrInvalidParameter("ultraSSDEnabled", "The VM size '%s' does not support Ultra SSD in the requested zone.", m.Size)
	case m.Trusted && (!size.Gen2() || size.TrustedLaunchDisabled()):
		return arm.NewError(http.StatusBadRequest, "BadRequest",
			"The VM size '%s' is not supported for creation of VMs and Virtual Machine Scale Set with 'TrustedLaunch' security type.", m.Size)
	case !slices.ContainsFunc(size.DiskControllers(),
		func(c string) bool { return strings.EqualFold(c, cmp.Or(m.Controller, defaultController)) }):
		return arm.ErrInvalidParameter("storageProfile.diskControllerType",
			"The VM size '%s' cannot boot with OS image or disk. Please check that disk controller types supported by the OS "+
				"image or disk is one of the supported disk controller types for the VM size '%s'. Please query sku api at "+
				"https://aka.ms/azure-compute-skus to determine supported disk controller types for the VM size.", m.Size, m.Size)
	case m.Ephemeral:
		return checkEphemeral(m, size)
	}
	return nil
}

// Names of the usages that are not families.
const (
	usageCores = "cores"
	usageSpot  = "lowPriorityCores"
)

// errQuota is what Azure says when a machine does not fit into a quota. The
// words before the first full stop differ by the kind of quota, and clients
// look for them.
func errQuota(usage, location string, limit, used, want int64) *arm.Error {
	what := usage + " Cores quota"
	switch usage {
	case usageCores:
		what = "Total Regional Cores quota"
	case usageSpot:
		what = "LowPriorityCores quota"
	}
	return arm.NewError(http.StatusConflict, "OperationNotAllowed",
		"Operation could not be completed as it results in exceeding approved %s. Additional details - Deployment Model: Resource Manager, "+
			"Location: %s, Current Limit: %d, Current Usage: %d, Additional Required: %d, (Minimum) New Limit Required: %d. "+
			"Setup Alerts when Quota reaches threshold. Learn more at https://aka.ms/quotamonitoringalerting . "+
			"Submit a request for Quota increase at https://aka.ms/ProdportalCRP/#blade/Microsoft_Azure_Capacity/UsageAndQuota.ReactView "+
			"by specifying parameters listed in the 'Details' section for deployment to succeed. "+
			"Please read more about quota limits at https://docs.microsoft.com/en-us/azure/azure-supportability/per-vm-quota-requests",
		what, location, limit, used, want, used+want)
}

func errSkuNotAvailable(size, location string) *arm.Error {
	return arm.NewError(http.StatusConflict, "SkuNotAvailable",
		"The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: %s' is currently not "+
			"available in location '%s'. "+
			"Please try another size or deploy to a different location or different zone. See "+
			"https://aka.ms/azureskunotavailable for details.", size, location)
}

// Codes of the four ways in which an allocation fails.
const (
	codeZonalAllocation      = "ZonalAllocationFailed"
	codeAllocation           = "AllocationFailed"
	codeOverconstrainedZonal = "OverconstrainedZonalAllocationRequest"
	codeOverconstrained      = "OverconstrainedAllocationRequest"
	codeSkuNotAvailable      = "SkuNotAvailable"
)

// errAllocation is the failure of an allocation by its code.
func errAllocation(code string, m Spec, location string) *arm.Error {
	const guidance = " Read more about improving likelihood of allocation success at http://aka.ms/allocation-guidance"
	switch code {
	case codeSkuNotAvailable:
		return errSkuNotAvailable(m.Size, location)
	case codeZonalAllocation:
		return arm.NewError(http.StatusConflict, code,
			"Allocation failed. We do not have sufficient capacity for the requested VM size in this zone."+guidance)
	case codeOverconstrainedZonal, codeOverconstrained:
		constraints := []string{"VM Size"}
		if code == codeOverconstrainedZonal {
			constraints = append(constraints, "Availability Zone")
		}
		if m.UltraSSD {
			constraints = append(constraints, "Ultra Disk")
		}
		if m.Ephemeral {
			constraints = append(constraints, "Ephemeral Disk")
		}
		if m.Priority == arm.Spot {
			constraints = append(constraints, "Low Priority VM")
		}
		return arm.NewError(http.StatusConflict, code,
			"Allocation failed. VM(s) with the following constraints cannot be allocated, because the condition is too restrictive. "+
				"Please remove some constraints and try again. Constraints applied are:\n  - %s", strings.Join(constraints, "\n  - "))
	}
	return arm.NewError(http.StatusConflict, code,
		"Allocation failed. We do not have sufficient capacity for the requested VM size in this region."+guidance)
}
