package offline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/image"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/controller/cloudprovider"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// DefaultRegion is planned for when nothing says which region it is.
const DefaultRegion = "eastus"

// MemoryOverhead is the part of memory that Azure's virtualization keeps: what a
// machine reports is that much less than its size's name promises.
const MemoryOverhead = 0.075

// maxPodsOverlay is how many pods a node takes with AKS's default network,
// overlay.
const maxPodsOverlay = 250

// Source is where a catalogue comes from that no cloud is asked for: one for every
// NodePool, by its node class.
type Source struct {
	// Region is the region of the prices, as Azure's API writes it.
	Region string
	// Note says in one sentence what the prices are worth.
	Note string
	// ClassOf is the name of the node class of a NodePool.
	ClassOf func(nodePool string) string
	// Excluded says why a size that the region sells is left out, or ""; the function is nil
	// for a catalogue of a file.
	Excluded func(size string) string
	// Unknown reports whether nothing is known of a size, since the built-in table, which lacks
	// sizes that Azure sells, lacks it; the function is nil for a catalogue of a file.
	Unknown func(size string) bool
	// Overlaid is what a NodePool can buy with NodeOverlays, nil where they say nothing of
	// it; the function is nil without any.
	Overlaid func(nodePool string) *fleet.Catalog

	byClass func(nodeClass string) *fleet.Catalog
	made    map[string]*fleet.Catalog
}

// Catalog implements fleet.Catalogs.
func (s *Source) Catalog(_ context.Context, nodePool string) (*fleet.Catalog, error) {
	return s.ForPool(nodePool), nil
}

// ForPool is what a NodePool can buy.
func (s *Source) ForPool(name string) *fleet.Catalog {
	if s.Overlaid != nil {
		if c := s.Overlaid(name); c != nil {
			return c
		}
	}
	return s.ForClass(s.ClassOf(name))
}

// ForClass is what NodePools of a node class can buy; a class that is not known is planned
// with defaults.
func (s *Source) ForClass(name string) *fleet.Catalog {
	if c := s.made[name]; c != nil {
		return c
	}
	c := s.byClass(name)
	s.made[name] = c
	return c
}

// Told is what is known of quota and of what Azure has refused.
type Told struct {
	Unavailable instancetype.Unavailable
	Quota       instancetype.Quota
	Quotas      []model.Quota
	// Note says where that is from.
	Note string
	// Terms are what the subscription pays where no file says that, nil for retail prices.
	Terms *price.Terms
	// Retail are the retail prices that a controller has written down ([price.Memory]), empty
	// for the built-in ones.
	Retail string
	// Advance counts reservations and savings plans, less what Machines use up, which are
	// sizes of on-demand machines by name. Else they are left out.
	Advance  bool
	Machines map[string]string
	// Cluster is the value of the label kubernetes.azure.com/cluster, which all nodes have; empty where
	// it is not known.
	Cluster string
}

// unknownCluster stands for the value of the cluster's own label.
const unknownCluster = "unknown"

// Granted is a cloud that sells everything.
func Granted() Told {
	return Told{Unavailable: calm{}, Quota: calm{}, Note: "quota and capacity are taken for granted"}
}

// Open lays out the built-in table for a region ([DefaultRegion] for an empty one), with
// the prices of a file over it unless that is "", for node classes by name.
func Open(region, pricesFile string, classes map[string]*nodeclass.NodeClass, told Told) (*Source, error) {
	s := &Source{Region: cmp.Or(region, DefaultRegion), made: map[string]*fleet.Catalog{}}
	prices, err := OpenPrices(s.Region, pricesFile, told.Retail)
	if err != nil {
		return nil, err
	}
	if pricesFile == "" && told.Terms != nil {
		prices.Book.SetTerms(told.Terms)
		prices.Note = "what the controller says that the subscription pays; for the rest " + prices.Note
	}
	market := instancetype.Market{Prices: prices.Book, Unavailable: told.Unavailable, Quota: told.Quota, Disks: prices.Disks}
	quotas, advance := told.Quotas, prices.Book.Advance()
	prices.Note += advanceNote(advance != nil, &told)
	if !told.Advance {
		advance = nil
	}
	if advance != nil {
		prices.Book.SetMachines(told.Machines, prices.Book.Change())
		market.Cover, quotas = prices.Book, append(slices.Clone(quotas), prices.Book.Lines()...)
	}
	estimates := "zones are"
	if prices.Book.SpotEstimated() {
		estimates = "spot prices and zones are"
	}
	s.Note = prices.Note + "; " + estimates + " estimates; " + told.Note
	offline := instancetype.New(instancetype.Region{
		Name: s.Region, MemoryOverhead: MemoryOverhead, DefaultMaxPods: maxPodsOverlay,
		Labels: map[string]string{instancetype.LabelAKSCluster: cmp.Or(told.Cluster, unknownCluster)},
	}, market)
	offline.SetSKUs(prices.SKUs())
	s.Excluded = func(size string) string { return offline.For(withImages(DefaultNodeClass(""))).WhyExcluded(size) }
	s.Unknown = func(size string) bool { _, _, err := SizeAndFamily(size); return err != nil }
	ofKind := map[*instancetype.Built]*fleet.Catalog{} // node classes that differ in nothing that matters share one
	s.byClass = func(name string) *fleet.Catalog {
		class := classes[name]
		if class == nil {
			class = DefaultNodeClass(name)
		}
		built := offline.For(withImages(class))
		if ofKind[built] == nil {
			types := prices.Book.Beyond(built.Catalog.InstanceTypes)
			ofKind[built] = &fleet.Catalog{
				Axes: instancetype.Axes(), InstanceTypes: types, LabelKeys: built.Catalog.LabelKeys, Quotas: quotas, Advance: advance,
			}
		}
		return ofKind[built]
	}
	return s, nil
}

