package unavailable

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/model"
)

// The places of an entry that are not one zone.
const (
	anyZone  = "zonal"    // every zone, not regional
	anyPlace = "anywhere" // every zone and regional
)

// Attempt is what was asked for when Azure refused, or made a machine.
type Attempt struct {
	SKU          *instancetype.SKU
	Zone         string // label: eastus-1, or 0 for regional
	CapacityType model.CapacityType
}

// String names the attempt for messages.
func (a Attempt) String() string {
	return fmt.Sprintf("%s %s in zone %s", a.SKU.Name, a.CapacityType, a.Zone)
}

// subject is what an entry is about: a size, a quota family, a kind of sizes or the sizes that
// a policy denies, by place and capacity type. At most one of the four is set; all empty mean
// every size.
type subject struct {
	size, family, kind, policy string
	// place is a zone label, anyZone or anyPlace.
	place        string
	capacityType model.CapacityType
}

// entry says that the offerings of a subject are unavailable.
type entry struct {
	// until is when the entry ends.
	until time.Time
	// minVCPUs limits a family's entry to sizes at least this large, in vCPUs.
	minVCPUs int64
	cause
}

// cause is what an entry was made for.
type cause struct {
	// why is Azure's code, or another reason in a few words.
	why string
	// quota says that a quota of the subscription is used up.
	quota bool
	// policy says which sizes an entry of a policy is about; nil for others.
	policy *SizePolicy
}

// Entry is what the cache holds about one subject, for people and for other
// processes.
type Entry struct {
	// Size, Family, Kind and Policy say which sizes it is about: at most one of them is set, and
	// all empty mean every size. Kind is only of spot machines which are not asked for, at times
	// with their number of vCPUs.
	Size, Family, Kind string
	Policy             *SizePolicy

	Place        string // a zone label, "zonal" or "anywhere"
	CapacityType model.CapacityType
	MinVCPUs     int64 // sizes below are not concerned
	Until        time.Time
	Why          string
	Quota        bool // a quota of the subscription is used up
}

// Offerings is the cache of unavailable offerings. It is safe for concurrent use.
type Offerings struct {
	now func() time.Time

	// mu guards what follows.
	mu      sync.Mutex
	entries map[subject]entry
	// inARow counts the refusals of a size in a zone that rule nothing out, since the
	// last machine there.
	inARow map[subject]int
	// policies are the subjects of entries which are about policies, in a stable order.
	policies []subject
	// scarcities are by kind and place.
	scarcities map[subject]*scarcity
	// next is when the first entry ends; zero when there is none.
	next time.Time
	// revision counts the changes of what Unavailable answers.
	revision uint64
}

// New returns an empty cache that reads the time from now.
func New(now func() time.Time) *Offerings {
	return &Offerings{now: now, entries: map[subject]entry{}, inARow: map[subject]int{}, scarcities: map[subject]*scarcity{}}
}

// MarkUnavailable records a refusal, as the row of its kind in [Refusals] says.
func (o *Offerings) MarkUnavailable(f *Failure, a Attempt) {
	r := f.refusal
	if r.Reaction == GiveUp && r.Kind != Throttled && r.Kind != SubnetFull && r.Kind != ClusterBusy {
		o.repeated(f, a)
	}
	place, ttl, why := r.Place.of(a), r.TTL.of(f, a), cause{why: f.Code, quota: r.quota()}
	for _, t := range r.CapacityTypes.of(a) {
		size := subject{size: a.SKU.Name, place: place, capacityType: t}
		family := subject{family: a.SKU.Family, place: place, capacityType: t}
		switch r.Sizes {
		case EverySize:
			o.put(subject{place: place, capacityType: t}, 0, ttl, why)
		case FamilyFrom:
			from := a.SKU.VCPUs
			if f.ZeroLimit {
				from = 0
			}
			o.put(size, 0, ttl, why)
			o.put(family, from, ttl, why)
		case ThisSize:
			o.put(size, 0, ttl, why)
		case PolicySizes:
			policies := f.ofSizes(a.SKU)
			for i := range policies {
				why := cause{why: f.Code, policy: &policies[i]}
				o.put(subject{policy: policies[i].Name, place: place, capacityType: t}, 0, ttl, why)
			}
			if len(policies) == 0 {
				o.put(size, 0, ttl, why)
			}
		case NoSize:
		}
		if r.LargerSizes > 0 {
			o.put(family, a.SKU.VCPUs+1, r.LargerSizes, why)
		}
	}
	o.count(f, a)
}

