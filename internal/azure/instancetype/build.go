package instancetype

import (
	"slices"
	"strconv"

	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Labels that the catalogue sets beside those in package model.
const (
	LabelArch   = "kubernetes.io/arch"
	LabelOS     = "kubernetes.io/os"
	LabelRegion = "topology.kubernetes.io/region"

	nap = "karpenter.azure.com/"
	aks = "kubernetes.azure.com/"

	LabelSKUName            = nap + "sku-name"
	LabelSKUFamily          = nap + "sku-family"
	LabelSKUSeries          = nap + "sku-series"
	LabelSKUVersion         = nap + "sku-version"
	LabelSKUCPU             = nap + "sku-cpu"
	LabelSKUMemory          = nap + "sku-memory" // MiB
	LabelSKUGPUName         = nap + "sku-gpu-name"
	LabelSKUGPUManufacturer = nap + "sku-gpu-manufacturer"
	LabelSKUGPUCount        = nap + "sku-gpu-count"
	LabelSKUAcceleratedNet  = nap + "sku-networking-accelerated"
	LabelSKUPremium         = model.LabelPremiumStorage
	LabelSKUUltraSSD        = model.LabelUltraSSD
	LabelSKUEphemeralGB     = nap + "sku-storage-ephemeralos-maxsize"
	LabelPlacementScope     = nap + "placement-scope"

	LabelAKSCPU           = aks + "sku-cpu"
	LabelAKSMemory        = aks + "sku-memory"
	LabelAKSMode          = aks + "mode"
	LabelAKSScaleSet      = aks + "scalesetpriority"
	LabelAKSPriority      = aks + "priority"
	LabelAKSOSSKU         = aks + "os-sku"
	LabelAKSFIPS          = aks + "fips_enabled"
	LabelAKSCluster       = aks + "cluster"
	LabelAKSEBPFDataplane = aks + "ebpf-dataplane"
)

// Values of LabelPlacementScope, and the zone of machines without one.
const (
	ScopeZonal    = "zonal"
	ScopeRegional = "regional"
	RegionalZone  = "0"
)

// The quota lines that are not a family's.
const (
	QuotaRegional = "cores"
	QuotaSpot     = "lowPriorityCores"
)

// AzureDiskCSIDriver is the driver whose disks take the data disk slots.
const AzureDiskCSIDriver = "disk.csi.azure.com"

// KnownLabels are the labels that the catalogue decides. A requirement on any
// other label is met by putting the label on the node.
func KnownLabels() map[string]bool {
	known := map[string]bool{}
	for _, key := range []string{
		model.LabelInstanceType, model.LabelZone, model.LabelCapacityType, LabelArch, LabelOS, LabelRegion,
		LabelSKUName, LabelSKUFamily, LabelSKUSeries, LabelSKUVersion, LabelSKUCPU, LabelSKUMemory,
		LabelSKUGPUName, LabelSKUGPUManufacturer, LabelSKUGPUCount, LabelSKUAcceleratedNet, LabelSKUPremium,
		LabelSKUUltraSSD, LabelSKUEphemeralGB, LabelPlacementScope,
		LabelAKSCPU, LabelAKSMemory, LabelAKSMode, LabelAKSScaleSet, LabelAKSPriority, LabelAKSOSSKU, LabelAKSFIPS, LabelAKSCluster,
	} {
		known[key] = true
	}
	return known
}

// MissingPrice is what an offering costs per hour whose price is not known (Unpriced): enough
// to be the last choice, and visible as such.
func MissingPrice() model.Money { return model.USD(999) }

// Region is what the whole region has in common.
type Region struct {
	Name string // eastus
	// MemoryOverhead is the fraction of memory that a machine never reports.
	MemoryOverhead float64
	// ExactResources counts fractions of a GiB of memory. See config.Config.ExactResources.
	ExactResources bool
	// Labels that every node of the cluster carries, such as
	// kubernetes.azure.com/cluster.
	Labels map[string]string
	// DefaultMaxPods applies where the node class does not say.
	DefaultMaxPods int
}

// entry is an instance type before prices and availability.
type entry struct {
	sku  *SKU
	kind model.InstanceType // offerings without price and availability
	// managedDiskGiB is the size of the managed operating system disk, zero where the
	// disk is local.
	managedDiskGiB int64
}

// image is what the labels of an instance type depend on in a node class.
type image struct {
	azureLinux, fips bool
}

func imageOf(class *nodeclass.NodeClass) image {
	return image{class.ImageFamily == "AzureLinux", class.FIPS}
}

// sharedTypes are the instance types of a region for node classes with one kind of image, without what
// the size of the disk and the number of pods decide: their catalogues share all of it.
type sharedTypes struct {
	image image
	// types are by index of the size, without a name where no class has used the size yet.
	types  []model.InstanceType
	labels offeringLabels
}

// buildStatic lays out every size that the class may use, by name. Shared has its image.
func buildStatic(skus []SKU, region Region, class *nodeclass.NodeClass, shared *sharedTypes) ([]entry, []Exclusion) {
	entries := make([]entry, 0, len(skus))
	var excluded []Exclusion
	axes := Axes()
	for i := range skus {
		if reason := exclude(&skus[i], class); reason != "" {
			excluded = append(excluded, Exclusion{skus[i].Name, reason})
			continue
		}
		if shared.types[i].Name == "" {
			shared.types[i] = instanceType(&skus[i], region, shared)
		}
		e := entry{sku: &skus[i], kind: shared.types[i]}
		e.kind.Capacity = capacity(&skus[i], class.OSDiskSizeGB, maxPodsOf(class, region), region, axes)
		e.kind.Overhead = overheadOf(&skus[i], e.kind.Capacity)
		if !skus[i].HoldsOSDisk(class.OSDiskSizeGB) {
			e.managedDiskGiB = class.OSDiskSizeGB
		}
		entries = append(entries, e)
	}
	return entries, excluded
}

// maxPodsOf is the most pods on a node of a class.
func maxPodsOf(class *nodeclass.NodeClass, region Region) int64 {
	if class.MaxPods == 0 {
		return int64(region.DefaultMaxPods)
	}
	return int64(class.MaxPods)
}

// instanceType is a size with an image, without capacity and overhead.
func instanceType(s *SKU, region Region, shared *sharedTypes) model.InstanceType {
	t := model.InstanceType{
		Name:    s.Name,
		Labels:  labels(s, region, shared.image),
		Choices: map[string][]string{LabelAKSMode: {"user", "system"}},
		GPU:     gpuOf(s),
	}
	if len(s.UltraSSDZones) > 0 {
		t.Choices[LabelSKUUltraSSD] = []string{"false", "true"}
	} else {
		t.Labels[LabelSKUUltraSSD] = "false"
	}
	if s.MaxDataDisks >= 0 {
		t.VolumeSlots = map[string]int{AzureDiskCSIDriver: int(s.MaxDataDisks)}
	}
	for _, zone := range append(slices.Clone(s.Zones), "") {
		t.Offerings = append(t.Offerings, offering(s, region.Name, zone, model.OnDemand, shared.labels))
		if s.SpotCapable {
			t.Offerings = append(t.Offerings, offering(s, region.Name, zone, model.Spot, shared.labels))
		}
	}
	return t
}

func labels(s *SKU, region Region, on image) map[string]string {
	cpu, memory := strconv.FormatInt(s.VCPUs, 10), strconv.FormatInt(int64(s.MemoryGiB*1024), 10)
	osSKU := "Ubuntu"
	if on.azureLinux {
		osSKU = "AzureLinux"
	}
	l := map[string]string{
		model.LabelInstanceType: s.Name,
		LabelArch:               s.Arch,
		LabelOS:                 "linux",
		LabelRegion:             region.Name,
		LabelSKUName:            s.Name,
		LabelSKUFamily:          s.Size.Family,
		LabelSKUSeries:          s.Size.Series(),
		LabelSKUVersion:         s.Size.VersionNumber(),
		LabelSKUCPU:             cpu,
		LabelSKUMemory:          memory,
		LabelAKSCPU:             cpu,
		LabelAKSMemory:          memory,
		LabelSKUGPUCount:        strconv.FormatInt(s.GPUs, 10),
		LabelSKUAcceleratedNet:  strconv.FormatBool(s.AcceleratedNet),
		LabelSKUPremium:         strconv.FormatBool(s.PremiumIO),
		LabelAKSOSSKU:           osSKU,
	}
	if s.GPUs > 0 {
		l[LabelSKUGPUManufacturer] = s.Size.GPUVendor()
		if s.Size.Accelerator != "" {
			l[LabelSKUGPUName] = s.Size.Accelerator
		}
	}
	if gb := s.EphemeralDisk.GB(); gb > 0 {
		l[LabelSKUEphemeralGB] = strconv.FormatInt(gb, 10)
	}
	if on.fips {
		l[LabelAKSFIPS] = "true"
	}
	for k, v := range region.Labels {
		l[k] = v
	}
	return l
}

// ZoneLabel is the value of the zone label for an Azure zone, "0" for none.
func ZoneLabel(region, zone string) string {
	if zone == "" {
		return RegionalZone
	}
	return region + "-" + zone
}

// AzureZone is the inverse of ZoneLabel: empty for regional placement.
func AzureZone(region, label string) string {
	if label == RegionalZone {
		return ""
	}
	if len(label) > len(region)+1 && label[:len(region)+1] == region+"-" {
		return label[len(region)+1:]
	}
	return label
}

// Quotas are the quota lines that a machine draws on: spot has one of its own,
// everything else its family's and the region's.
func Quotas(s *SKU, capacityType model.CapacityType) []model.QuotaUse {
	if capacityType == model.Spot {
		return []model.QuotaUse{{Quota: QuotaSpot, Amount: s.VCPUs}}
	}
	return []model.QuotaUse{{Quota: s.Family, Amount: s.VCPUs}, {Quota: QuotaRegional, Amount: s.VCPUs}}
}

// offeringLabels has the labels of all offerings of a catalogue, which a thousand sizes have
// in common. They must not be changed.
type offeringLabels map[offeringKind]map[string]string

// offeringKind is what the labels of an offering depend on.
type offeringKind struct {
	// zone is Azure's, empty for a regional offering.
	zone         string
	capacityType model.CapacityType
	// noUltraSSD says that other zones of the size have ultra disks and this one has not.
	noUltraSSD bool
}

func (l offeringLabels) of(kind offeringKind, region string) map[string]string {
	if have := l[kind]; have != nil {
		return have
	}
	scope, priority := ScopeZonal, "regular"
	if kind.zone == "" {
		scope = ScopeRegional
	}
	if kind.capacityType == model.Spot {
		priority = "spot"
	}
	labels := map[string]string{
		model.LabelZone:         ZoneLabel(region, kind.zone),
		model.LabelCapacityType: string(kind.capacityType),
		LabelPlacementScope:     scope,
		LabelAKSScaleSet:        priority,
		LabelAKSPriority:        priority,
	}
	if kind.noUltraSSD {
		labels[LabelSKUUltraSSD] = "false"
	}
	l[kind] = labels
	return labels
}

func offering(s *SKU, region, zone string, capacityType model.CapacityType, shared offeringLabels) model.Offering {
	kind := offeringKind{zone, capacityType, len(s.UltraSSDZones) > 0 && !slices.Contains(s.UltraSSDZones, zone)}
	return model.Offering{
		Zone: ZoneLabel(region, zone), CapacityType: capacityType, Labels: shared.of(kind, region), Quotas: Quotas(s, capacityType),
	}
}