// OpenFile reads a catalogue in the form that nap catalog -o json prints; a region that is
// given must be its own.
func OpenFile(file, region string) (*Source, error) {
	r, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("open the catalogue: %w", err)
	}
	document, err := kube.ReadCatalog(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if region != "" && document.Region != region {
		return nil, fmt.Errorf("%s: is a catalogue of region %q, but --region says %q", file, document.Region, region)
	}
	c, err := document.Catalog()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &Source{
		Region: document.Region, Note: "prices of " + file, made: map[string]*fleet.Catalog{},
		byClass: func(string) *fleet.Catalog { return c },
	}, nil
}

// Edited is a source whose offerings are changed.
func (s *Source) Edited(edit func(*model.InstanceType, *model.Offering)) *Source {
	out := *s
	out.made = map[string]*fleet.Catalog{}
	out.byClass = func(name string) *fleet.Catalog { return editedCatalog(s.ForClass(name), edit) }
	if s.Overlaid == nil {
		return &out
	}
	pools := map[string]*fleet.Catalog{}
	out.Overlaid = func(pool string) *fleet.Catalog {
		if catalog := s.Overlaid(pool); pools[pool] == nil && catalog != nil {
			pools[pool] = editedCatalog(catalog, edit)
		}
		return pools[pool]
	}
	return &out
}

// editedCatalog is a catalogue whose offerings are changed.
func editedCatalog(of *fleet.Catalog, edit func(*model.InstanceType, *model.Offering)) *fleet.Catalog {
	catalog := *of
	catalog.InstanceTypes = slices.Clone(catalog.InstanceTypes)
	for i := range catalog.InstanceTypes {
		t := &catalog.InstanceTypes[i]
		t.Offerings = slices.Clone(t.Offerings)
		for j := range t.Offerings {
			edit(t, &t.Offerings[j])
		}
	}
	return &catalog
}

// latest is from which Kubernetes version on families mean the releases that they mean today.
const latest = "1.34"

// withImages is a node class with the images that it may use, where it has none: sizes which run none
// of them are not bought. A family that is not known is refused elsewhere.
func withImages(class *nodeclass.NodeClass) *nodeclass.NodeClass {
	if len(class.Images) > 0 {
		return class
	}
	own := *class
	own.Images, _ = image.Definitions(class, cmp.Or(class.KubernetesVersion, latest))
	return &own
}

// DefaultNodeClass is a node class with nothing said in it.
func DefaultNodeClass(name string) *nodeclass.NodeClass {
	class := &v1beta1.AKSNodeClass{}
	class.Name = name
	value := cloudprovider.ClassValue(class)
	return &value
}

// ReadNodeClass reads an AKSNodeClass that no API server has checked.
func ReadNodeClass(o *unstructured.Unstructured) (*nodeclass.NodeClass, error) {
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

func (calm) Unavailable(*instancetype.SKU, string, model.CapacityType) (string, bool) {
	return "", false
}
func (calm) Left(string) (int64, bool) { return 0, false }
func (calm) Revision() uint64          { return 1 }

// SKUs are the sizes that the region sells, as Azure would describe them.
func (p *Prices) SKUs() []instancetype.SKU {
	table, region := p.Table, p.nearest
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

// SizeAndFamily is the full name of a size of the built-in table, whose prefix may be left
// out, and the name of its family's quota.
func SizeAndFamily(name string) (size, family string, err error) {
	table, err := skutable.Load()
	if err != nil {
		return "", "", err
	}
	for _, s := range table.Sizes() {
		if strings.EqualFold(s.Name, name) || strings.EqualFold(s.Name, "Standard_"+name) {
			return s.Name, s.QuotaFamily(), nil
		}
	}
	return "", "", fmt.Errorf("got size %q, which nap's built-in table lacks; nap catalog -o name lists what it has", name)
}

// ephemeralDisk is the first local space that can hold an operating system disk,
// in the order in which nap uses them.
func ephemeralDisk(s skutable.Size) instancetype.EphemeralDisk {
	bytes := func(gib int) int64 { return int64(gib) << 30 }
	switch placements := s.EphemeralOSPlacements(); {
	case len(placements) == 0:
		return instancetype.EphemeralDisk{}
	case s.TempDiskNVMe && slices.Contains(placements, "NvmeDisk"):
		return instancetype.EphemeralDisk{Bytes: bytes(s.TempDiskGiB), Placement: "NvmeDisk"}
	case s.CachedDiskGiB() > 0:
		return instancetype.EphemeralDisk{Bytes: bytes(s.CachedDiskGiB()), Placement: "CacheDisk"}
	default:
		return instancetype.EphemeralDisk{Bytes: bytes(s.TempDiskGiB), Placement: "ResourceDisk"}
	}
}
