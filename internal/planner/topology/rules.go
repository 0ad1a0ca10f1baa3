package topology

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// Level is the topology terms of a class at one state of its preferences. Preferred
// terms that are still treated as required are in the lists.
type Level struct {
	Spread       []model.SpreadConstraint
	Affinity     []model.AffinityTerm
	AntiAffinity []model.AffinityTerm
	// Options are those on which pods of the class could be placed. Together with the
	// existing nodes they decide the eligible domains of the spread constraints.
	Options bitset.Set
}

// Rules are the topology terms of a class at one level, bound to counters. They do not
// change after [Compile].
type Rules struct {
	// Class is the index in Problem.Classes.
	Class        int
	Spread       []Spread
	Affinity     []Affinity
	AntiAffinity []AntiAffinity
	// Inverse are the anti-affinity terms of other pods that select pods of the class, but
	// for those over hosts, which repelling has. They are the same at all levels.
	Inverse []AntiAffinity
	// repelling are the kinds of pods ([resident]) whose own anti-affinity over hosts
	// selects pods of the class; nil for none. refused are these, and those that pairwise
	// terms of the class select.
	repelling, refused bitset.Set
	// alone says that a pairwise term of the class selects pods of the class.
	alone bool
	// added says that some counter counts pods of the class.
	added bool
}

// Spread is a topology spread constraint: a pod may enter a domain if the count there
// then exceeds the global minimum by at most MaxSkew.
type Spread struct {
	// Counter counts the pods that the constraint selects.
	Counter int
	// Key is the number of the topology key, or [Host].
	Key int
	// MaxSkew is a number of pods, at least 1.
	MaxSkew int32
	// MinDomains is the number of eligible domains below which the global minimum is
	// taken as zero; zero means no such rule.
	MinDomains int
	// Self is 1 if the constraint selects the pods of its own class, else 0.
	Self int32
	// Hard constraints (DoNotSchedule) are enforced by the scheduler; the others are
	// preferences (ScheduleAnyway).
	Hard bool
	// Domains are the eligible domains, ascending: those of existing nodes that count,
	// and those in which a node can be bought for the class. They are empty for Host:
	// there the nodes that count are those of the group.
	// [Eligible] knows those that a plan adds.
	Domains []int32
	// group is an index into [Topology.groups], -1 where no domain is eligible before a
	// plan buys: for Host where there is no node, and for the cap of a node's share.
	group int
	// options are those that count and on which pods of the class could be placed.
	options bitset.Set
	// byNodeAffinity says that nodeAffinityPolicy is Honor: only nodes that the pods'
	// own node rules allow count.
	byNodeAffinity bool
}

// Affinity is a required pod affinity term: a pod may enter only a domain where the
// counter is positive, unless it is the first of its group.
type Affinity struct {
	Counter int
	// Key is the number of the topology key, or [Host].
	Key int
	// Self says that the term selects the pods of its own class.
	Self bool
}

// AntiAffinity is a required pod anti-affinity term, as it is or inverted: a pod may
// enter only a domain where the counter is zero.
type AntiAffinity struct {
	Counter int
	// Key is the number of the topology key, or [Host].
	Key int
	// Self says that the counter counts the pods of the class that is kept away, so
	// that at most one of them enters a domain.
	Self bool
	// pairwise says that the counter has no tally: [Rules.refused] tells the same.
	pairwise bool
}

// Free reports whether topology neither limits pods of the class nor counts them.
func (r *Rules) Free() bool {
	return !r.Bound() && !r.added && len(r.Inverse) == 0 && r.repelling == nil
}

// Bound reports whether the class has topology terms of its own at this level.
func (r *Rules) Bound() bool { return len(r.Spread)+len(r.Affinity)+len(r.AntiAffinity) > 0 }

// PerHost reports whether one of the class's own terms is about hosts.
func (r *Rules) PerHost() bool {
	return slices.ContainsFunc(r.Spread, func(s Spread) bool { return s.Key == Host }) ||
		slices.ContainsFunc(r.Affinity, func(a Affinity) bool { return a.Key == Host }) ||
		slices.ContainsFunc(r.AntiAffinity, func(a AntiAffinity) bool { return a.Key == Host })
}

// PerNode is the most pods of the class that one new node may hold, as far as its own
// terms about hosts limit the class alone, or [NoLimit].
func (r *Rules) PerNode() int {
	most := NoLimit
	for i := range r.Spread {
		if s := &r.Spread[i]; s.Key == Host && s.Self > 0 {
			most = min(most, int(s.MaxSkew))
		}
	}
	for _, a := range r.AntiAffinity {
		if a.Key == Host && a.Self {
			most = 1
		}
	}
	return most
}
