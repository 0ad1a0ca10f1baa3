package topology

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// Eligible knows the eligible domains of all spread constraints, given the domains that
// a plan adds to them. It does not change once made.
//
// The scheduler takes the global minimum over the nodes that exist, whichever pods they
// were bought for. A new node in a domain that a constraint's own pods cannot use is
// therefore a further eligible domain.
type Eligible struct {
	t *Topology
	// further lists, by group, the domains besides [group.domains]; it is nil when no
	// group has any.
	further [][]int32
}

// newEligible lets each of the domains count for the constraints of its counter.
func newEligible(t *Topology, further []Domain) *Eligible {
	e := &Eligible{t: t}
	if len(further) == 0 {
		return e
	}
	e.further = make([][]int32, len(t.groups))
	for _, d := range further {
		for _, g := range t.counters[d.Counter].groups {
			if !e.has(g, d.Value) {
				e.further[g] = append(e.further[g], d.Value)
			}
		}
	}
	return e
}

// more lists the further domains of a constraint or group.
func (e *Eligible) more(group int) []int32 {
	if e.further == nil || group < 0 {
		return nil
	}
	return e.further[group]
}

// has reports whether a domain is eligible for the constraints of a group.
func (e *Eligible) has(group int, domain int32) bool {
	_, ok := slices.BinarySearch(e.t.groups[group].domains, domain)
	return ok || slices.Contains(e.more(group), domain)
}

// count is the number of eligible domains of a constraint.
func (e *Eligible) count(s *Spread) int { return e.own(s) + len(e.more(s.group)) }

// own is the number of eligible domains that a constraint has without further ones.
func (e *Eligible) own(s *Spread) int {
	if s.group < 0 {
		return 0
	}
	return len(e.t.groups[s.group].domains)
}

// TooFew reports whether a constraint has fewer eligible domains than its MinDomains.
func (e *Eligible) TooFew(s *Spread) bool { return e.count(s) < s.MinDomains }

// NeedsFurther reports whether a constraint has as many domains as its MinDomains, but
// would have fewer if of the further domains only some stayed.
func (e *Eligible) NeedsFurther(s *Spread, stay []Domain) bool {
	if s.MinDomains == 0 || e.TooFew(s) {
		return false
	}
	left := e.own(s)
	for _, value := range e.more(s.group) {
		if slices.Contains(stay, Domain{s.Counter, value}) {
			left++
		}
	}
	return left < s.MinDomains
}

// Outside lists the domains that are not eligible for a constraint now, and would be if
// a node were bought as one of the options. It is empty for constraints that the
// scheduler does not enforce and for those over hosts.
func (e *Eligible) Outside(s *Spread, options bitset.Set) []int32 {
	if s.Key == Host || !s.Hard {
		return nil
	}
	counted := e.t.counters[s.Counter].options
	var out []int32
	for o := range options.All {
		v := e.t.space.Labels.OptionValue(s.Key, o)
		if v >= 0 && (counted == nil || counted.Has(o)) && !slices.Contains(out, v) && !e.has(s.group, v) {
			out = append(out, v)
		}
	}
	return out
}

// OutsideKey is equal for constraints for which [Eligible.Outside] is the same.
type OutsideKey struct {
	key   int
	hard  bool
	known *int32
}

// OutsideKey returns the key of a constraint, and whether it has one.
func (e *Eligible) OutsideKey(s *Spread) (OutsideKey, bool) {
	if len(s.Domains) == 0 || len(e.more(s.group)) > 0 || e.t.counters[s.Counter].options != nil {
		return OutsideKey{}, false
	}
	return OutsideKey{s.Key, s.Hard, &s.Domains[0]}, true
}
