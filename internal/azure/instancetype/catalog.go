package instancetype

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Prices is where the catalogue learns what a size costs.
type Prices interface {
	// Price is the hourly price in the region; false when it is not known.
	Price(size string, capacityType model.CapacityType) (model.Money, bool)
	// NodeCost is what the user adds to the hourly price of every node of the size.
	NodeCost(size string, capacityType model.CapacityType) model.Money
	// Revision changes whenever any price does.
	Revision() uint64
}

// Unavailable is where the catalogue learns what Azure has refused lately.
type Unavailable interface {
	// Unavailable says in one sentence why the offering is not worth asking for, or
	// "" when it is, and whether that is a quota which is used up.
	Unavailable(s *SKU, zone string, capacityType model.CapacityType) (why string, quota bool)
	// Revision changes whenever an answer of Unavailable may.
	Revision() uint64
}

// Quota is where the catalogue learns what the subscription may still buy.
type Quota interface {
	// Left is what remains of a quota line after everything that exists or is on
	// its way; false when the subscription does not limit it.
	Left(name string) (int64, bool)
	// Revision changes whenever an answer of Left may.
	Revision() uint64
}

// Market is what changes about offerings.
type Market struct {
	Prices      Prices
	Unavailable Unavailable
	Quota       Quota
	// Cover may be nil: then nothing is paid for in advance.
	Cover Cover
	// Disks may be nil: then managed disks are not counted.
	Disks Disks
}

// Disks is where the catalogue learns what managed disks cost. Its answers never
// change.
type Disks interface {
	// OSDisk is the hourly price of an operating system disk of so many GiB, on a
	// size that can have Premium SSDs or not.
	OSDisk(gib int64, premium bool) model.Money
}

// Cover is where the catalogue learns of machines that are paid for in advance.
// Its answers change with Prices.Revision.
type Cover interface {
	// Covered is the price of the next on-demand machine of a size, and the line
	// that it draws on; false when nothing covers it.
	Covered(size string) (model.Money, model.QuotaUse, bool)
}

// Revision names one state of everything that a catalogue is built from.
type Revision struct {
	SKUs, Prices, Unavailable, Quota uint64
}

// Built is a catalogue for one kind of node class at one revision. It is
// immutable.
type Built struct {
	Revision Revision
	Catalog  model.Catalog
	// Excluded lists the sizes of the region that are left out, and why.
	Excluded []Exclusion
	skus     map[string]*SKU
	// axes are nil where they are [Axes].
	axes model.Axes
}

// With is the catalogue with other prices and resources, such as NodeOverlays make: types
// are the same instance types in the same order, and axes begin with [Axes].
func (b *Built) With(types []model.InstanceType, axes model.Axes) *Built {
	out := *b
	out.Catalog.InstanceTypes, out.axes = types, axes
	return &out
}

// Axes are those of the catalogue's instance types: [Axes], and what [Built.With] added.
func (b *Built) Axes() model.Axes {
	if b.axes != nil {
		return b.axes
	}
	return Axes()
}

// SKU finds the facts of an instance type of this catalogue.
func (b *Built) SKU(name string) (*SKU, bool) {
	s, ok := b.skus[name]
	return s, ok
}

// Catalog builds and keeps catalogues. It is safe for concurrent use.
type Catalog struct {
	region Region
	market Market

	mu       sync.Mutex
	skus     []SKU
	revision uint64
	kinds    map[string]*kept
}

// kept is what is remembered for one kind of node class.
type kept struct {
	entries  []entry
	excluded []Exclusion
	skus     map[string]*SKU
	built    *Built
}

// New returns a catalogue without sizes; SetSKUs fills it.
func New(region Region, market Market) *Catalog {
	return &Catalog{region: region, market: market, kinds: map[string]*kept{}}
}

// SetSKUs replaces the sizes of the region. The catalogue keeps the slice.
func (c *Catalog) SetSKUs(skus []SKU) {
	slices.SortFunc(skus, func(a, b SKU) int { return strings.Compare(a.Name, b.Name) })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skus, c.revision = skus, c.revision+1
	clear(c.kinds)
}

// SKU finds the facts of any size of the region, whether a node class may use
// it or not.
func (c *Catalog) SKU(name string) (*SKU, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := slices.BinarySearchFunc(c.skus, name, func(s SKU, n string) int { return strings.Compare(s.Name, n) })
	if !ok {
		return nil, false
	}
	return &c.skus[i], true
}

// WhyExcluded says why a size of the region is left out, in any case of its name, or "".
func (b *Built) WhyExcluded(size string) string {
	for _, e := range b.Excluded {
		if strings.EqualFold(e.Size, size) {
			return e.Reason
		}
	}
	return ""
}

