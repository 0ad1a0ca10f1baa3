package skutable

import (
	"slices"
	"strconv"
	"strings"
)

// gpuQuotaFamily names the quota family of each accelerated series. Azure
// follows no rule here, and two of the names contain spaces.
func gpuQuotaFamily(s Size) string {
	switch s.Series {
	case "NC_V100":
		return "standardNCSv3Family"
	case "NC_T4":
		return "Standard NCASv3_T4 Family"
	case "NC_A100":
		return "StandardNCADSA100v4Family"
	case "NC_H100":
		return "StandardNCadsH100v5Family"
	case "ND_V100":
		return "standardNDSv2Family"
	case "ND_A100":
		if strings.Contains(s.Name, "ams") {
			return "standardNDAMSv4_A100Family"
		}
		return "Standard NDASv4_A100 Family"
	case "ND_H100":
		return "standardNDSH100v5Family"
	case "NV_M60":
		return "standardNVSv3Family"
	case "NV_A10":
		return "StandardNVADSA10v5Family"
	}
	return "standard" + strings.ReplaceAll(s.Series, "_", "") + "Family"
}

// QuotaFamily is the name under which Azure counts the size's vCPUs: the
// family of the Resource SKUs API and the name.value of a compute usage.
// Series up to v5 are upper case (standardDADSv5Family), later ones keep the
// case of the series (StandardDadsv6Family).
func (s Size) QuotaFamily() string {
	if s.GPUs > 0 {
		return gpuQuotaFamily(s)
	}
	series, version, found := strings.Cut(s.Series, "_v")
	if !found {
		return "standard" + strings.ToUpper(series) + "Family"
	}
	switch {
	case s.Family == "B":
		// The burstable series with less memory share the quota of their sibling.
		return "standard" + strings.Replace(series, "l", "", 1) + "v" + version + "Family"
	case s.Version >= 6 || (s.Family == "L" && s.Version >= 4):
		return "Standard" + series + "v" + version + "Family"
	}
	return "standard" + strings.ToUpper(series) + "v" + version + "Family"
}

// DiskControllers lists how the size attaches its disks, in Azure's order.
// Intel and Arm sizes from v6 on have no SCSI.
func (s Size) DiskControllers() []string {
	switch {
	case s.GPUs > 0:
		return []string{"SCSI"}
	case s.Version >= 6 && strings.Contains(s.Series, "a"):
		return []string{"SCSI", "NVMe"}
	case s.Version >= 6:
		return []string{"NVMe"}
	case strings.HasPrefix(s.Series, "Eb"):
		return []string{"SCSI", "NVMe"}
	}
	return []string{"SCSI"}
}

// CachedDiskGiB is the size of the host cache that an ephemeral OS disk may
// use: 25 GiB a vCPU in the general series, 16 in the compute series, none in
// sizes without a local disk and in NVMe-only ones.
func (s Size) CachedDiskGiB() int {
	if s.TempDiskGiB == 0 || s.TempDiskNVMe || s.Family == "L" {
		return 0
	}
	if s.Family == "F" {
		return 16 * s.VCPUs
	}
	return 25 * s.VCPUs
}

// EphemeralOSPlacements lists where an ephemeral OS disk fits, in the form of
// the capability SupportedEphemeralOSDiskPlacements; nil when it cannot.
func (s Size) EphemeralOSPlacements() []string {
	switch {
	case s.TempDiskGiB == 0:
		return nil
	case s.TempDiskNVMe:
		return []string{"NvmeDisk"}
	case s.CachedDiskGiB() == 0:
		return []string{"ResourceDisk"}
	}
	return []string{"ResourceDisk", "CacheDisk"}
}

// UltraSSD says whether the size can attach ultra disks in the zones where it is sold.
func (s Size) UltraSSD() bool {
	return s.PremiumStorage && s.Family != "B" && s.GPUs == 0
}

// EncryptionAtHost says whether the size can encrypt its caches and temporary disk.
func (s Size) EncryptionAtHost() bool { return s.PremiumStorage && s.Series != "NV_M60" }

// AcceleratedNetworking says whether the size's network cards bypass the host.
func (s Size) AcceleratedNetworking() bool { return s.VCPUs >= 2 && s.Series != "NV_M60" }

// TrustedLaunchDisabled says whether trusted launch is impossible in spite of generation 2.
func (s Size) TrustedLaunchDisabled() bool {
	return s.GPUs > 0 && (strings.HasPrefix(s.Series, "ND") || s.Series == "NC_V100") || s.Arch == "arm64" && s.Version < 6
}

// Gen2 says whether the size boots generation 2 images.
func (s Size) Gen2() bool { return slices.Contains(s.HyperVGenerations, 2) }

// MaxNICs is the number of network interfaces that the size can carry.
func (s Size) MaxNICs() int { return max(2, min(8, s.VCPUs/2)) }

// ShortSize is the name without its tier, as the SKU API's size field has it.
func (s Size) ShortSize() string {
	_, short, _ := strings.Cut(s.Name, "_")
	return short
}

// MemoryGBText is the MemoryGB capability: no trailing zeroes.
func (s Size) MemoryGBText() string { return strconv.FormatFloat(s.MemoryGiB, 'f', -1, 64) }
