package instancetype

import (
	"slices"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
)

// SKU is one VM size as the Resource SKUs API describes it for one region.
type SKU struct {
	Name string
	// Family is the quota family, such as standardDSv5Family.
	Family string
	Size   Size
	// SizeErr says why the name could not be read; such a size is not sold.
	SizeErr error

	Arch           string // amd64, arm64, or what Azure says
	VCPUs          int64
	MemoryGiB      float64
	GPUs           int64
	Generations    []int // hypervisor generations, 1 and 2
	MaxDataDisks   int64 // -1 when Azure does not say
	Zones          []string
	UltraSSDZones  []string
	NVMeOnly       bool // takes disks through an NVMe controller only
	Restricted     bool // the subscription may not use it in the region
	SpotCapable    bool
	PremiumIO      bool
	AcceleratedNet bool

	EncryptionAtHost      bool
	TrustedLaunchDisabled bool
	Confidential          bool
	EphemeralDisk         EphemeralDisk
}

// EphemeralDisk is the local space that can hold an operating system disk.
type EphemeralDisk struct {
	Bytes     int64  // 0 when there is none
	Placement string // NvmeDisk, CacheDisk or ResourceDisk
}

// GB is the space in decimal gigabytes, as the label of nodes has it.
func (d EphemeralDisk) GB() int64 { return d.Bytes / 1_000_000_000 }

// ParseSKU reads one entry of the Resource SKUs API. ok is false for entries
// that are no VM sizes or are not offered in the region.
func ParseSKU(raw *armcompute.ResourceSKU, region string) (sku SKU, ok bool) {
	if raw == nil || raw.Name == nil || raw.ResourceType == nil || *raw.ResourceType != "virtualMachines" {
		return SKU{}, false
	}
	sku = SKU{Name: *raw.Name, Family: deref(raw.Family)}
	sku.Size, sku.SizeErr = ParseSize(sku.Name)
	caps := capabilities(raw.Capabilities)
	sku.Arch = arch(caps.text("CpuArchitectureType"))
	sku.VCPUs = caps.number("vCPUs", 0)
	sku.MemoryGiB = caps.float("MemoryGB")
	sku.GPUs = caps.number("GPUs", 0)
	sku.MaxDataDisks = caps.number("MaxDataDiskCount", -1)
	for g := range strings.SplitSeq(caps.text("HyperVGenerations"), ",") {
		switch strings.ToUpper(strings.TrimSpace(g)) {
		case "V1":
			sku.Generations = append(sku.Generations, 1)
		case "V2":
			sku.Generations = append(sku.Generations, 2)
		}
	}
	controllers := caps.text("DiskControllerTypes")
	sku.NVMeOnly = strings.Contains(controllers, "NVMe") && !strings.Contains(controllers, "SCSI")
	sku.SpotCapable = caps.flag("LowPriorityCapable")
	sku.PremiumIO = caps.flag("PremiumIO")
	sku.AcceleratedNet = caps.flag("AcceleratedNetworkingEnabled")
	sku.EncryptionAtHost = caps.flag("EncryptionAtHostSupported")
	sku.TrustedLaunchDisabled = caps.flag("TrustedLaunchDisabled")
	sku.Confidential = caps.text("ConfidentialComputingType") != "" || sku.Size.Confidential()
	sku.EphemeralDisk = ephemeralDisk(caps)

	offered := false
	for _, info := range raw.LocationInfo {
		if info == nil || !strings.EqualFold(deref(info.Location), region) {
			continue
		}
		offered = true
		sku.Zones = texts(info.Zones)
		for _, d := range info.ZoneDetails {
			if d != nil && capabilities(d.Capabilities).flag("UltraSSDAvailable") {
				sku.UltraSSDZones = append(sku.UltraSSDZones, texts(d.Name)...)
			}
		}
	}
	if !offered {
		return SKU{}, false
	}
	sku.applyRestrictions(raw.Restrictions, region)
	slices.Sort(sku.Zones)
	slices.Sort(sku.UltraSSDZones)
	return sku, true
}

// applyRestrictions removes what the subscription may not use.
func (s *SKU) applyRestrictions(restrictions []*armcompute.ResourceSKURestrictions, region string) {
	for _, r := range restrictions {
		if r == nil || r.Type == nil {
			continue
		}
		var locations, zones []string
		if r.RestrictionInfo != nil {
			locations, zones = texts(r.RestrictionInfo.Locations), texts(r.RestrictionInfo.Zones)
		}
		here := func(l string) bool { return strings.EqualFold(l, region) }
		if len(locations) == 0 {
			locations = texts(r.Values)
		}
		if !slices.ContainsFunc(locations, here) {
			continue
		}
		switch *r.Type {
		case armcompute.ResourceSKURestrictionsTypeLocation:
			s.Restricted = true
		case armcompute.ResourceSKURestrictionsTypeZone:
			s.Zones = slices.DeleteFunc(s.Zones, func(z string) bool { return slices.Contains(zones, z) })
		}
	}
}

// HoldsOSDisk reports whether an operating system disk fits into the size's local space.
// It is then ephemeral and costs nothing. What Azure calls diskSizeGB are GiB: of a disk of
// 30 it says that it requires 32212254720 bytes.
func (s *SKU) HoldsOSDisk(gib int64) bool { return s.EphemeralDisk.Bytes >= gib<<30 }

// ephemeralDisk picks the local space for an ephemeral operating system disk:
// NVMe first, then the cache, then the temporary disk.
func ephemeralDisk(caps capabilitySet) EphemeralDisk {
	if !caps.flag("EphemeralOSDiskSupported") {
		return EphemeralDisk{}
	}
	const mebi = 1 << 20
	nvme := caps.number("NvmeDiskSizeInMiB", 0)
	if nvme > 0 && strings.Contains(caps.text("SupportedEphemeralOSDiskPlacements"), "NvmeDisk") {
		return EphemeralDisk{nvme * mebi, "NvmeDisk"}
	}
	if cache := caps.number("CachedDiskBytes", 0); cache > 0 {
		return EphemeralDisk{cache, "CacheDisk"}
	}
	if temp := caps.number("MaxResourceVolumeMB", 0); temp > 0 {
		return EphemeralDisk{temp * mebi, "ResourceDisk"}
	}
	return EphemeralDisk{}
}

func arch(azure string) string {
	switch strings.ToLower(azure) {
	case "x64":
		return "amd64"
	case "arm64":
		return "arm64"
	}
	return azure
}

// capabilitySet are the capabilities of a SKU by name.
type capabilitySet map[string]string

func capabilities(list []*armcompute.ResourceSKUCapabilities) capabilitySet {
	set := make(capabilitySet, len(list))
	for _, c := range list {
		if c != nil && c.Name != nil {
			set[*c.Name] = deref(c.Value)
		}
	}
	return set
}

func (c capabilitySet) text(name string) string { return c[name] }

func (c capabilitySet) flag(name string) bool { return strings.EqualFold(c[name], "True") }

func (c capabilitySet) number(name string, missing int64) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(c[name]), 10, 64)
	if err != nil {
		return missing
	}
	return n
}

func (c capabilitySet) float(name string) float64 {
	f, err := strconv.ParseFloat(strings.TrimSpace(c[name]), 64)
	if err != nil {
		return 0
	}
	return f
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

func texts(list []*string) []string {
	var out []string
	for _, p := range list {
		if p != nil {
			out = append(out, *p)
		}
	}
	return out
}
