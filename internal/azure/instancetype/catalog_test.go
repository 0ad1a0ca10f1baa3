package instancetype

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/model"
)

// market is a market that a test sets.
type market struct {
	price    model.Money
	nodeCost model.Money
	noQuota  bool
	blocked  map[string]string // zone -> why
	left     map[string]int64
	revision uint64
}

func (m *market) Price(string, model.CapacityType) (model.Money, bool) { return m.price, m.price > 0 }
func (m *market) NodeCost(string, model.CapacityType) model.Money      { return m.nodeCost }
func (m *market) Revision() uint64                                     { return m.revision }
func (m *market) Left(name string) (int64, bool)                       { n, ok := m.left[name]; return n, ok }
func (m *market) Unavailable(_ *SKU, zone string, _ model.CapacityType) (string, bool) {
	return m.blocked[zone], m.noQuota && m.blocked[zone] != ""
}

// tiers are disk prices that a test reads back: the size in GiB, and a million more
// for a premium disk.
type tiers struct{}

func (tiers) OSDisk(gib int64, premium bool) model.Money {
	if premium {
		gib += 1_000_000
	}
	return model.Money(gib)
}

func newCatalog(m *market, skus ...SKU) *Catalog {
	c := New(Region{Name: "eastus", MemoryOverhead: 0.075, DefaultMaxPods: 250}, Market{Prices: m, Unavailable: m, Quota: m})
	c.SetSKUs(skus)
	return c
}

func class() *nodeclass.NodeClass {
	return &nodeclass.NodeClass{Name: "default", OSDiskSizeGB: 128, ImageFamily: "Ubuntu"}
}

func sku(name string, vcpus int64, memory float64, change ...func(*SKU)) SKU {
	s := SKU{Name: name, Family: "standardTestFamily", Arch: "amd64", VCPUs: vcpus, MemoryGiB: memory, Generations: []int{1, 2},
		MaxDataDisks: 8, Zones: []string{"1", "2", "3"}, SpotCapable: true, EncryptionAtHost: true}
	s.Size, s.SizeErr = ParseSize(name)
	for _, f := range change {
		f(&s)
	}
	return s
}

func TestCapacityAndOverheadAreExact(t *testing.T) {
	tests := []struct {
		name          string
		vcpus         int64
		memory        float64
		reservedCPU   int64 // milli-cores
		reservedMiB   int64
		capacityBytes int64
		allocatable   string // MiB, as published
	}{
		{"Standard_D2s_v5", 2, 8, 100, 1843, 7945689497, "4984.6"},
		{"Standard_D4s_v5", 4, 16, 140, 2662, 15891378995, "11743.2"},
		{"Standard_D8s_v5", 8, 32, 180, 3645, 31782757990, "25915.4"},
		{"Standard_D16s_v5", 16, 64, 260, 5611, 63565515980, "54259.8"},
		{"Standard_D32s_v5", 32, 128, 420, 9543, 127131031961, "110948.6"},
		{"Standard_D64s_v5", 64, 256, 740, 12165, 254262063923, "229568.2"},
		{"Standard_D96s_v5", 96, 384, 1060, 14786, 381393095884, "348188.8"},
		{"Standard_F2s_v2", 2, 4, 100, 1024, 3972844748, "2014.8"},
		{"Standard_DS2_v2", 2, 7, 100, 1638, 6952478310, "4242.4"},
		{"Standard_A2_v2", 2, 3.5, 100, 896, 2979633561, "1195.6"},
		{"Standard_NC24ads_A100_v4", 24, 220, 340, 11427, 218506461184, "196207.0"},
	}
	for _, tt := range tests {
		built := newCatalog(&market{price: 1}, sku(tt.name, tt.vcpus, tt.memory)).For(class())
		if len(built.Catalog.InstanceTypes) != 1 {
			t.Errorf("%s is left out: %v", tt.name, built.Excluded)
			continue
		}
		it := built.Catalog.InstanceTypes[0]
		if got := it.Capacity.Get(model.Memory); got != tt.capacityBytes {
			t.Errorf("%s: memory capacity %d, want %d", tt.name, got, tt.capacityBytes)
		}
		if got := it.Overhead.Get(model.CPU); got != tt.reservedCPU {
			t.Errorf("%s: CPU overhead %dm, want %dm", tt.name, got, tt.reservedCPU)
		}
		if got, want := it.Overhead.Get(model.Memory), (tt.reservedMiB+750)<<20; got != want {
			t.Errorf("%s: memory overhead %d, want %d", tt.name, got, want)
		}
		if got := fmt.Sprintf("%.1f", float64(it.Allocatable().Get(model.Memory))/(1<<20)); got != tt.allocatable {
			t.Errorf("%s: allocatable memory %s MiB, want %s", tt.name, got, tt.allocatable)
		}
		if it.Capacity.Get(model.EphemeralStorage) != 128_000_000_000 || it.Capacity.Get(model.Pods) != 250 {
			t.Errorf("%s: capacity %v, want 128 GB of disk and 250 pods", tt.name, it.Capacity)
		}
	}
}

