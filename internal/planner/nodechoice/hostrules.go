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
	adders := addersOnHosts(in, demands)
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
				carriers[c] = append(carriers[c], i)
				host[i] = true
			}
		}
	}
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

// addersOnHosts lists, by counter of hosts, the demands whose pods it counts.
func addersOnHosts(in *instance.Instance, demands []construct.Demand) map[int][]int {
	sizes, total := map[int]int{}, 0
	each := func(visit func(counter, demand int)) {
		for i := range demands {
			for _, c := range in.Topology.Adds(demands[i].Class) {
				if in.Topology.PerHost(c) {
					visit(c, i)
				}
			}
		}
	}
	each(func(c, _ int) { sizes[c]++; total++ })
	out, cells := make(map[int][]int, len(sizes)), make([]int, total)
	each(func(c, i int) {
		list, ok := out[c]
		if !ok {
			list, cells = cells[:0:sizes[c]], cells[sizes[c]:]
		}
		out[c] = append(list, i)
	})
	return out
}

// spread caps the counted pods per node. Pods without any rule on hosts of their own may
// join later and are not held back. Of several classes that have one, only one shares a
// node, which is stricter than needed if maxSkew is more than one. So is a cap for pods that
// a constraint of others counts alone, which may come after these.
func (h *hostRules) spread(skew int, adders, spreaders []int, host []bool) {
	var members []int
	for _, i := range adders {
		if host[i] {
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
func placedEarlier(order *topology.Order, demands []construct.Demand, counted, spreaders []int, host []bool) []int {
	last := -1
	for _, i := range spreaders {
		last = max(last, order.Position(demands[i].Class))
	}
	var out []int
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
		if known := h.excluded.Len(); h.excluded.Intern(set) < known {
			return
		}
	}
	for _, i := range members {
		h.conflicts[i] = append(h.conflicts[i], h.next)
	}
	h.next++
}

// apart keeps carriers of an anti-affinity term from the pods that it counts, and
// returns how many pairwise conflicts that took. It is stricter than a spread constraint
// needs, which may tolerate a few.
func (h *hostRules) apart(carriers, counted []int, pairsLeft int) int {
	var both, onlyCarry, onlyCounted []int
	for _, i := range carriers {
		if slices.Contains(counted, i) {
			both = append(both, i)
			h.limit(i, 1)
		} else {
			onlyCarry = append(onlyCarry, i)
		}
	}
	for _, i := range counted {
		if !slices.Contains(both, i) {
			onlyCounted = append(onlyCounted, i)
		}
	}
	pairs := len(onlyCarry)*len(counted) + len(both)*len(onlyCounted)
	if pairs == 0 && len(both) == 0 {
		return 0
	}
	if pairs > pairsLeft {
		h.exact = false
		h.exclude(slices.Concat(both, onlyCarry, onlyCounted))
		return 0
	}
	if len(both) > 1 {
		h.group(both, 1)
	}
	for _, i := range onlyCarry {
		for _, j := range counted {
			h.exclude([]int{i, j})
		}
	}
	for _, i := range both {
		for _, j := range onlyCounted {
			h.exclude([]int{i, j})
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
