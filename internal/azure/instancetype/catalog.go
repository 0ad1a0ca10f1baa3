package instancetype

import (
	"fmt"
	"maps"
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
	// Kind names what of the node class the catalogue depends on. Of two catalogues of a
	// kind the later one shares the offerings of every instance type that have not changed,
	// and all instance types where none has.
	Kind    string
	Catalog model.Catalog
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
	// images are the instance types that node classes share, current their offerings.
	images  map[image]*sharedTypes
	current map[offeringsKey]*currentOfferings
}

// offeringsKey is what the offerings of an instance type depend on beside prices and availability.
type offeringsKey struct {
	// static is the first of the offerings without price and availability, of which node
	// classes with one kind of image share one slice.
	static *model.Offering
	// disk is the hourly price of the managed disk.
	disk model.Money
}

// currentOfferings are those of an instance type, with price and availability at a revision.
type currentOfferings struct {
	revision  Revision
	offerings []model.Offering
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
	return &Catalog{
		region: region, market: market, kinds: map[string]*kept{}, images: map[image]*sharedTypes{},
		current: map[offeringsKey]*currentOfferings{},
	}
}

// SetSKUs replaces the sizes of the region. The catalogue keeps the slice.
func (c *Catalog) SetSKUs(skus []SKU) {
	slices.SortFunc(skus, func(a, b SKU) int { return strings.Compare(a.Name, b.Name) })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skus, c.revision = skus, c.revision+1
	clear(c.kinds)
	clear(c.images)
	clear(c.current)
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

// Sizes are the names of all sizes of the region, in order.
func (c *Catalog) Sizes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]string, len(c.skus))
	for i := range c.skus {
		out[i] = c.skus[i].Name
	}
	return out
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
		k.entries, k.excluded = buildStatic(c.skus, c.region, class, c.sharedFor(imageOf(class)))
		for _, e := range k.entries {
			k.skus[e.sku.Name] = e.sku
		}
		c.kinds[key] = k
	}
	if k.built == nil || k.built.Revision != now {
		k.built = &Built{Revision: now, Kind: key, Excluded: k.excluded, skus: k.skus, Catalog: c.overlay(k, now)}
	}
	return k.built
}

// sharedFor are the instance types with an image, laid out as far as classes have used them.
func (c *Catalog) sharedFor(of image) *sharedTypes {
	if c.images[of] == nil {
		c.images[of] = &sharedTypes{image: of, types: make([]model.InstanceType, len(c.skus)), labels: offeringLabels{}}
	}
	return c.images[of]
}

// overlay lays prices and availability over the static part. What has not changed since
// the last catalogue is taken over from there: most revisions come from a purchase, which
// changes what is left of a quota and of no offering anything.
func (c *Catalog) overlay(k *kept, now Revision) model.Catalog {
	var before []model.InstanceType
	if k.built != nil {
		before = k.built.Catalog.InstanceTypes
	}
	out, shared := before, before != nil
	for i := range k.entries {
		offerings := c.offeringsOf(&k.entries[i], now)
		if shared && &offerings[0] == &before[i].Offerings[0] {
			continue
		}
		if shared || out == nil {
			out, shared = append(make([]model.InstanceType, 0, len(k.entries)), before[:i]...), false
		}
		t := k.entries[i].kind
		t.Offerings = offerings
		out = append(out, t)
	}
	return model.Catalog{InstanceTypes: out, LabelKeys: slices.Sorted(maps.Keys(KnownLabels()))}
}

// offeringsOf are the offerings of an entry as they can be bought now, at least one. Node
// classes whose disks cost the same share them, and they are the same slice as before where
// they say the same.
func (c *Catalog) offeringsOf(e *entry, now Revision) []model.Offering {
	of := offeringsKey{&e.kind.Offerings[0], c.disk(e)}
	last := c.current[of]
	if last == nil {
		last = &currentOfferings{}
		c.current[of] = last
	}
	if last.offerings == nil || last.revision != now {
		last.revision, last.offerings = now, c.lay(e, of.disk, last.offerings)
	}
	return last.offerings
}

// lay lays prices and availability over the offerings of an entry whose disk costs so much. It
// returns those before, which may be nil, where they say the same.
func (c *Catalog) lay(e *entry, disk model.Money, before []model.Offering) []model.Offering {
	var cover cover
	if c.market.Cover != nil {
		cover.price, cover.line, cover.has = c.market.Cover.Covered(e.sku.Name)
	}
	out, same := before, before != nil
	for i := range e.kind.Offerings {
		o := e.kind.Offerings[i]
		c.layOne(&o, e.sku, disk, &cover)
		if same && sameTerms(&o, &before[i]) {
			continue
		}
		if same || out == nil {
			out, same = append(make([]model.Offering, 0, len(e.kind.Offerings)), before[:i]...), false
		}
		out = append(out, o)
	}
	return out
}

// cover is what [Cover] says of a size.
type cover struct {
	price model.Money
	line  model.QuotaUse
	has   bool
}

// layOne lays price and availability over an offering of the static part.
func (c *Catalog) layOne(o *model.Offering, s *SKU, disk model.Money, cover *cover) {
	var priced bool
	if o.Price, priced = c.market.Prices.Price(s.Name, o.CapacityType); !priced {
		o.Price, o.Unpriced = MissingPrice(), true
	}
	o.DiskPrice, o.NodePrice = disk, c.market.Prices.NodeCost(s.Name, o.CapacityType)
	if cover.has && o.CapacityType == model.OnDemand && cover.price < o.Price {
		o.Uncovered = o.Price + o.DiskPrice + o.NodePrice
		o.Price, o.Quotas = cover.price, append(slices.Clone(o.Quotas), cover.line)
	}
	o.Price += o.DiskPrice + o.NodePrice
	o.Unavailable, o.NoQuota = c.unavailable(s, o)
	o.Available = o.Unavailable == ""
}

// sameTerms reports whether two states of one offering agree in everything that lay sets.
func sameTerms(a, b *model.Offering) bool {
	return a.Price == b.Price && a.Unpriced == b.Unpriced && a.Uncovered == b.Uncovered &&
		a.DiskPrice == b.DiskPrice && a.NodePrice == b.NodePrice &&
		a.Available == b.Available && a.Unavailable == b.Unavailable && a.NoQuota == b.NoQuota && slices.Equal(a.Quotas, b.Quotas)
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