func TestTrap7MemoryFractionsCountWithExactResources(t *testing.T) {
	for exact, want := range map[bool]int64{false: 3 << 30, true: 7 << 29} {
		c := New(Region{Name: "eastus", DefaultMaxPods: 250, ExactResources: exact},
			Market{Prices: &market{price: 1}, Unavailable: &market{}, Quota: &market{}})
		c.SetSKUs([]SKU{sku("Standard_A2_v2", 2, 3.5)})
		types := c.For(class()).Catalog.InstanceTypes
		if len(types) != 1 || types[0].Capacity.Get(model.Memory) != want {
			t.Errorf("exact %v: %+v, want %d bytes of 3.5 GiB", exact, types, want)
		}
	}
}

func TestTrap8AllocatableDiskExcludesEvictionThreshold(t *testing.T) {
	c := newCatalog(&market{price: 1}, sku("Standard_D4s_v5", 4, 16))
	allocatable := c.For(class()).Catalog.InstanceTypes[0].Allocatable()
	if got, want := allocatable.Get(model.EphemeralStorage), int64(115_200_000_000); got != want {
		t.Errorf("%d bytes of disk for pods, want %d", got, want)
	}
}

func TestKubeReservedCPUByBands(t *testing.T) {
	for vcpus, want := range map[int64]int64{1: 60, 2: 100, 4: 140, 8: 180, 16: 260, 24: 340, 32: 420, 64: 740, 96: 1060} {
		if got := KubeReservedCPU(vcpus); got != want {
			t.Errorf("%d vCPUs: %dm, want %dm", vcpus, got, want)
		}
	}
}

func TestOfferingsOfZonalSize(t *testing.T) {
	m := &market{price: model.USD(0.192)}
	built := newCatalog(m, sku("Standard_D4s_v5", 4, 16)).For(class())
	var got []string
	for _, o := range built.Catalog.InstanceTypes[0].Offerings {
		got = append(got, fmt.Sprintf("%s %s %s %s %v", o.Zone, o.CapacityType,
			o.Labels[LabelPlacementScope], o.Labels[LabelAKSPriority], o.Price))
	}
	want := []string{
		"eastus-1 on-demand zonal regular $0.192/h", "eastus-1 spot zonal spot $0.192/h",
		"eastus-2 on-demand zonal regular $0.192/h", "eastus-2 spot zonal spot $0.192/h",
		"eastus-3 on-demand zonal regular $0.192/h", "eastus-3 spot zonal spot $0.192/h",
		"0 on-demand regional regular $0.192/h", "0 spot regional spot $0.192/h",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("offerings (-want +got):\n%s", diff)
	}
}