// repeated counts a refusal that rules nothing out. After Repeats of one size in one
// zone without a machine between them, the size rests there.
func (o *Offerings) repeated(f *Failure, a Attempt) {
	s := subject{size: a.SKU.Name, place: a.Zone, capacityType: a.CapacityType}
	o.mu.Lock()
	o.inARow[s]++
	times := o.inARow[s]
	if times >= Repeats {
		delete(o.inARow, s)
	}
	o.mu.Unlock()
	if times >= Repeats {
		o.put(s, 0, RestTTL, cause{why: fmt.Sprintf("%s %d times in a row", f.Code, times)})
	}
}

// MarkLaunched records that a machine was made as asked for.
func (o *Offerings) MarkLaunched(a Attempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.inARow, subject{size: a.SKU.Name, place: a.Zone, capacityType: a.CapacityType})
	if a.CapacityType == model.Spot {
		o.plenty(a)
	}
}

// of is the place of the entries that a refused attempt leaves.
func (p Place) of(a Attempt) string {
	switch p {
	case InZone:
		return a.Zone
	case SamePlacement:
		if a.Zone == instancetype.RegionalZone {
			return instancetype.RegionalZone
		}
		return anyZone
	case Everywhere, Nowhere:
	}
	return anyPlace
}

// of lists the capacity types of the entries that a refused attempt leaves.
func (c CapacityTypes) of(a Attempt) []model.CapacityType {
	switch c {
	case SameType:
		return []model.CapacityType{a.CapacityType}
	case BothType:
		return []model.CapacityType{model.OnDemand, model.Spot}
	case SpotOnly:
		return []model.CapacityType{model.Spot}
	case NoType:
	}
	return nil
}

// of is how long a refused attempt counts.
func (t TTL) of(f *Failure, a Attempt) time.Duration {
	switch {
	case f.ZeroLimit && t.ZeroLimit > 0:
		return t.ZeroLimit
	case a.CapacityType == model.Spot && t.Spot > 0:
		return t.Spot
	}
	return t.Usual
}

// MarkInterrupted records that Azure has interrupted a spot machine: for ten minutes
// the size is not bought as spot in that zone, where it would likely be interrupted
// again. Nothing is recorded without a size or a zone.
func (o *Offerings) MarkInterrupted(size, zone string) {
	if size != "" && zone != "" {
		o.put(subject{size: size, place: zone, capacityType: model.Spot}, 0, lowQuotaTTL, cause{why: "an eviction of such a machine"})
	}
}

// put adds an entry. Of two entries of one subject the wider and longer holds.
func (o *Offerings) put(s subject, minVCPUs int64, ttl time.Duration, why cause) {
	o.mu.Lock()
	defer o.mu.Unlock()
	until := o.now().Add(ttl)
	old, exists := o.entries[s]
	if exists {
		minVCPUs = min(minVCPUs, old.minVCPUs)
		if old.until.After(until) {
			until = old.until
		}
	}
	exists = exists && samePolicy(old.policy, why.policy)
	o.entries[s] = entry{until: until, minVCPUs: minVCPUs, cause: why}
	if s.policy != "" {
		o.listPolicies()
	}
	if o.next.IsZero() || until.Before(o.next) {
		o.next = until
	}
	// A later end alone changes no answer, so that nothing needs to be built again.
	if !exists || minVCPUs != old.minVCPUs {
		o.revision++
	}
}

