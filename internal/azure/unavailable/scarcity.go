package unavailable

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Where size after size is sold out as spot, the sizes of their kind that were not asked for are
// likely to be, too. A NodePool of spot machines would ask for hundreds of them, a few in each
// launch, before another one of lower weight buys. So after ScarceSizes different refusals of one
// kind in a row no spot machine of that kind is asked for there for ScarceTTL, and after that
// ScarceAgain more are enough. There is the one zone that they were about, or else the region: a
// machine without a zone is placed in any of the zones, so what all zones refuse says something
// about it, and the other way round. A size that both refuse counts as two.
const (
	ScarceSizes = 10
	ScarceAgain = 5
	ScarceTTL   = 3 * time.Minute
	// scarceWithin is how long after the last of them refusals count as in a row.
	scarceWithin = 10 * time.Minute
)

// scarcity counts the refusals of different spot machines of one kind in one place since the last
// such machine was made.
type scarcity struct {
	refused map[placed]bool
	// most is how many are enough, last when the last one was refused.
	most int
	last time.Time
}

// placed is a size that was asked for, in a zone or without one.
type placed struct {
	size     string
	regional bool
}

// scarce reports whether Azure has no room for the size, which says something about others.
func (r *Refusal) scarce() bool {
	return slices.Contains([]Kind{SKUNotAvailable, ZonalAllocation, Allocation, OverconstrainedZonal, Overconstrained}, r.Kind)
}

// scarce reports whether the entry of a subject is one of spot machines that are scarce: no refusal
// by itself is about a kind.
func (s subject) scarce() bool { return s.kind != "" }

// kindOf says on what kind of hardware Azure runs a size: what is sold out on one says nothing
// about another.
func kindOf(s *instancetype.SKU) string {
	kind := cmp.Or(s.Arch, "unknown architecture")
	if s.GPUs > 0 {
		kind += ", GPUs"
	}
	if s.Confidential {
		kind += ", confidential"
	}
	return kind
}

// count counts a size that Azure has no room for, whose entry there is, for its kind: in the zone
// that the refusal is about, and for the region once no zone is left for the size.
func (o *Offerings) count(f *Failure, a Attempt) {
	if a.CapacityType != model.Spot || !f.refusal.scarce() {
		return
	}
	if place := f.refusal.Place.of(a); place != anyZone && place != instancetype.RegionalZone {
		o.countIn(place, f, a)
		if !o.soldOut(a) {
			return
		}
	}
	o.countIn(anyPlace, f, a)
}

// countIn counts a refused size for its kind in a place.
func (o *Offerings) countIn(place string, f *Failure, a Attempt) {
	of := subject{kind: kindOf(a.SKU), place: place, capacityType: model.Spot}
	o.mu.Lock()
	now := o.now()
	s := o.scarcities[of]
	if s == nil || now.Sub(s.last) > scarceWithin {
		s = &scarcity{refused: map[placed]bool{}, most: ScarceSizes}
		o.scarcities[of] = s
	}
	s.refused[placed{a.SKU.Name, a.Zone == instancetype.RegionalZone}], s.last = true, now
	enough := len(s.refused) >= s.most
	if enough {
		clear(s.refused)
		s.most = ScarceAgain
	}
	o.mu.Unlock()
	if enough {
		why := fmt.Sprintf("%s for one spot size after the other", f.Code)
		o.put(of, 0, ScarceTTL, cause{why: why})
	}
}

// soldOut reports whether every zone that the size of an attempt is sold in has refused it or its
// kind by itself.
func (o *Offerings) soldOut(a Attempt) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expire()
	region := a.Zone[:max(0, strings.LastIndex(a.Zone, "-"))]
	for _, zone := range a.SKU.Zones {
		label := instancetype.ZoneLabel(region, zone)
		_, size := o.entries[subject{size: a.SKU.Name, place: label, capacityType: model.Spot}]
		_, kind := o.entries[subject{kind: kindOf(a.SKU), place: label, capacityType: model.Spot}]
		if !size && !kind {
			return false
		}
	}
	return len(a.SKU.Zones) > 0
}

// plenty forgets that spot machines of a kind are scarce in a zone and in the region, since one was
// made there. The caller holds mu.
func (o *Offerings) plenty(a Attempt) {
	for _, place := range []string{a.Zone, anyPlace} {
		s := subject{kind: kindOf(a.SKU), place: place, capacityType: model.Spot}
		delete(o.scarcities, s)
		if _, scarce := o.entries[s]; scarce {
			delete(o.entries, s)
			o.revision++
		}
	}
}

// forgetScarcity forgets that spot machines are scarce anywhere, since a person wants to ask
// again. The caller holds mu.
func (o *Offerings) forgetScarcity() {
	clear(o.scarcities)
	maps.DeleteFunc(o.entries, func(s subject, _ entry) bool { return s.scarce() })
}
