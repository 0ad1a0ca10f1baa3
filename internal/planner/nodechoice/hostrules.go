package nodechoice

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/construct"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// hostRules are the rules on hosts of demands, as far as the packer can express them: a
// cap per node and conflicts. Demands are numbered by their index.
type hostRules struct {
	// perNode is, by demand, how many of its pods one node may hold; 0 is no cap.
	perNode []int
	// conflicts are, by demand, ids; demands that share an id never share a node.
	conflicts [][]int32
	// groups are large groups of demands of which a node holds so many pods in all. The
	// packer sees each as one more dimension, which sharpens its prices and its bound.
	groups []group
	// exact says that this is what the rules say. If not, it is stricter.
	exact bool
	// next is the next id of a conflict.
	next int32
	// excluded are the groups of more than two that never share a node: where many terms keep
	// the same demands apart, that is one conflict.
	excluded bitset.Interned
}

// group is a number of demands or classes of which a new node holds at most so many pods.
type group struct {
	members  []int
	capacity int
	// onNodes is how many pods an existing node holds at most. It is valid for groups of
	// classes, and no lower than capacity.
	onNodes int
}

// A group of at least largeGroup demands becomes a dimension, up to maxGroups of them.
// Smaller groups and further ones are conflicts.
const (
	largeGroup = 8
	maxGroups  = 8
)

// maxPairs bounds the pairwise conflicts. Beyond it all demands concerned are kept apart
// from each other.
const maxPairs = 4000

// newHostRules binds the rules of demands, whose classes are placed in the given order.
func newHostRules(in *instance.Instance, order *topology.Order, demands []construct.Demand) *hostRules {
	h := &hostRules{perNode: make([]int, len(demands)), conflicts: make([][]int32, len(demands)), exact: true}
	var spread, empty []int // counters that rules read, in order of discovery
	skew := map[int]int{}
	carriers, spreaders := map[int][]int{}, map[int][]int{}
	host := make([]bool, len(demands)) // demands with rules on hosts
	for i := range demands {
		d := &demands[i]
		rules := in.Classes[d.Class].Levels[d.Level].Rules
		for j := range rules.Spread {
			if s := &rules.Spread[j]; s.Key == topology.Host {
				known, ok := skew[s.Counter]
				if !ok {
					spread = append(spread, s.Counter)
					known = int(s.MaxSkew)
				}
				skew[s.Counter] = min(known, int(s.MaxSkew))
				h.exact = h.exact && known == int(s.MaxSkew) // else some are kept to less than their own
				spreaders[s.Counter] = append(spreaders[s.Counter], i)
				host[i] = true
			}
		}
		for _, a := range rules.AntiAffinity {
			if c := a.Counter; a.Key == topology.Host {
				if carriers[c] == nil {
					empty = append(empty, c)
				}
				if known := carriers[c]; len(known) == 0 || known[len(known)-1] != i {
					carriers[c] = append(known, i)
				}
				host[i] = true
			}
		}
	}
	adders := addersOnHosts(in, demands, slices.Concat(spread, empty))
	pairs := 0
	for _, c := range spread {
		h.spread(skew[c], adders[c], spreaders[c], host)
		earlier := placedEarlier(order, demands, adders[c], spreaders[c], host)
		h.exact = h.exact && len(earlier) == 0 // in another order some might share a node
		pairs += h.apart(spreaders[c], earlier, maxPairs-pairs)
	}
	for _, c := range empty {
		pairs += h.apart(carriers[c], adders[c], maxPairs-pairs)
	}
	h.ports(in, demands)
	return h
}

// addersOnHosts lists, by counter, the demands whose pods it counts, ascending. It does so
// for the given counters alone.
func addersOnHosts(in *instance.Instance, demands []construct.Demand, counters []int) map[int][]int32 {
	out := make(map[int][]int32, len(counters))
	if len(counters) == 0 {
		return out
	}
	wanted := make([]bool, slices.Max(counters)+1)
	for _, c := range counters {
		wanted[c] = true
	}
	each := func(visit func(counter int32, demand int)) {
		for i := range demands {
			for _, c := range in.Topology.Adds(demands[i].Class) {
				if int(c) < len(wanted) && wanted[c] {
					visit(c, i)
				}
			}
		}
	}
	sizes, total := make([]int, len(wanted)), 0
	each(func(c int32, _ int) { sizes[c]++; total++ })
	lists, cells := make([][]int32, len(wanted)), make([]int32, total) // one piece of storage for all
	for c, size := range sizes {
		lists[c], cells = cells[:0:size], cells[size:]
	}
	each(func(c int32, i int) { lists[c] = append(lists[c], int32(i)) })
	for _, c := range counters {
		out[c] = lists[c]
	}
	return out
}

