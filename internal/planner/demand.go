package planner

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// demand is pods of a class whose topology domain is decided, and for which
// machines are still to be chosen.
type demand struct {
	class, level, count int
	// options are those that the pods may use: one weight of pools, one domain.
	options feasible.Set
	rep     topology.Place
	// floating demands have no domain yet, and nobody who is placed later asks.
	floating bool
}

// demandFrom records pods for machines that the packer will choose.
func (b *builder) demandFrom(c *instance.Class, l int, s *slot, want int) int {
	floating := len(b.keysOf(c.Index, l)) == 0
	if !floating {
		b.counts.Add(c.Index, s.rep, want)
	}
	for i := range b.demands {
		if d := &b.demands[len(b.demands)-1-i]; d.class != c.Index || d.level != l {
			break
		} else if slices.Equal(d.options, s.option) {
			d.count += want
			return want
		}
	}
	if b.demands == nil {
		b.demands = make([]demand, 0, len(b.classes))
	}
	b.demands = append(b.demands, demand{c.Index, l, want, s.option, s.rep, floating})
	return want
}

// hostRules turns the per-machine rules of the demands into what the packer
// knows: a cap per machine and conflicts. It reports whether these are exact;
// where they are not, they are stricter than the rules.
type hostRules struct {
	perBin    []int
	conflicts [][]int32
	// crowds are large groups of demands of which a machine holds so many in
	// all; the packer sees each as one more dimension, which sharpens its prices
	// and its bound.
	crowds []crowd
	exact  bool
	next   int32
}

type crowd struct {
	members  []int
	capacity int
}

// A group of at least largeCrowd demands becomes a dimension, up to maxCrowds
// of them; smaller groups and further ones are conflicts.
const (
	largeCrowd = 8
	maxCrowds  = 8
)

// maxPairs bounds the pairwise conflicts; beyond it everyone concerned is kept
// apart from everyone.
const maxPairs = 4000

func (b *builder) hostRules() *hostRules {
	h := &hostRules{perBin: make([]int, len(b.demands)), conflicts: make([][]int32, len(b.demands)), exact: true}
	adders := map[int][]int{} // counter -> demands whose pods it counts
	var spread, empty []int   // counters that rules look at, in order of discovery
	skew := map[int]int{}
	carriers, spreaders := map[int][]int{}, map[int][]int{}
	host := make([]bool, len(b.demands))
	for i := range b.demands {
		d := &b.demands[i]
		for _, c := range b.inst.Topology.Adds(d.class) {
			if b.inst.Topology.PerHost(c) {
				adders[c] = append(adders[c], i)
			}
		}
		rules := b.classes[d.class].Levels[d.level].Rules
		for j := range rules.Spread {
			if s := &rules.Spread[j]; s.Key == topology.Host {
				if _, ok := skew[s.Counter]; !ok {
					spread = append(spread, s.Counter)
					skew[s.Counter] = int(s.MaxSkew)
				}
				skew[s.Counter] = min(skew[s.Counter], int(s.MaxSkew))
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
		h.spread(skew[c], adders[c], host)
		pairs += h.apart(spreaders[c], b.earlier(adders[c], spreaders[c], host), maxPairs-pairs)
	}
	for _, c := range empty {
		pairs += h.apart(carriers[c], adders[c], maxPairs-pairs)
	}
	b.portRules(h)
	return h
}

// spread caps the counted pods per machine. Pods without any per-machine rule
// of their own may join later and are not held back; of several classes that
// have one, only one shares a machine, which is stricter than needed where
// maxSkew is more than one.
func (h *hostRules) spread(skew int, adders []int, host []bool) {
	var members []int
	for _, i := range adders {
		if host[i] {
			members = append(members, i)
			h.limit(i, skew)
		}
	}
	if len(members) > 1 {
		h.exact = false
		h.crowd(members, skew)
	}
}

// crowd lets a machine hold at most so many pods of all members; where it is
// not worth a dimension, pods of only one member.
func (h *hostRules) crowd(members []int, capacity int) {
	if len(members) >= largeCrowd && len(h.crowds) < maxCrowds {
		h.crowds = append(h.crowds, crowd{members, capacity})
		return
	}
	h.clique(members)
}

// earlier lists the counted demands without per-machine rules that are placed
// before one of the spreaders: they cannot be said to join later.
func (b *builder) earlier(counted, spreaders []int, host []bool) []int {
	last := -1
	for _, i := range spreaders {
		last = max(last, b.order.Position(b.demands[i].class))
	}
	var out []int
	for _, i := range counted {
		if !host[i] && b.order.Position(b.demands[i].class) < last {
			out = append(out, i)
		}
	}
	return out
}

func (h *hostRules) limit(i, n int) {
	if h.perBin[i] == 0 || n < h.perBin[i] {
		h.perBin[i] = n
	}
}

func (h *hostRules) clique(members []int) {
	for _, i := range members {
		h.conflicts[i] = append(h.conflicts[i], h.next)
	}
	h.next++
}

// apart keeps carriers of an anti-affinity term from the pods that it counts,
// and returns how many pairwise conflicts that took. It is stricter than a
// spread needs, which may tolerate a few.
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
		h.clique(slices.Concat(both, onlyCarry, onlyCounted))
		return 0
	}
	if len(both) > 1 {
		h.crowd(both, 1)
	}
	for _, i := range onlyCarry {
		for _, j := range counted {
			h.clique([]int{i, j})
		}
	}
	for _, i := range both {
		for _, j := range onlyCounted {
			h.clique([]int{i, j})
		}
	}
	return pairs
}

// portRules keeps pods that take the same host port from sharing a machine.
func (b *builder) portRules(h *hostRules) {
	var with []int
	for i := range b.demands {
		if len(b.classes[b.demands[i].class].Spec.HostPorts) > 0 {
			with = append(with, i)
			h.limit(i, 1)
		}
	}
	for x, i := range with {
		for _, j := range with[x+1:] {
			ci, cj := &b.classes[b.demands[i].class], &b.classes[b.demands[j].class]
			if feasible.PortsClash(ci.Spec.HostPorts, cj.Spec.HostPorts) {
				h.clique([]int{i, j})
			}
		}
	}
}