func TestLabelsOfSize(t *testing.T) {
	gpu := sku("Standard_NC24ads_A100_v4", 24, 220, func(s *SKU) {
		s.GPUs, s.AcceleratedNet, s.PremiumIO = 1, true, true
		s.EphemeralDisk = EphemeralDisk{Bytes: 960e9, Placement: "NvmeDisk"}
		s.UltraSSDZones = []string{"1"}
	})
	it := newCatalog(&market{price: 1}, gpu).For(class()).Catalog.InstanceTypes[0]
	want := map[string]string{
		model.LabelInstanceType: "Standard_NC24ads_A100_v4", LabelArch: "amd64", LabelOS: "linux", LabelRegion: "eastus",
		LabelSKUName: "Standard_NC24ads_A100_v4", LabelSKUFamily: "N", LabelSKUSeries: "NCads_A100_v4", LabelSKUVersion: "4",
		LabelSKUCPU: "24", LabelAKSCPU: "24", LabelSKUMemory: "225280", LabelAKSMemory: "225280",
		LabelSKUGPUCount: "1", LabelSKUGPUManufacturer: "nvidia", LabelSKUGPUName: "A100",
		LabelSKUAcceleratedNet: "true", LabelSKUPremium: "true", LabelSKUEphemeralGB: "960", LabelAKSOSSKU: "Ubuntu",
	}
	if diff := cmp.Diff(want, it.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if got := it.Capacity.Get(Axes().Index("nvidia.com/gpu")); got != 1 {
		t.Errorf("%d nvidia.com/gpu, want 1", got)
	}
	if it.VolumeSlots[AzureDiskCSIDriver] != 8 {
		t.Errorf("volume slots %v, want 8", it.VolumeSlots)
	}
	if it.Offerings[0].Labels[LabelSKUUltraSSD] != "" || it.Offerings[2].Labels[LabelSKUUltraSSD] != "false" {
		t.Errorf("ultra disks: zone 1 %q, zone 2 %q; want a choice in zone 1 alone", it.Offerings[0].Labels, it.Offerings[2].Labels)
	}
}

func TestTrap22EveryExclusionHasReason(t *testing.T) {
	yes := true
	tests := []struct {
		sku    SKU
		class  func(*nodeclass.NodeClass)
		reason string
	}{
		{sku("Standard_X_y", 4, 16), nil, "naming convention"},
		{sku("Standard_D4s_v5", 4, 16, func(s *SKU) { s.Arch = "" }), nil, "architecture"},
		{sku("Standard_A1_v2", 1, 2), nil, "AKS does not allow"},
		{sku("Standard_E64i_v3", 64, 432), nil, "AKS does not allow"},
		{sku("Standard_D1s_v9", 1, 16), nil, "at least 2 vCPUs"},
		{sku("Standard_B2s_v9", 2, 2), nil, "at least 3.5 GiB"},
		{sku("Standard_D4s_v5", 4, 16, func(s *SKU) { s.Restricted = true }), nil, "subscription may not"},
		{sku("Standard_E8-2s_v5", 8, 64), nil, "constrained vCPUs"},
		{sku("Standard_DC4s_v3", 4, 32, func(s *SKU) { s.Confidential = true }), nil, "confidential"},
		{sku("Standard_D4ps_v5", 4, 16, func(s *SKU) { s.Arch, s.Generations = "arm64", []int{2} }),
			func(c *nodeclass.NodeClass) {
				c.Images = []nodeclass.Image{{ID: "x", Arch: "amd64", Generation: 2}}
			}, "no image"},
		{sku("Standard_D4s_v5", 4, 16, func(s *SKU) { s.EncryptionAtHost = false }),
			func(c *nodeclass.NodeClass) { c.EncryptionAtHost = &yes }, "encryption at host"},
		{sku("Standard_D4s_v2", 4, 16, func(s *SKU) { s.Generations = []int{1} }),
			func(c *nodeclass.NodeClass) { c.VTPM = true }, "trusted launch"},
		{sku("Standard_D4s_v5", 4, 16, func(s *SKU) { s.TrustedLaunchDisabled = true }),
			func(c *nodeclass.NodeClass) { c.SecureBoot = true }, "trusted launch"},
		{sku("Standard_ND96is_MI300X_v5", 96, 1850, func(s *SKU) { s.GPUs = 8 }), nil, "AMD GPUs"},
		{sku("Standard_D4ps_v5", 4, 16, func(s *SKU) { s.Arch = "arm64" }),
			func(c *nodeclass.NodeClass) { c.ArtifactStreaming = true }, "artifact streaming"},
		{sku("Standard_D2s_v5", 2, 8), func(c *nodeclass.NodeClass) { c.LocalDNS = true }, "LocalDNS"},
	}
	for _, tt := range tests {
		c := class()
		if tt.class != nil {
			tt.class(c)
		}
		built := newCatalog(&market{price: 1}, tt.sku).For(c)
		if len(built.Excluded) != 1 || !strings.Contains(built.Excluded[0].Reason, tt.reason) {
			t.Errorf("%s: excluded for %v, want %q", tt.sku.Name, built.Excluded, tt.reason)
		}
	}
}

func TestAMDGPUsNeedClassWithOwnDriver(t *testing.T) {
	c := class()
	c.NoGPUDriver = true
	built := newCatalog(&market{price: 1}, sku("Standard_ND96is_MI300X_v5", 96, 1850, func(s *SKU) { s.GPUs = 8 })).For(c)
	if len(built.Catalog.InstanceTypes) != 1 {
		t.Fatalf("left out: %v", built.Excluded)
	}
	if got := built.Catalog.InstanceTypes[0].Capacity.Get(Axes().Index("amd.com/gpu")); got != 8 {
		t.Errorf("%d amd.com/gpu, want 8", got)
	}
}

func TestTrap1PriceChangeReachesNextCatalog(t *testing.T) {
	m := &market{price: model.USD(1), revision: 1}
	c := newCatalog(m, sku("Standard_D4s_v5", 4, 16))
	first := c.For(class())
	if again := c.For(class()); again != first {
		t.Error("the catalogue was built anew although nothing changed")
	}
	m.price, m.revision = model.USD(2), 2
	if got := c.For(class()).Catalog.InstanceTypes[0].Offerings[0].Price; got != model.USD(2) {
		t.Errorf("price %v, want $2.000/h", got)
	}
	if got := first.Catalog.InstanceTypes[0].Offerings[0].Price; got != model.USD(1) {
		t.Errorf("the old catalogue changed to %v", got)
	}
}

// A purchase changes what is left of a quota and, as long as enough is left, nothing that
// can be bought.
func TestRevisionsShareWhatHasNotChanged(t *testing.T) {
	m := &market{price: model.USD(1), revision: 1, left: map[string]int64{"standardTestFamily": 100}}
	c := newCatalog(m, sku("Standard_D4s_v5", 4, 16), sku("Standard_D64s_v5", 64, 256))
	first := c.For(class()).Catalog.InstanceTypes
	m.left["standardTestFamily"], m.revision = 96, 2
	second := c.For(class()).Catalog.InstanceTypes
	if &second[0] != &first[0] {
		t.Error("instance types were made again although no offering has changed")
	}
	m.left["standardTestFamily"], m.revision = 60, 3
	third := c.For(class()).Catalog.InstanceTypes
	if &third[0] == &first[0] || third[1].Offerings[0].Available || !first[1].Offerings[0].Available {
		t.Error("the size that the quota has no room for must be unavailable in the new catalogue, and in that alone")
	}
	if &third[0].Offerings[0] != &first[0].Offerings[0] || third[0].Name != first[0].Name {
		t.Error("the offerings of the size that still fits were made again")
	}
	m.left["standardTestFamily"], m.revision = 100, 4
	if diff := cmp.Diff(first, c.For(class()).Catalog.InstanceTypes); diff != "" {
		t.Errorf("with the quota as before the catalogue is not as before (-before +after):\n%s", diff)
	}
}

// A node costs its machine, its managed disk and what the user adds to every node.
func TestPriceIncludesDiskAndNodeCost(t *testing.T) {
	premium := func(s *SKU) { s.PremiumIO = true }
	local := func(gib int64) func(*SKU) {
		return func(s *SKU) { s.EphemeralDisk = EphemeralDisk{Bytes: gib << 30, Placement: "CacheDisk"} }
	}
	m := &market{price: 5_000_000, nodeCost: 7}
	c := New(Region{Name: "eastus"}, Market{Prices: m, Unavailable: m, Quota: m, Disks: tiers{}})
	c.SetSKUs([]SKU{
		sku("Standard_D2_v5", 2, 8), sku("Standard_D2s_v5", 2, 8, premium),
		sku("Standard_D2ds_v5", 2, 8, premium, local(128)), sku("Standard_D4ds_v5", 4, 16, premium, local(127), func(s *SKU) { s.EphemeralDisk.Bytes += 1<<30 - 1 }),
	})
	want := map[string]model.Money{
		"Standard_D2_v5": 128, "Standard_D2s_v5": 1_000_128, "Standard_D2ds_v5": 0, "Standard_D4ds_v5": 1_000_128,
	}
	for _, it := range c.For(class()).Catalog.InstanceTypes {
		for _, o := range it.Offerings {
			if o.DiskPrice != want[it.Name] || o.NodePrice != 7 || o.MachinePrice() != m.price || o.Price != m.price+want[it.Name]+7 {
				t.Errorf("%s %s: price %d, disk %d (want %d), per node %d", it.Name, o.CapacityType, o.Price, o.DiskPrice, want[it.Name], o.NodePrice)
			}
		}
	}
}

// prepaid covers machines of every size at a price, two of them.
type prepaid struct{ price model.Money }

func (p prepaid) Covered(size string) (model.Money, model.QuotaUse, bool) {
	return p.price, model.QuotaUse{Quota: "reservation of " + size, Amount: 1}, true
}

// The next on-demand machine costs what is paid in advance, with the line that bounds how
// many there are, and beside it stands what those beyond it cost.
func TestCoveredOfferingKeepsPriceBeyondTheCover(t *testing.T) {
	m := &market{price: 5_000_000, nodeCost: 7}
	c := New(Region{Name: "eastus"}, Market{Prices: m, Unavailable: m, Quota: m, Cover: prepaid{1_000_000}})
	c.SetSKUs([]SKU{sku("Standard_D2_v5", 2, 8)})
	for _, o := range c.For(class()).Catalog.InstanceTypes[0].Offerings {
		covered := slices.ContainsFunc(o.Quotas, func(q model.QuotaUse) bool { return q.Quota == "reservation of Standard_D2_v5" })
		wantPrice, wantBeyond := model.Money(1_000_007), model.Money(5_000_007)
		if o.CapacityType == model.Spot {
			wantPrice, wantBeyond = 5_000_007, 0
		}
		if o.Price != wantPrice || o.Uncovered != wantBeyond || covered != (o.CapacityType == model.OnDemand) {
			t.Errorf("%s: %d, beyond the cover %d, bounded %v; want %d and %d", o.CapacityType, o.Price, o.Uncovered, covered, wantPrice, wantBeyond)
		}
	}
}

func TestTrap18UnavailableZoneKeepsLabelsAndReason(t *testing.T) {
	m := &market{price: 1, blocked: map[string]string{"eastus-2": "no capacity until noon"}}
	it := newCatalog(m, sku("Standard_D4s_v5", 4, 16)).For(class()).Catalog.InstanceTypes[0]
	var zones []string
	for _, o := range it.Offerings {
		zones = append(zones, o.Zone)
		if (o.Zone == "eastus-2") == o.Available || (o.Zone == "eastus-2") != (o.Unavailable == "no capacity until noon") {
			t.Errorf("offering in %s: available %v, %q", o.Zone, o.Available, o.Unavailable)
		}
	}
	if !slices.Contains(zones, "eastus-2") {
		t.Errorf("zones %v, want eastus-2 among them", zones)
	}
}

func TestTrap3FamilyRegionalAndSpotQuotaMaskOfferings(t *testing.T) {
	for _, tt := range []struct {
		left           map[string]int64
		onDemand, spot bool
	}{
		{map[string]int64{"standardTestFamily": 4, QuotaRegional: 4, QuotaSpot: 4}, true, true},
		{map[string]int64{"standardTestFamily": 3, QuotaRegional: 4, QuotaSpot: 4}, false, true},
		{map[string]int64{"standardTestFamily": 4, QuotaRegional: 3, QuotaSpot: 4}, false, true},
		{map[string]int64{"standardTestFamily": 4, QuotaRegional: 4, QuotaSpot: 3}, true, false},
	} {
		it := newCatalog(&market{price: 1, left: tt.left}, sku("Standard_D4s_v5", 4, 16)).For(class()).Catalog.InstanceTypes[0]
		for _, o := range it.Offerings {
			want := tt.spot
			if o.CapacityType == model.OnDemand {
				want = tt.onDemand
			}
			if o.Available != want || o.Available != (o.Unavailable == "") || o.NoQuota == o.Available {
				t.Errorf("quota %v: %s %s available %v, %q; want %v", tt.left, o.Zone, o.CapacityType, o.Available, o.Unavailable, want)
			}
		}
	}
}

// TestRefusalForQuotaCountsAsQuota: as one that was read, and no other refusal does.
func TestRefusalForQuotaCountsAsQuota(t *testing.T) {
	for _, quota := range []bool{true, false} {
		m := &market{price: 1, noQuota: quota, blocked: map[string]string{"eastus-1": "Azure refused it"}}
		for _, o := range newCatalog(m, sku("Standard_D4s_v5", 4, 16)).For(class()).Catalog.InstanceTypes[0].Offerings {
			if refused := o.Zone == "eastus-1"; o.Available == refused || o.NoQuota != (refused && quota) {
				t.Errorf("refused for quota %v: %s available %v, no quota %v", quota, o.Zone, o.Available, o.NoQuota)
			}
		}
	}
}

// A size that came to Azure after this program was built: its name, its
// capabilities and its price are all that is needed.
func TestTrap15UnknownSizeOfferedAtRetailPrice(t *testing.T) {
	built := newCatalog(&market{price: model.USD(0.7)}, sku("Standard_D4zs_v9", 4, 16), sku("Standard_D4ads_v9", 4, 16)).For(class())
	if n := len(built.Catalog.InstanceTypes); n != 1 || len(built.Excluded) != 1 {
		t.Fatalf("%d sizes are sold, left out are %v; want the one whose name can be read", n, built.Excluded)
	}
	it := built.Catalog.InstanceTypes[0]
	if it.Name != "Standard_D4ads_v9" || !it.Offerings[0].Available || it.Offerings[0].Price != model.USD(0.7) {
		t.Errorf("sold are %+v, want Standard_D4ads_v9 at $0.700/h", it)
	}
}

func TestTrap20UnknownGPUSizeIsOffered(t *testing.T) {
	it := newCatalog(&market{price: 1},
		sku("Standard_ND96is_B300_v9", 96, 1900, func(s *SKU) { s.GPUs = 8 })).For(class()).Catalog.InstanceTypes
	if len(it) != 1 || it[0].Labels[LabelSKUGPUManufacturer] != NVIDIA ||
		it[0].Labels[LabelSKUGPUName] != "B300" || it[0].Capacity.Get(Axes().Index("nvidia.com/gpu")) != 8 {
		t.Errorf("sold are %+v, want a machine with 8 GPUs named B300", it)
	}
}

func TestSubscriptionRestrictions(t *testing.T) {
	raw := func(restrictions ...*armcompute.ResourceSKURestrictions) *armcompute.ResourceSKU {
		return &armcompute.ResourceSKU{
			Name: to.Ptr("Standard_D4s_v5"), Family: to.Ptr("standardDSv5Family"), ResourceType: to.Ptr("virtualMachines"),
			LocationInfo: []*armcompute.ResourceSKULocationInfo{{Location: to.Ptr("eastus"), Zones: []*string{to.Ptr("3"), to.Ptr("1")}}},
			Capabilities: []*armcompute.ResourceSKUCapabilities{
				{Name: to.Ptr("vCPUs"), Value: to.Ptr("4")}, {Name: to.Ptr("MemoryGB"), Value: to.Ptr("16")},
				{Name: to.Ptr("HyperVGenerations"), Value: to.Ptr("V1,V2")}, {Name: to.Ptr("DiskControllerTypes"), Value: to.Ptr("NVMe")},
			},
			Restrictions: restrictions,
		}
	}
	got, ok := ParseSKU(raw(), "EastUS")
	if !ok || got.Restricted || !slices.Equal(got.Zones, []string{"1", "3"}) || !slices.Equal(got.Generations, []int{1, 2}) || !got.NVMeOnly {
		t.Errorf("without restrictions: %v %+v", ok, got)
	}
	got, _ = ParseSKU(raw(&armcompute.ResourceSKURestrictions{
		Type:            to.Ptr(armcompute.ResourceSKURestrictionsTypeZone),
		RestrictionInfo: &armcompute.ResourceSKURestrictionInfo{Locations: []*string{to.Ptr("eastus")}, Zones: []*string{to.Ptr("3")}},
	}), "eastus")
	if got.Restricted || !slices.Equal(got.Zones, []string{"1"}) {
		t.Errorf("zone restriction: %+v", got)
	}
	got, _ = ParseSKU(raw(&armcompute.ResourceSKURestrictions{
		Type: to.Ptr(armcompute.ResourceSKURestrictionsTypeLocation), Values: []*string{to.Ptr("eastus")},
	}), "eastus")
	if !got.Restricted {
		t.Errorf("location restriction: %+v", got)
	}
	if _, ok := ParseSKU(raw(), "westus"); ok {
		t.Error("a size is offered where it is not")
	}
}

func TestEphemeralDiskPlacementPreference(t *testing.T) {
	caps := func(pairs ...string) capabilitySet {
		c := capabilitySet{"EphemeralOSDiskSupported": "True"}
		for i := 0; i < len(pairs); i += 2 {
			c[pairs[i]] = pairs[i+1]
		}
		return c
	}
	tests := []struct {
		caps capabilitySet
		want EphemeralDisk
	}{
		{capabilitySet{"CachedDiskBytes": "107374182400"}, EphemeralDisk{}},
		{caps("NvmeDiskSizeInMiB", "915527", "SupportedEphemeralOSDiskPlacements", "NvmeDisk,ResourceDisk", "CachedDiskBytes", "1"),
			EphemeralDisk{915527 << 20, "NvmeDisk"}},
		{caps("NvmeDiskSizeInMiB", "915527", "CachedDiskBytes", "107374182400"), EphemeralDisk{107374182400, "CacheDisk"}},
		{caps("CachedDiskBytes", "0", "MaxResourceVolumeMB", "76800"), EphemeralDisk{76800 << 20, "ResourceDisk"}},
		{caps(), EphemeralDisk{}},
	}
	for _, tt := range tests {
		if got := ephemeralDisk(tt.caps); got != tt.want {
			t.Errorf("%v: %+v, want %+v", tt.caps, got, tt.want)
		}
	}
}

func BenchmarkCatalogOf700Sizes(b *testing.B) {
	skus := make([]SKU, 700)
	for i := range skus {
		skus[i] = sku(fmt.Sprintf("Standard_D%ds_v5", i+2), 4, 16)
	}
	m := &market{price: 1}
	c := newCatalog(m, skus...)
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			c.SetSKUs(skus)
			c.For(class())
		}
	})
	b.Run("after a change of the market", func(b *testing.B) {
		for b.Loop() {
			m.revision++
			c.For(class())
		}
	})
}