// spread caps the counted pods per node. Pods without any rule on hosts of their own may
// join later and are not held back. Of several classes that have one, only one shares a
// node, which is stricter than needed if maxSkew is more than one. So is a cap for pods that
// a constraint of others counts alone, which may come after these.
func (h *hostRules) spread(skew int, adders []int32, spreaders []int, host []bool) {
	var members []int
	for _, adder := range adders {
		if i := int(adder); host[i] {
			members = append(members, i)
			h.limit(i, skew)
			h.exact = h.exact && slices.Contains(spreaders, i)
		}
	}
	if len(members) > 1 {
		h.exact = false
		h.group(members, skew)
	}
}

// group lets a node hold at most so many pods of all members or, where that is not worth
// a dimension, pods of only one member.
func (h *hostRules) group(members []int, capacity int) {
	if len(members) >= largeGroup && len(h.groups) < maxGroups {
		h.groups = append(h.groups, group{members: members, capacity: capacity})
		return
	}
	h.exclude(members)
}

// placedEarlier lists the counted demands without rules on hosts that are placed before
// one of the spreaders: they cannot join later.
func placedEarlier(order *topology.Order, demands []construct.Demand, counted []int32, spreaders []int, host []bool) []int32 {
	last := -1
	for _, i := range spreaders {
		last = max(last, order.Position(demands[i].Class))
	}
	var out []int32
	for _, i := range counted {
		if !host[i] && order.Position(demands[i].Class) < last {
			out = append(out, i)
		}
	}
	return out
}

// limit lets a node hold at most n pods of a demand.
func (h *hostRules) limit(i, n int) {
	if h.perNode[i] == 0 || n < h.perNode[i] {
		h.perNode[i] = n
	}
}

// exclude keeps members from sharing a node.
func (h *hostRules) exclude(members []int) {
	if len(members) > 2 {
		set := bitset.New(len(h.perNode))
		for _, i := range members {
			set.Add(i)
		}
		h.excludeSet(set)
		return
	}
	for _, i := range members {
		h.conflicts[i] = append(h.conflicts[i], h.next)
	}
	h.next++
}

// excludeSet keeps the demands of a set from sharing a node, unless a conflict of just these
// is there.
func (h *hostRules) excludeSet(members bitset.Set) {
	if known := h.excluded.Len(); h.excluded.Intern(members) < known {
		return
	}
	for i := range members.All {
		h.conflicts[i] = append(h.conflicts[i], h.next)
	}
	h.next++
}

// apart keeps carriers of an anti-affinity term from the pods that it counts, and
// returns how many pairwise conflicts that took. It is stricter than a spread constraint
// needs, which may tolerate a few. No carrier is listed twice.
func (h *hostRules) apart(carriers []int, counted []int32, pairsLeft int) int {
	var both, onlyCarry []int
	for _, i := range carriers {
		if slices.Contains(counted, int32(i)) {
			both = append(both, i)
			h.limit(i, 1)
		} else {
			onlyCarry = append(onlyCarry, i)
		}
	}
	pairs := len(onlyCarry)*len(counted) + len(both)*(len(counted)-len(both))
	switch {
	case pairs == 0 && len(both) == 0:
		return 0
	case pairs > pairsLeft:
		h.exact = false
		all := bitset.New(len(h.perNode))
		for _, i := range carriers {
			all.Add(i)
		}
		for _, i := range counted {
			all.Add(int(i))
		}
		h.excludeSet(all)
		return 0
	case len(both) > 1:
		h.group(both, 1)
	}
	for _, i := range onlyCarry {
		for _, j := range counted {
			h.exclude([]int{i, int(j)})
		}
	}
	for _, i := range both {
		for _, j := range counted {
			if !slices.Contains(both, int(j)) {
				h.exclude([]int{i, int(j)})
			}
		}
	}
	return pairs
}

// ports keeps pods that take the same host port from sharing a node.
func (h *hostRules) ports(in *instance.Instance, demands []construct.Demand) {
	var with []int
	for i := range demands {
		if len(in.Classes[demands[i].Class].Spec.HostPorts) > 0 {
			with = append(with, i)
			h.limit(i, 1)
		}
	}
	for x, i := range with {
		for _, j := range with[x+1:] {
			ci, cj := &in.Classes[demands[i].Class], &in.Classes[demands[j].Class]
			if feasible.PortsClash(ci.Spec.HostPorts, cj.Spec.HostPorts) {
				h.exclude([]int{i, j})
			}
		}
	}
}
