package compute

import (
	"cmp"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// Spec is what decides about a machine: everything of its body that is checked.
type Spec struct {
	Size         string         `json:"size"`                  // VM size, with any case
	Zone         string         `json:"zone"`                  // "1"; "0" without
	Priority     string         `json:"priority"`              // arm.Regular or arm.Spot
	Eviction     string         `json:"eviction,omitempty"`    // Delete or Deallocate, of spot machines
	ComputerName string         `json:"computerName"`          // host name
	Image        string         `json:"image"`                 // reference as it was sent
	OSDisk       string         `json:"osDisk"`                // name
	OSDiskGB     int            `json:"osDiskGB"`              // in GiB, which is what Azure's disk sizes mean
	KeepDisk     bool           `json:"keepDisk,omitempty"`    // the OS disk outlives the machine
	Ephemeral    bool           `json:"ephemeral,omitempty"`   // the OS disk is no resource
	Placement    string         `json:"placement,omitempty"`   // of the ephemeral disk; empty leaves it to Azure
	Controller   string         `json:"controller,omitempty"`  // of disks: SCSI or NVMe; empty means SCSI
	UltraSSD     bool           `json:"ultraSSD,omitempty"`    // ultra disks may be attached
	HostCrypt    bool           `json:"hostCrypt,omitempty"`   // encryption at host
	Trusted      bool           `json:"trusted,omitempty"`     // trusted launch
	Reservation  string         `json:"reservation,omitempty"` // ID of a capacity reservation group
	NICs         []InterfaceRef `json:"nics"`
}

// InterfaceRef is a machine's reference to a network interface.
type InterfaceRef struct {
	ID   string `json:"id"`
	Keep bool   `json:"keep,omitempty"` // it outlives the machine
}

// vmBody is the typed view of a VM's body.
type vmBody struct {
	Location   string   `json:"location"`
	Zones      []string `json:"zones"`
	Properties struct {
		HardwareProfile struct {
			VMSize string `json:"vmSize"`
		} `json:"hardwareProfile"`
		Priority       string `json:"priority"`
		EvictionPolicy string `json:"evictionPolicy"`
		StorageProfile struct {
			DiskControllerType string `json:"diskControllerType"`
			ImageReference     struct {
				ID                      string `json:"id"`
				CommunityGalleryImageID string `json:"communityGalleryImageId"`
			} `json:"imageReference"`
			OSDisk struct {
				Name         string `json:"name"`
				DiskSizeGB   int    `json:"diskSizeGB"`
				DeleteOption string `json:"deleteOption"`
				ManagedDisk  struct {
					DiskEncryptionSet struct {
						ID string `json:"id"`
					} `json:"diskEncryptionSet"`
				} `json:"managedDisk"`
				DiffDiskSettings *struct {
					Placement string `json:"placement"`
				} `json:"diffDiskSettings"`
			} `json:"osDisk"`
		} `json:"storageProfile"`
		OSProfile struct {
			ComputerName string `json:"computerName"`
			CustomData   string `json:"customData"`
		} `json:"osProfile"`
		NetworkProfile struct {
			NetworkInterfaces []struct {
				ID         string `json:"id"`
				Properties struct {
					DeleteOption string `json:"deleteOption"`
				} `json:"properties"`
			} `json:"networkInterfaces"`
		} `json:"networkProfile"`
		SecurityProfile struct {
			EncryptionAtHost bool   `json:"encryptionAtHost"`
			SecurityType     string `json:"securityType"`
		} `json:"securityProfile"`
		AdditionalCapabilities struct {
			UltraSSDEnabled bool `json:"ultraSSDEnabled"`
		} `json:"additionalCapabilities"`
		CapacityReservation struct {
			CapacityReservationGroup struct {
				ID string `json:"id"`
			} `json:"capacityReservationGroup"`
		} `json:"capacityReservation"`
	} `json:"properties"`
}

// spec takes from the body what decides about the machine.
func (b vmBody) spec(name string) Spec {
	p := b.Properties
	m := Spec{
		Size: p.HardwareProfile.VMSize, Zone: "0", Priority: arm.Regular, Eviction: p.EvictionPolicy,
		ComputerName: p.OSProfile.ComputerName, Image: p.StorageProfile.ImageReference.CommunityGalleryImageID,
		OSDisk: p.StorageProfile.OSDisk.Name, OSDiskGB: p.StorageProfile.OSDisk.DiskSizeGB,
		KeepDisk:   !strings.EqualFold(p.StorageProfile.OSDisk.DeleteOption, "Delete"),
		Controller: p.StorageProfile.DiskControllerType, UltraSSD: p.AdditionalCapabilities.UltraSSDEnabled,
		HostCrypt: p.SecurityProfile.EncryptionAtHost, Trusted: strings.EqualFold(p.SecurityProfile.SecurityType, "TrustedLaunch"),
		Reservation: p.CapacityReservation.CapacityReservationGroup.ID,
	}
	if len(b.Zones) > 0 {
		m.Zone = b.Zones[0]
	}
	if strings.EqualFold(p.Priority, arm.Spot) || strings.EqualFold(p.Priority, "Low") {
		m.Priority = arm.Spot
	}
	if d := p.StorageProfile.OSDisk.DiffDiskSettings; d != nil {
		m.Ephemeral, m.Placement, m.KeepDisk = true, d.Placement, false
	}
	m.Image = cmp.Or(m.Image, p.StorageProfile.ImageReference.ID)
	m.OSDisk = cmp.Or(m.OSDisk, name+"_OsDisk_1")
	m.OSDiskGB = cmp.Or(m.OSDiskGB, 30)
	m.ComputerName = cmp.Or(m.ComputerName, name)
	for _, n := range p.NetworkProfile.NetworkInterfaces {
		m.NICs = append(m.NICs, InterfaceRef{ID: n.ID, Keep: !strings.EqualFold(n.Properties.DeleteOption, "Delete")})
	}
	return m
}
