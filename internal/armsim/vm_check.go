package armsim

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

var (
	zonePattern     = regexp.MustCompile(`^[1-9]$`)
	computerPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,63}$`)
)

// checkVM answers everything that Azure refuses at once about a new machine,
// and finds its network interfaces.
func (s *Server) checkVM(p path, b vmBody, m vmSpec) ([]*resource, error) {
	switch {
	case b.Location == "":
		return nil, newError(http.StatusBadRequest, "LocationRequired", "The location property is required for this definition.")
	case !strings.EqualFold(strings.ReplaceAll(b.Location, " ", ""), s.cfg.Region):
		return nil, newError(http.StatusBadRequest, "LocationNotAvailableForResourceType", "The provided location '%s' is not available for resource type '%s'. List of available regions for the resource type is '%s'.", b.Location, p.displayType(), s.cfg.Region)
	case len(b.Zones) > 1 || len(b.Zones) == 1 && !zonePattern.MatchString(b.Zones[0]):
		return nil, errInvalidParameter("zones", "The zone(s) '%s' for resource '%s' is not supported. A virtual machine takes one zone: 1, 2 or 3.", strings.Join(b.Zones, ","), p.name())
	case !computerPattern.MatchString(m.ComputerName):
		return nil, errInvalidParameter("computerName", "Linux host name cannot exceed 64 characters in length or contain the following characters: ` ~ ! @ # $ %% ^ & * ( ) = + _ [ ] { } \\ | ; : ' \" , < > / ?")
	case len(m.NICs) == 0:
		return nil, errInvalidParameter("networkProfile", "Virtual Machine must have at least one network interface.")
	}
	if _, err := base64.StdEncoding.DecodeString(b.Properties.OSProfile.CustomData); err != nil {
		return nil, errInvalidParameter("customData", "Custom data in OSProfile must be in Base64 encoding and with a maximum length of 87380 characters.")
	}
	if len(b.Properties.OSProfile.CustomData) > 87380 {
		return nil, errInvalidParameter("customData", "Custom data in OSProfile must be in Base64 encoding and with a maximum length of 87380 characters.")
	}
	if set := b.Properties.StorageProfile.OSDisk.ManagedDisk.DiskEncryptionSet.ID; set != "" && s.find(set) == nil {
		return nil, errInvalidReference(set, p.id())
	}
	if err := s.checkSize(m); err != nil {
		return nil, err
	}
	if err := s.checkImage(m); err != nil {
		return nil, err
	}
	var nics []*resource
	for _, ref := range m.NICs {
		n := s.find(ref.ID)
		if n == nil || n.NIC == nil || n.NIC.Deleting {
			return nil, errInvalidReference(ref.ID, p.id())
		}
		if n.NIC.VM != "" && key(n.NIC.VM) != key(p.id()) {
			return nil, errInvalidParameter("networkProfile", "Network interface %s is already in use by virtual machine %s.", n.ID, n.NIC.VM)
		}
		if by := s.reservedFor(n); by != "" && key(by) != key(p.id()) {
			return nil, errReserved(n, by)
		}
		nics = append(nics, n)
	}
	return nics, nil
}

// defaultController is what a machine gets that asks for none.
const defaultController = "SCSI"

// checkSize answers what a size cannot do.
func (s *Server) checkSize(m vmSpec) error {
	size, ok := s.cat.Size(m.Size)
	zones := s.cat.Zones(m.Size, s.cfg.Region)
	if !ok || zones == nil {
		return errInvalidParameter("vmSize", "The value %s provided for the VM size is not valid. The valid sizes in the current region are returned by the list of SKUs of location %s.", m.Size, s.cfg.Region)
	}
	if s.restricted(m.Size, m.Zone) || m.Zone != "0" && !slices.Contains(zones, m.Zone) {
		return errSkuNotAvailable(m.Size, s.cfg.Region)
	}
	switch {
	case m.Priority == prioritySpot && !size.SpotCapable():
		return errInvalidParameter("priority", "The VM size '%s' does not support Azure Spot. Choose a size whose LowPriorityCapable capability is True.", m.Size)
	case m.HostCrypt && !size.EncryptionAtHost():
		return errInvalidParameter("encryptionAtHost", "The VM size '%s' does not support encryption at host.", m.Size)
	case m.UltraSSD && (!size.UltraSSD() || m.Zone == "0"):
		return errInvalidParameter("ultraSSDEnabled", "The VM size '%s' does not support Ultra SSD in the requested zone.", m.Size)
	case m.Trusted && (!size.Gen2() || size.TrustedLaunchDisabled()):
		return newError(http.StatusBadRequest, "BadRequest", "The VM size '%s' is not supported for creation of VMs and Virtual Machine Scale Set with 'TrustedLaunch' security type.", m.Size)
	case !slices.ContainsFunc(size.DiskControllers(), func(c string) bool { return strings.EqualFold(c, cmp.Or(m.Controller, defaultController)) }):
		return errInvalidParameter("storageProfile.diskControllerType", "The VM size '%s' cannot boot with OS image or disk. Please check that disk controller types supported by the OS image or disk is one of the supported disk controller types for the VM size '%s'. Please query sku api at https://aka.ms/azure-compute-skus to determine supported disk controller types for the VM size.", m.Size, m.Size)
	case m.Ephemeral:
		return checkEphemeral(m, size)
	}
	return nil
}