// Unavailable says why an offering is not worth asking for, or "", and whether that is a
// quota which is used up. The zone is a label as in [Attempt].
func (o *Offerings) Unavailable(s *instancetype.SKU, zone string, capacityType model.CapacityType) (why string, quota bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expire()
	if len(o.entries) == 0 {
		return "", false
	}
	kind, withVCPUs := kindOf(s), kindWithVCPUs(s)
	places := [3]string{zone, anyPlace, anyZone}
	n := 3
	if zone == instancetype.RegionalZone {
		n = 2
	}
	for _, place := range places[:n] {
		for _, sub := range [5]subject{
			{size: s.Name, place: place, capacityType: capacityType},
			{family: s.Family, place: place, capacityType: capacityType},
			{kind: kind, place: place, capacityType: capacityType},
			{kind: withVCPUs, place: place, capacityType: capacityType},
			{place: place, capacityType: capacityType},
		} {
			if found, ok := o.entries[sub]; ok && s.VCPUs >= found.minVCPUs {
				return sub.refused(found.why, found.until), found.quota
			}
		}
	}
	for _, sub := range o.policies {
		found := o.entries[sub]
		if sub.capacityType == capacityType && found.policy.denies(s.Name) {
			return sub.refused(found.why, found.until), false
		}
	}
	return "", false
}

// refused says why the sizes of a subject are not worth asking for until then.
func (s subject) refused(why string, until time.Time) string {
	text := "Azure refused it with " + why
	if s.scarce() { // most of the kind were never asked for
		text = fmt.Sprintf("Azure is not asked for it: its kind (%s) was refused, %s", s.kind, why)
	}
	if s.policy != "" { // most of the sizes were never asked for
		text = fmt.Sprintf("Azure is not asked for it: the policy %q denies it, %s", s.policy, why)
	}
	return fmt.Sprintf("%s; it is asked again after %s", text, until.UTC().Format(time.RFC3339))
}

// Revision changes whenever an answer of Unavailable may.
func (o *Offerings) Revision() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expire()
	return o.revision
}

// expire drops the entries that have ended. The caller holds mu.
func (o *Offerings) expire() {
	now := o.now()
	if o.next.IsZero() || now.Before(o.next) {
		return
	}
	before := len(o.entries)
	maps.DeleteFunc(o.entries, func(_ subject, x entry) bool { return !now.Before(x.until) })
	if len(o.entries) != before {
		o.listPolicies()
		o.revision++
	}
	o.next = time.Time{}
	for _, x := range o.entries {
		if o.next.IsZero() || x.until.Before(o.next) {
			o.next = x.until
		}
	}
}

// Forget forgets what was refused of a size or a family, in any case of its letters, or of
// everything (*), so that it is asked for again. A policy that denies a size goes with the size.
// It returns how many entries that were.
func (o *Offerings) Forget(name string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expire()
	before := len(o.entries)
	if name != "" {
		o.forgetScarcity()
	}
	maps.DeleteFunc(o.entries, func(s subject, x entry) bool {
		return name == "*" || name != "" && (strings.EqualFold(s.size, name) || strings.EqualFold(s.family, name) ||
			x.policy != nil && !ofFamily(name) && x.policy.denies(name))
	})
	if len(o.entries) != before {
		o.listPolicies()
		o.revision++
	}
	return before - len(o.entries)
}

// Entries lists what is unavailable at the moment, in a stable order.
func (o *Offerings) Entries() []Entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expire()
	var out []Entry
	for s, x := range o.entries {
		out = append(out, Entry{s.size, s.family, s.kind, x.policy, s.place, s.capacityType, x.minVCPUs, x.until, x.why, x.quota})
	}
	slices.SortFunc(out, func(x, y Entry) int {
		return cmp.Or(cmp.Compare(x.Size, y.Size), cmp.Compare(x.Family, y.Family), cmp.Compare(x.Kind, y.Kind),
			cmp.Compare(x.Policy.String(), y.Policy.String()), cmp.Compare(x.Place, y.Place), cmp.Compare(x.CapacityType, y.CapacityType))
	})
	return out
}
