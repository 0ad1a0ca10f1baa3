package unavailable

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
//
// A plan asks for sizes of one number of vCPUs first, as long as they are the cheapest for the pods,
// and Azure may run out of the small ones alone. So at least ScarceOthers of the refusals, or
// ScarceOthersAgain, have to be of other numbers of vCPUs than the one that is refused most. While
// there are fewer, only the sizes with that number are asked for no more; the others are, until so
// many of them are refused.
const (
	ScarceSizes       = 10
	ScarceOthers      = 4
	ScarceAgain       = 5
	ScarceOthersAgain = 2
	ScarceTTL         = 3 * time.Minute
	// scarceWithin is how long after the last of them refusals count as in a row.
	scarceWithin = 10 * time.Minute
)

// scarcity counts the refusals of different spot machines of one kind in one place since the last
// such machine was made.
type scarcity struct {
	refused map[placed]bool
	// again says that the kind was scarce before, so that fewer refusals are enough.
	again bool
	// alone is the kind of those of its sizes, by their number of vCPUs, that were scarce alone
	// since then; empty for none. Their refusals up to then are no longer in refused.
	alone string
	// last is when the last one was refused.
	last time.Time
}

// placed is a size that was asked for, in a zone or without one.
type placed struct {
	size     string
	regional bool
	// kind is that of the sizes with as many vCPUs.
	kind string
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

// kindWithVCPUs is the kind of a size together with its number of vCPUs.
func kindWithVCPUs(s *instancetype.SKU) string {
	if s.VCPUs == 1 {
		return kindOf(s) + ", 1 vCPU"
	}
	return kindOf(s) + ", " + strconv.FormatInt(s.VCPUs, 10) + " vCPUs"
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
		s = &scarcity{refused: map[placed]bool{}}
		o.scarcities[of] = s
	}
	s.refused[placed{a.SKU.Name, a.Zone == instancetype.RegionalZone, kindWithVCPUs(a.SKU)}], s.last = true, now
	scarce := s.judge(of.kind)
	o.mu.Unlock()
	if scarce != "" {
		of.kind = scarce
		why := fmt.Sprintf("%s for one spot size after the other", f.Code)
		o.put(of, 0, ScarceTTL, cause{why: why})
	}
}

// judge says what is scarce by the refusals so far: the kind, those of its sizes that have one
// number of vCPUs, or nothing (empty).
func (s *scarcity) judge(kind string) string {
	most, others := ScarceSizes, ScarceOthers
	if s.again {
		most, others = ScarceAgain, ScarceOthersAgain
	}
	first, total := s.alone, len(s.refused)
	if first == "" {
		if total < most {
			return ""
		}
		first = s.mostRefused()
	}
	ofFirst := s.of(first)
	switch {
	case total-ofFirst >= others:
		clear(s.refused)
		s.again, s.alone = true, ""
		return kind
	case s.alone == "" || ofFirst >= ScarceAgain:
		maps.DeleteFunc(s.refused, func(p placed, _ bool) bool { return p.kind == first })
		s.alone = first
		return first
	}
	return ""
}

// of is how many of the refusals are of a kind of sizes with one number of vCPUs.
func (s *scarcity) of(kind string) int {
	n := 0
	for p := range s.refused {
		if p.kind == kind {
			n++
		}
	}
	return n
}

// mostRefused is the kind of sizes with one number of vCPUs that has the most refusals.
func (s *scarcity) mostRefused() string {
	most, refusals := "", 0
	for p := range s.refused {
		if n := s.of(p.kind); n > refusals || n == refusals && p.kind < most {
			most, refusals = p.kind, n
		}
	}
	return most
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
		_, vcpus := o.entries[subject{kind: kindWithVCPUs(a.SKU), place: label, capacityType: model.Spot}]
		if !size && !kind && !vcpus {
			return false
		}
	}
	return len(a.SKU.Zones) > 0
}

// plenty forgets that spot machines of a kind are scarce in a zone and in the region, since one was
// made there. Sizes with another number of vCPUs that are scarce alone stay so until ScarceTTL is
// over: a machine that was bought instead of them says nothing about them. The caller holds mu.
func (o *Offerings) plenty(a Attempt) {
	kind, withVCPUs := kindOf(a.SKU), kindWithVCPUs(a.SKU)
	for _, place := range []string{a.Zone, anyPlace} {
		of := subject{kind: kind, place: place, capacityType: model.Spot}
		if s := o.scarcities[of]; s != nil && s.alone != "" && s.alone != withVCPUs {
			clear(s.refused)
			s.again = false
		} else {
			delete(o.scarcities, of)
		}
		for _, k := range []string{kind, withVCPUs} {
			of.kind = k
			if _, scarce := o.entries[of]; scarce {
				delete(o.entries, of)
				o.revision++
			}
		}
	}
}

// forgetScarcity forgets that spot machines are scarce anywhere, since a person wants to ask
// again. The caller holds mu.
func (o *Offerings) forgetScarcity() {
	clear(o.scarcities)
	maps.DeleteFunc(o.entries, func(s subject, _ entry) bool { return s.scarce() })
}