// Node classes whose disks differ share what disks do not decide: labels are the same map, and
// offerings one by one.
func TestNodeClassesShareWhatDisksDoNotDecide(t *testing.T) {
	c := newCatalog(&market{price: 10}, sku("Standard_D4s_v5", 4, 16))
	small, large := class(), class()
	large.OSDiskSizeGB = 512
	a, b := c.For(small).Catalog.InstanceTypes[0], c.For(large).Catalog.InstanceTypes[0]
	if reflect.ValueOf(a.Labels).Pointer() != reflect.ValueOf(b.Labels).Pointer() {
		t.Error("each class has labels of its own")
	}
	if a.Capacity.Get(model.EphemeralStorage) >= b.Capacity.Get(model.EphemeralStorage) {
		t.Errorf("disks %d and %d", a.Capacity.Get(model.EphemeralStorage), b.Capacity.Get(model.EphemeralStorage))
	}
	fips := class()
	fips.FIPS = true
	if got := c.For(fips).Catalog.InstanceTypes[0].Labels[LabelAKSFIPS]; got != "true" || a.Labels[LabelAKSFIPS] != "" {
		t.Errorf("FIPS is %q with it and %q without", got, a.Labels[LabelAKSFIPS])
	}
}

// TestOfferingTellsThatItsPriceIsUnknown: the price that stands for it is a guess, which a
// price that becomes known replaces even where it is the same.
func TestOfferingTellsThatItsPriceIsUnknown(t *testing.T) {
	m := &market{}
	c := newCatalog(m, sku("Standard_D4s_v5", 4, 16))
	for _, price := range []model.Money{0, MissingPrice(), 0} {
		m.price, m.revision = price, m.revision+1
		for _, o := range c.For(class()).Catalog.InstanceTypes[0].Offerings {
			if o.MachinePrice() != MissingPrice() || o.Unpriced != (price == 0) {
				t.Errorf("with the price %s it costs %s, unpriced: %v", price, o.MachinePrice(), o.Unpriced)
			}
		}
	}
}
