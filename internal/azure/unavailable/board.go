// Package unavailable remembers what Azure has refused to sell, so that nobody asks
// again before it is worth asking.
//
//	SDK error ── Classify ──> Failure ── Board.Mark ──> blocks with an end ── Board.Blocked ──> catalogue
//
// Which refusal blocks what, and for how long, is the table in [Board.Mark].
// What the board knows outlives the process as text, [Board.Marshal].
// Blocks end by themselves; the board's revision moves whenever an answer of
// Blocked may have changed, also when time alone changed it.
package unavailable

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/model"
)

// How long refusals are believed.
const (
	// hourTTL is for capacity and spot quota, which change within the day.
	hourTTL = time.Hour
	// soldOutTTL is for sizes that the subscription is not offered: that changes
	// by a support request.
	soldOutTTL = 23 * time.Hour
	// lowQuotaTTL is for a quota that is merely used up: machines go all the time.
	lowQuotaTTL = 10 * time.Minute
	// siblingTTL is for larger sizes of a family in which one size found no room.
	// They are likely to find none either, but nobody has asked.
	siblingTTL = 3 * time.Minute
)

// places of a block that are not one zone.
const (
	anyZone  = "zonal"    // every zone, not regional
	anyPlace = "anywhere" // every zone and regional
)

// Attempt is what was asked for when Azure refused.
type Attempt struct {
	SKU          *instancetype.SKU
	Zone         string // label: eastus-1, or 0 for regional
	CapacityType model.CapacityType
}

// String names the attempt for messages.
func (a Attempt) String() string {
	return fmt.Sprintf("%s %s in zone %s", a.SKU.Name, a.CapacityType, a.Zone)
}

// subject is what a block is about: a size or a quota family, by place and
// capacity type; the zero size and family mean every size.
type subject struct {
	size, family string
	place        string
	capacityType model.CapacityType
}

type block struct {
	until time.Time
	// minVCPUs limits a family's block to sizes at least this large.
	minVCPUs int64
	why      string
}

// Block is one entry of the board, for people.
type Block struct {
	Size, Family string // one of them; both empty means every size
	Place        string // a zone label, "zonal" or "anywhere"
	CapacityType model.CapacityType
	MinVCPUs     int64
	Until        time.Time
	Why          string
}

// Board is the memory of refusals. It is safe for concurrent use.
type Board struct {
	now func() time.Time

	mu       sync.Mutex
	blocks   map[subject]block
	next     time.Time // when the first block ends
	revision uint64
}

// NewBoard returns an empty board that reads the time from now.
func NewBoard(now func() time.Time) *Board {
	return &Board{now: now, blocks: map[subject]block{}}
}

// Mark records a refusal:
//
//	spot quota            every spot offering                              1 h
//	family quota          family at this size and above, this capacity     10 min; 1 h when the limit is 0
//	regional quota        nothing: it is no matter of the size
//	other quota           this size, this capacity type, everywhere        10 min
//	not available         this size, capacity type and scope               spot 1 h, on-demand 23 h
//	zonal allocation      this size in the zone, both capacity types       1 h
//	allocation            this size in the scope, both capacity types      1 h
//	overconstrained zonal this size in the zone, this capacity type        1 h
//	overconstrained       this size in the scope, this capacity type       1 h
//	not supported         this size everywhere, both capacity types        23 h
//
// The scope is all zones for a zonal attempt, and regional placement for a
// regional one. An allocation failure also blocks larger sizes of the family in
// the same place for three minutes.
func (b *Board) Mark(f *Failure, a Attempt) {
	scope := anyZone
	if a.Zone == instancetype.RegionalZone {
		scope = instancetype.RegionalZone
	}
	both := []model.CapacityType{model.OnDemand, model.Spot}
	one := []model.CapacityType{a.CapacityType}
	switch f.Kind {
	case SpotQuota:
		b.put(subject{place: anyPlace, capacityType: model.Spot}, 0, hourTTL, f.Code)
	case FamilyQuota:
		ttl, from := lowQuotaTTL, a.SKU.VCPUs
		if f.ZeroLimit {
			ttl, from = hourTTL, 0
		}
		b.put(subject{size: a.SKU.Name, place: anyPlace, capacityType: a.CapacityType}, 0, ttl, f.Code)
		b.put(subject{family: a.SKU.Family, place: anyPlace, capacityType: a.CapacityType}, from, ttl, f.Code)
	case OtherQuota:
		b.size(f, a, anyPlace, one, lowQuotaTTL)
	case SKUNotAvailable:
		ttl := soldOutTTL
		if a.CapacityType == model.Spot {
			ttl = hourTTL
		}
		b.size(f, a, scope, one, ttl)
	case ZonalAllocation:
		b.size(f, a, a.Zone, both, hourTTL)
		b.siblings(f, a, a.Zone, both)
	case Allocation:
		b.size(f, a, scope, both, hourTTL)
		b.siblings(f, a, scope, both)
	case OverconstrainedZonal:
		b.size(f, a, a.Zone, one, hourTTL)
		b.siblings(f, a, a.Zone, one)
	case Overconstrained:
		b.size(f, a, scope, one, hourTTL)
		b.siblings(f, a, scope, one)
	case SKUUnsupported:
		b.size(f, a, anyPlace, both, soldOutTTL)
	case RegionalQuota, SubnetFull, Other:
	}
}

