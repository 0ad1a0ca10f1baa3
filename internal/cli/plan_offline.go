package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/controller/cloudprovider"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// defaultRegion is planned for when nothing says which region it is.
const defaultRegion = "eastus"

// memoryOverhead is the part of memory that Azure's virtualization keeps: what a
// machine reports is that much less than its size's name promises.
const memoryOverhead = 0.075

// maxPodsOverlay is how many pods a node takes with AKS's default network,
// overlay.
const maxPodsOverlay = 250

// catalogFlags say what can be bought.
type catalogFlags struct {
	region string
	file   string
	// prices is a file of what the subscription pays, see [price.Terms].
	prices string
	// told is what a live cluster's controller tells; nil without.
	told *told
}

// source is where a command's catalogue comes from: one for every NodePool, by
// its node class.
type source struct {
	region string
	// note says in one sentence what the prices are worth.
	note    string
	classOf func(nodePool string) string
	byClass func(nodeClass string) *fleet.Catalog
	// excluded says why a size that the region sells is left out, or "".
	excluded func(size string) string
	made     map[string]*fleet.Catalog
	// overlaid is what a NodePool can buy with NodeOverlays, nil where it says nothing of
	// it; the function is nil without any.
	overlaid func(nodePool string) *fleet.Catalog
}

// Catalog implements fleet.Catalogs.
func (s *source) Catalog(_ context.Context, nodePool string) (*fleet.Catalog, error) {
	return s.forPool(nodePool), nil
}

// forPool is what a NodePool can buy.
func (s *source) forPool(name string) *fleet.Catalog {
	if s.overlaid != nil {
		if c := s.overlaid(name); c != nil {
			return c
		}
	}
	return s.forClass(s.classOf(name))
}

func (s *source) forClass(name string) *fleet.Catalog {
	if c := s.made[name]; c != nil {
		return c
	}
	c := s.byClass(name)
	s.made[name] = c
	return c
}

// open reads the catalogue file, or lays out the built-in table for the region
// and the node classes.
func (f catalogFlags) open(classes map[string]*nodeclass.NodeClass, classOf func(string) string) (*source, error) {
	s := &source{classOf: classOf, made: map[string]*fleet.Catalog{}}
	if f.file != "" {
		if f.prices != "" {
			return nil, errors.New("--catalog and --prices-file cannot be given together: a catalogue states its own prices")
		}
		return s, f.openFile(s)
	}
	s.region = cmp.Or(f.region, defaultRegion)
	prices, err := f.openPrices(s.region)
	if err != nil {
		return nil, err
	}
	market := instancetype.Market{Prices: prices.book, Unavailable: calm{}, Quota: calm{}, Disks: prices.disks}
	var quotas []model.Quota
	s.note = prices.note + "; spot prices and zones are estimates"
	if f.told == nil {
		s.note += "; quota and capacity are taken for granted"
	} else {
		refused, err := f.told.refusals(time.Now)
		if err != nil {
			return nil, err
		}
		left := f.told.quotas(time.Now)
		market.Unavailable, market.Quota, quotas = refused, left, left.Quotas()
		s.note += fmt.Sprintf("; quota and refusals from the controller's snapshot of %s",
			f.told.document.Status.Written.UTC().Format(time.RFC3339))
	}
	offline := instancetype.New(instancetype.Region{Name: s.region, MemoryOverhead: memoryOverhead, DefaultMaxPods: maxPodsOverlay},
		market)
	offline.SetSKUs(tableSKUs(prices.table, prices.nearest))
	s.excluded = func(size string) string {
		for _, e := range offline.For(defaultNodeClass("")).Excluded {
			if strings.EqualFold(e.Size, size) {
				return e.Reason
			}
		}
		return ""
	}
	s.byClass = func(name string) *fleet.Catalog {
		class := classes[name]
		if class == nil {
			class = defaultNodeClass(name)
		}
		return &fleet.Catalog{Axes: instancetype.Axes(), InstanceTypes: offline.For(class).Catalog.InstanceTypes, Quotas: quotas}
	}
	return s, nil
}

func (f catalogFlags) openFile(s *source) error {
	r, err := os.Open(f.file)
	if err != nil {
		return fmt.Errorf("open the catalogue: %w", err)
	}
	document, err := kube.ReadCatalog(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return fmt.Errorf("%s: %w", f.file, err)
	}
	if f.region != "" && document.Region != f.region {
		return fmt.Errorf("%s: is a catalogue of region %q, but --region says %q", f.file, document.Region, f.region)
	}
	c, err := document.Catalog()
	if err != nil {
		return fmt.Errorf("%s: %w", f.file, err)
	}
	s.region, s.note = document.Region, "prices of "+f.file
	s.byClass = func(string) *fleet.Catalog { return c }
	return nil
}

