package unavailable

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Where size after size is sold out as spot, the sizes of their kind that were not asked for are
// likely to be, too. A NodePool of spot machines would ask for hundreds of them, a few in each
// launch, before another one of lower weight buys. So after ScarceSizes different ones of one kind
// in a row in one place no spot machine of that kind is asked for there for ScarceTTL, and after
// that ScarceAgain more are enough.
const (
	ScarceSizes = 10
	ScarceAgain = 5
	ScarceTTL   = 3 * time.Minute
	// scarceWithin is how long after the last of them refusals count as in a row.
	scarceWithin = 10 * time.Minute
)

// scarcity counts the different sizes of one kind that were refused in one place as spot machines
// since the last such machine was made.
type scarcity struct {
	sizes map[string]bool
	// most is how many are enough, last when the last one was refused.
	most int
	last time.Time
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

// count counts a size that Azure has no room for, for its kind in the place of its entry.
func (o *Offerings) count(f *Failure, a Attempt) {
	if a.CapacityType != model.Spot || !f.refusal.scarce() {
		return
	}
	of := subject{kind: kindOf(a.SKU), place: f.refusal.Place.of(a), capacityType: model.Spot}
	o.mu.Lock()
	now := o.now()
	s := o.scarcities[of]
	if s == nil || now.Sub(s.last) > scarceWithin {
		s = &scarcity{sizes: map[string]bool{}, most: ScarceSizes}
		o.scarcities[of] = s
	}
	s.sizes[a.SKU.Name], s.last = true, now
	enough := len(s.sizes) >= s.most
	if enough {
		clear(s.sizes)
		s.most = ScarceAgain
	}
	o.mu.Unlock()
	if enough {
		why := fmt.Sprintf("%s for one spot size after the other", f.Code)
		o.put(of, 0, ScarceTTL, cause{why: why})
	}
}

// plenty forgets that spot machines of a kind are scarce in a zone, since one was made there. The
// caller holds mu.
func (o *Offerings) plenty(a Attempt) {
	places := []string{a.Zone, anyZone}
	if a.Zone == instancetype.RegionalZone {
		places = places[:1]
	}
	for _, place := range places {
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
