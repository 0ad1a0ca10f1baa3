package armsim

import (
	"strings"
	"time"
)

// The two priorities that matter here; Azure's older word Low means Spot.
const (
	priorityRegular = "Regular"
	prioritySpot    = "Spot"
)

// phase is where a machine is in its life.
type phase string

const (
	phaseCreating    phase = "Creating"
	phaseSucceeded   phase = "Succeeded"
	phaseFailed      phase = "Failed"
	phaseDeleting    phase = "Deleting"
	phaseDeallocated phase = "Deallocated" // evicted with the policy Deallocate
)

// vmState is what the simulator knows about a machine besides its document.
type vmState struct {
	ID         string      `json:"id"` // vmId: a namesake made later has another
	Spec       vmSpec      `json:"spec"`
	Phase      phase       `json:"phase"`
	CustomData string      `json:"customData,omitempty"` // base64, as sent; never shown again
	Operation  string      `json:"operation,omitempty"`  // of its creation
	Failure    *apiError   `json:"failure,omitempty"`    // what its creation will end with or has ended with
	Booted     bool        `json:"booted,omitempty"`
	BootLost   bool        `json:"bootLost,omitempty"`   // a fault took its boot
	BootSpoilt bool        `json:"bootSpoilt,omitempty"` // a fault spoils what it boots from
	Guest      string      `json:"guest,omitempty"`      // what the machine itself says went wrong
	Counted    bool        `json:"counted,omitempty"`    // it is in the quota and capacity books
	EvictAt    time.Time   `json:"evictAt,omitzero"`     // end of the eviction notice
	EvictedBy  string      `json:"evictedBy,omitempty"`  // the fault that evicts it
	CreatedAt  time.Time   `json:"createdAt"`
	BootedAt   time.Time   `json:"bootedAt,omitzero"`
	Address    string      `json:"address"`
	AKS        *AKSMachine `json:"aks,omitempty"`
	AKSID      string      `json:"aksId,omitempty"` // the agent pool machine in front of this VM
}

// Running says that the kubelet of the machine runs.
func (v *vmState) Running() bool {
	return v.Booted && (v.Phase == phaseSucceeded || v.Phase == phaseDeleting)
}

// vmSpec is what decides about a machine: everything of its body that is checked.
type vmSpec struct {
	Size         string   `json:"size"`
	Zone         string   `json:"zone"` // "0" without
	Priority     string   `json:"priority"`
	Eviction     string   `json:"eviction,omitempty"`
	ComputerName string   `json:"computerName"`
	Image        string   `json:"image"`
	OSDisk       string   `json:"osDisk"`
	OSDiskGB     int      `json:"osDiskGB"`
	KeepDisk     bool     `json:"keepDisk,omitempty"` // the OS disk outlives the machine
	Ephemeral    bool     `json:"ephemeral,omitempty"`
	Placement    string   `json:"placement,omitempty"` // of the ephemeral disk
	Controller   string   `json:"controller,omitempty"`
	UltraSSD     bool     `json:"ultraSSD,omitempty"`
	HostCrypt    bool     `json:"hostCrypt,omitempty"`
	Trusted      bool     `json:"trusted,omitempty"`
	Reservation  string   `json:"reservation,omitempty"`
	NICs         []nicRef `json:"nics"`
}

// nicRef is a machine's reference to a network interface.
type nicRef struct {
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
func (b vmBody) spec(name string) vmSpec {
	p := b.Properties
	m := vmSpec{
		Size: p.HardwareProfile.VMSize, Zone: "0", Priority: priorityRegular, Eviction: p.EvictionPolicy,
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
	if strings.EqualFold(p.Priority, prioritySpot) || strings.EqualFold(p.Priority, "Low") {
		m.Priority = prioritySpot
	}
	if d := p.StorageProfile.OSDisk.DiffDiskSettings; d != nil {
		m.Ephemeral, m.Placement, m.KeepDisk = true, d.Placement, false
	}
	setDefault(&m.Image, p.StorageProfile.ImageReference.ID)
	setDefault(&m.OSDisk, name+"_OsDisk_1")
	setDefault(&m.OSDiskGB, 30)
	setDefault(&m.ComputerName, name)
	for _, n := range p.NetworkProfile.NetworkInterfaces {
		m.NICs = append(m.NICs, nicRef{ID: n.ID, Keep: !strings.EqualFold(n.Properties.DeleteOption, "Delete")})
	}
	return m
}

// target is the machine as faults select it.
func (s *Server) target(id, operation string, m vmSpec) faultTarget {
	size, _ := s.cat.Size(m.Size)
	return faultTarget{Operation: operation, Resource: id, Size: m.Size, Zone: m.Zone, Priority: m.Priority, Family: size.QuotaFamily()}
}