func defaultNodeClass(name string) *nodeclass.NodeClass {
	class := &v1beta1.AKSNodeClass{}
	class.Name = name
	value := cloudprovider.ClassValue(class)
	return &value
}

// offlineNodeClass reads an AKSNodeClass that no API server has checked.
func offlineNodeClass(o *unstructured.Unstructured) (*nodeclass.NodeClass, error) {
	class := &v1beta1.AKSNodeClass{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, class); err != nil {
		return nil, err
	}
	if n := class.Spec.MaxPods; n != nil && (*n < 10 || *n > 250) {
		return nil, fmt.Errorf("spec.maxPods: got %d, allowed: 10 to 250", *n)
	}
	if n := class.Spec.OSDiskSizeGB; n != nil && (*n < 30 || *n > 2048) {
		return nil, fmt.Errorf("spec.osDiskSizeGB: got %d, allowed: 30 to 2048", *n)
	}
	if dns := class.Spec.LocalDNS; dns != nil && dns.Mode == v1beta1.LocalDNSModeRequired {
		state := v1beta1.LocalDNSStateEnabled
		class.Status.LocalDNSState = &state
	}
	value := cloudprovider.ClassValue(class)
	return &value, nil
}

// calm is a cloud that sells everything.
type calm struct{}

func (calm) Unavailable(*instancetype.SKU, string, model.CapacityType) string { return "" }
func (calm) Left(string) (int64, bool)                                        { return 0, false }
func (calm) Revision() uint64                                                 { return 1 }

// tableSKUs are the sizes that the region sells, as Azure would describe them.
func tableSKUs(table *skutable.Table, region string) []instancetype.SKU {
	var skus []instancetype.SKU
	for _, s := range table.Sizes() {
		if _, sold := table.Price(s.Name, region); !sold {
			continue
		}
		sku := instancetype.SKU{
			Name: s.Name, Family: s.QuotaFamily(), Arch: s.Arch,
			VCPUs: int64(s.VCPUs), MemoryGiB: s.MemoryGiB, GPUs: int64(s.GPUs),
			Generations: s.HyperVGenerations, MaxDataDisks: int64(s.MaxDataDisks),
			Zones:       table.Zones(s.Name, region),
			NVMeOnly:    !slices.Contains(s.DiskControllers(), "SCSI"),
			SpotCapable: s.SpotCapable(), PremiumIO: s.PremiumStorage, AcceleratedNet: s.AcceleratedNetworking(),
			EncryptionAtHost: s.EncryptionAtHost(), TrustedLaunchDisabled: s.TrustedLaunchDisabled(),
		}
		sku.Size, sku.SizeErr = instancetype.ParseSize(s.Name)
		sku.Confidential = sku.Size.Confidential()
		if s.UltraSSD() {
			sku.UltraSSDZones = sku.Zones
		}
		sku.EphemeralDisk = ephemeralDisk(s)
		skus = append(skus, sku)
	}
	return skus
}

// sizeAndFamily is the full name of a size of the built-in table, whose prefix may be left
// out, and the name of its family's quota.
func sizeAndFamily(name string) (size, family string, err error) {
	table, err := skutable.Load()
	if err != nil {
		return "", "", err
	}
	for _, s := range table.Sizes() {
		if strings.EqualFold(s.Name, name) || strings.EqualFold(s.Name, "Standard_"+name) {
			return s.Name, s.QuotaFamily(), nil
		}
	}
	return "", "", fmt.Errorf("got size %q, which Azure does not have as far as nap knows; nap catalog -o name lists them", name)
}

// ephemeralDisk is the first local space that can hold an operating system disk,
// in the order in which nap uses them.
func ephemeralDisk(s skutable.Size) instancetype.EphemeralDisk {
	const gibi, giga = 1 << 30, 1_000_000_000
	decimal := func(gib int) int64 { return int64(gib) * gibi / giga }
	switch placements := s.EphemeralOSPlacements(); {
	case len(placements) == 0:
		return instancetype.EphemeralDisk{}
	case s.TempDiskNVMe && slices.Contains(placements, "NvmeDisk"):
		return instancetype.EphemeralDisk{GB: decimal(s.TempDiskGiB), Placement: "NvmeDisk"}
	case s.CachedDiskGiB() > 0:
		return instancetype.EphemeralDisk{GB: decimal(s.CachedDiskGiB()), Placement: "CacheDisk"}
	default:
		return instancetype.EphemeralDisk{GB: decimal(s.TempDiskGiB), Placement: "ResourceDisk"}
	}
}