// Evicted records that Azure has taken a spot machine back: for ten minutes the
// size is not bought as spot in that zone, where it would likely be taken back
// again.
func (b *Board) Evicted(size, zone string) {
	if size != "" && zone != "" {
		b.put(subject{size: size, place: zone, capacityType: model.Spot}, 0, lowQuotaTTL, "an eviction of such a machine")
	}
}

func (b *Board) size(f *Failure, a Attempt, place string, types []model.CapacityType, ttl time.Duration) {
	for _, t := range types {
		b.put(subject{size: a.SKU.Name, place: place, capacityType: t}, 0, ttl, f.Code)
	}
}

func (b *Board) siblings(f *Failure, a Attempt, place string, types []model.CapacityType) {
	for _, t := range types {
		b.put(subject{family: a.SKU.Family, place: place, capacityType: t}, a.SKU.VCPUs+1, siblingTTL, f.Code)
	}
}

// put adds a block. Of two blocks of one subject the wider and longer holds.
func (b *Board) put(s subject, minVCPUs int64, ttl time.Duration, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	until := b.now().Add(ttl)
	old, exists := b.blocks[s]
	if exists {
		minVCPUs = min(minVCPUs, old.minVCPUs)
		if old.until.After(until) {
			until = old.until
		}
	}
	b.blocks[s] = block{until: until, minVCPUs: minVCPUs, why: why}
	if b.next.IsZero() || until.Before(b.next) {
		b.next = until
	}
	// A later end alone changes no answer, so nothing needs to be built anew.
	if !exists || minVCPUs != old.minVCPUs {
		b.revision++
	}
}

// Blocked says why an offering is not worth asking for, or "".
func (b *Board) Blocked(s *instancetype.SKU, zone string, capacityType model.CapacityType) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire()
	if len(b.blocks) == 0 {
		return ""
	}
	places := [3]string{zone, anyPlace, anyZone}
	n := 3
	if zone == instancetype.RegionalZone {
		n = 2
	}
	for _, place := range places[:n] {
		for _, sub := range [3]subject{
			{size: s.Name, place: place, capacityType: capacityType},
			{family: s.Family, place: place, capacityType: capacityType},
			{place: place, capacityType: capacityType},
		} {
			if found, ok := b.blocks[sub]; ok && s.VCPUs >= found.minVCPUs {
				return fmt.Sprintf("Azure refused it with %s; it is asked again after %s", found.why, found.until.UTC().Format(time.RFC3339))
			}
		}
	}
	return ""
}

// Revision changes whenever an answer of Blocked may.
func (b *Board) Revision() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire()
	return b.revision
}

// expire drops what has ended. The caller holds mu.
func (b *Board) expire() {
	now := b.now()
	if b.next.IsZero() || now.Before(b.next) {
		return
	}
	before := len(b.blocks)
	maps.DeleteFunc(b.blocks, func(_ subject, x block) bool { return !now.Before(x.until) })
	if len(b.blocks) != before {
		b.revision++
	}
	b.next = time.Time{}
	for _, x := range b.blocks {
		if b.next.IsZero() || x.until.Before(b.next) {
			b.next = x.until
		}
	}
}

// Blocks lists what is blocked at the moment, in a stable order.
func (b *Board) Blocks() []Block {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire()
	var out []Block
	for s, x := range b.blocks {
		out = append(out, Block{s.size, s.family, s.place, s.capacityType, x.minVCPUs, x.until, x.why})
	}
	slices.SortFunc(out, func(x, y Block) int {
		return cmp.Or(cmp.Compare(x.Size, y.Size), cmp.Compare(x.Family, y.Family),
			cmp.Compare(x.Place, y.Place), cmp.Compare(x.CapacityType, y.CapacityType))
	})
	return out
}