// Region is what the whole region has in common.
func (c *Catalog) Region() Region { return c.region }

func (c *Catalog) currentRevision() Revision {
	return Revision{c.revision, c.market.Prices.Revision(), c.market.Unavailable.Revision(), c.market.Quota.Revision()}
}

// For returns the catalogue for a node class, as of now.
func (c *Catalog) For(class *nodeclass.NodeClass) *Built {
	key := kindOf(class)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.currentRevision()
	k := c.kinds[key]
	if k == nil {
		k = &kept{skus: map[string]*SKU{}}
		k.entries, k.excluded = buildStatic(c.skus, c.region, class)
		for _, e := range k.entries {
			k.skus[e.sku.Name] = e.sku
		}
		c.kinds[key] = k
	}
	if k.built == nil || k.built.Revision != now {
		k.built = &Built{Revision: now, Excluded: k.excluded, skus: k.skus, Catalog: c.overlay(k.entries)}
	}
	return k.built
}

// overlay lays prices and availability over the static part.
func (c *Catalog) overlay(entries []entry) model.Catalog {
	types := make([]model.InstanceType, len(entries))
	for i, e := range entries {
		t := e.kind
		t.Offerings = slices.Clone(t.Offerings)
		var advance model.Money
		var line model.QuotaUse
		covered := false
		if c.market.Cover != nil {
			advance, line, covered = c.market.Cover.Covered(e.sku.Name)
		}
		disk := c.disk(&e)
		for j := range t.Offerings {
			o := &t.Offerings[j]
			o.Price = c.price(e.sku.Name, o.CapacityType)
			o.DiskPrice, o.NodePrice = disk, c.market.Prices.NodeCost(e.sku.Name, o.CapacityType)
			if covered && o.CapacityType == model.OnDemand && advance < o.Price {
				o.Uncovered = o.Price + o.DiskPrice + o.NodePrice
				o.Price, o.Quotas = advance, append(slices.Clone(o.Quotas), line)
			}
			o.Price += o.DiskPrice + o.NodePrice
			o.Unavailable, o.NoQuota = c.unavailable(e.sku, o)
			o.Available = o.Unavailable == ""
		}
		types[i] = t
	}
	return model.Catalog{InstanceTypes: types, LabelKeys: c.region.cloudLabels()}
}

func (c *Catalog) price(size string, capacityType model.CapacityType) model.Money {
	if price, ok := c.market.Prices.Price(size, capacityType); ok {
		return price
	}
	return MissingPrice()
}

// disk is what the managed disk of the entry's nodes costs per hour.
func (c *Catalog) disk(e *entry) model.Money {
	if c.market.Disks == nil || e.managedDiskGiB == 0 {
		return 0
	}
	return c.market.Disks.OSDisk(e.managedDiskGiB, e.sku.PremiumIO)
}

// unavailable is why an offering cannot be bought now, or "", and whether that is a quota:
// one that leaves no room comes first.
func (c *Catalog) unavailable(s *SKU, o *model.Offering) (why string, quota bool) {
	if short := c.shortQuota(o); short != "" {
		return short, true
	}
	return c.market.Unavailable.Unavailable(s, o.Zone, o.CapacityType)
}

// shortQuota says which quota leaves no room for one machine of an offering, or "".
func (c *Catalog) shortQuota(o *model.Offering) string {
	for _, q := range o.Quotas {
		if left, limited := c.market.Quota.Left(q.Quota); limited && left < q.Amount {
			return fmt.Sprintf("quota %s has %d vCPUs left and the size needs %d", q.Quota, left, q.Amount)
		}
	}
	return ""
}

// Unavailable says why an offering cannot be bought at this moment, or "". It
// is fresher than a Built that was made a while ago.
func (c *Catalog) Unavailable(s *SKU, o *model.Offering) string {
	why, _ := c.unavailable(s, o)
	return why
}

// kindOf names the node classes that share a catalogue: everything of a class
// that buildStatic reads.
func kindOf(class *nodeclass.NodeClass) string {
	return fmt.Sprint(class.ImageFamily, class.OSDiskSizeGB, class.MaxPods, class.FIPS,
		class.EncryptionAtHost != nil && *class.EncryptionAtHost, class.TrustedLaunch(), class.NoGPUDriver,
		class.ArtifactStreaming, class.LocalDNS, imageKinds(class.Images))
}

// imageKinds names images and what they run on; their versions do not matter here.
func imageKinds(images []nodeclass.Image) string {
	var b strings.Builder
	for _, i := range images {
		fmt.Fprintf(&b, "%s/%s/%d,", i.Definition, i.Arch, i.Generation)
	}
	return b.String()
}
