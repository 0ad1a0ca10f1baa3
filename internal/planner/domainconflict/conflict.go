package domainconflict

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// exposure is a spread constraint of a class, and domains that it does not count and in
// which others may buy nodes that it has to count.
type exposure struct {
	class   int
	spread  *topology.Spread
	outside []int32
}

// domains are the outside domains with the constraint's counter.
func (e *exposure) domains() []topology.Domain {
	out := make([]topology.Domain, len(e.outside))
	for i, value := range e.outside {
		out[i] = topology.Domain{Counter: e.spread.Counter, Value: value}
	}
	return out
}

// exposures lists the spread constraints to which the options could add domains.
func exposures(s *placement.State, options bitset.Set) []exposure {
	var out []exposure
	eligible := s.Domains.Counts.Eligible
	known := map[topology.OutsideKey][]int32{}
	for i, sp := range spreads(s.Instance) {
		key, shared := eligible.OutsideKey(sp)
		outside, ok := known[key]
		if !ok || !shared {
			outside = eligible.Outside(sp, options)
			known[key] = outside
		}
		if len(outside) > 0 {
			out = append(out, exposure{i, sp, outside})
		}
	}
	return out
}

// spreads yields the classes' spread constraints that hold when all preferences are given
// up.
func spreads(in *instance.Instance) func(yield func(class int, s *topology.Spread) bool) {
	return func(yield func(class int, s *topology.Spread) bool) {
		for i := range in.Classes {
			if len(in.Classes[i].Levels) == 0 {
				continue
			}
			rules := in.HardRules(i)
			for j := range rules.Spread {
				if !yield(i, &rules.Spread[j]) {
					return
				}
			}
		}
	}
}

// Possible reports whether nodes may be sold in domains that a spread constraint has to
// count and whose pods cannot use them. If not, no plan has a conflict.
func Possible(s *placement.State) bool {
	return len(exposures(s, s.Instance.Space.Supply.Available)) > 0
}

// Outside are the domains that options which can be bought could add to spread
// constraints.
func Outside(s *placement.State) []topology.Domain {
	var out []topology.Domain
	for _, e := range exposures(s, s.Instance.Space.Supply.Available) {
		for _, d := range e.domains() {
			if !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}

// Conflicts are the domains in which a plan buys although pods have places that the
// scheduler would then refuse.
func Conflicts(s *placement.State) []topology.Domain { return violated(s, s.Bought()) }

// violated are those outside domains in which none of the options may be bought, since
// pods have places that the scheduler would then refuse.
func violated(s *placement.State, options bitset.Set) []topology.Domain {
	byClass := map[int][]exposure{}
	for _, e := range exposures(s, options) {
		byClass[e.class] = append(byClass[e.class], e)
	}
	if len(byClass) == 0 {
		return nil
	}
	var out []topology.Domain
	s.EachPodCount(func(pl *placement.Place, pc instance.PodCount) {
		for _, e := range byClass[pc.Class] {
			for _, d := range e.domains() {
				if s.Domains.Counts.Excess(e.spread, pl.Place, d.Value) > 0 && !slices.Contains(out, d) {
					out = append(out, d)
				}
			}
		}
	})
	return out
}

// Missing are domains in which the plan buys and which would make up for those that the
// minDomains of a spread constraint lack, where pods of the constraint have no place.
func Missing(s *placement.State) []topology.Domain {
	if s.Unplaced() == 0 {
		return nil
	}
	var out []topology.Domain
	for _, e := range exposures(s, s.Bought()) {
		if s.Left[e.class] > 0 && s.Domains.Counts.Eligible.TooFew(e.spread) {
			out = append(out, e.domains()...)
		}
	}
	return out
}

// NeedsCounted reports whether a spread constraint has as many domains as its minDomains
// asks for only with counted ones that are not among those that stay.
func NeedsCounted(s *placement.State, stay []topology.Domain) bool {
	if len(stay) == len(s.Decision.Counted) {
		return false
	}
	for _, sp := range spreads(s.Instance) {
		if s.Domains.Counts.Eligible.NeedsFurther(sp, stay) {
			return true
		}
	}
	return false
}

// ShutIdle is the decision of a plan that shuts the domains which it counts and in which
// the plan buys nothing.
func ShutIdle(s *placement.State) placement.Decision {
	bought := s.Bought()
	d := placement.Decision{Shut: bitset.New(len(s.Instance.Space.Options))}
	if s.Decision.Shut != nil {
		d.Shut.Or(s.Decision.Shut)
	}
	for _, counted := range s.Decision.Counted {
		if in := s.Instance.Topology.In(counted); in.Intersects(bought) {
			d.Counted = append(d.Counted, counted)
		} else {
			d.Shut.Or(in)
		}
	}
	return d
}

// DropViolating takes the offerings that would put a spread constraint in conflict from
// the alternatives of all new nodes, but for those that minValues needs.
func DropViolating(s *placement.State) {
	in := s.Instance
	violating := bitset.New(len(in.Space.Options))
	for _, d := range violated(s, in.Space.Supply.Available) {
		violating.Or(in.Topology.In(d))
	}
	if !violating.Any() {
		return
	}
	for _, pl := range s.NewNodes {
		rest := pl.Options.Clone()
		rest.AndNot(violating)
		if in.MinValues.Met(int(in.Space.Options[pl.Option].Pool), in.MinValues.Fixed(rest, pl.Pods, pl.Option), s.Used(pl)) {
			pl.Options = rest
		}
	}
}
