package feasible

import (
	"sort"
	"sync"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// Space is a problem compiled for planning. [New] completes it and nothing changes it
// afterwards but what explanations look up once, under locks of their own, so that any
// number of goroutines may read one.
type Space struct {
	// Problem is what was compiled. It must not change while the space is in use.
	Problem *model.Problem
	// Dims are the dimensions of every vector.
	Dims Dimensions
	// Options are all ways to buy a machine, in the order of Pools and, in a pool, of
	// the catalogue. Sets of the space number them by index.
	Options []Option
	// Pools are the valid NodePools, the heaviest first, then by name.
	Pools []Pool
	// Tiers is how many different weights the pools have.
	Tiers int
	// DaemonSets are the combinations of daemons that share a machine.
	DaemonSets []DaemonSet
	// Labels are those of options and nodes.
	Labels LabelIndex
	// Capacity are the options by what they have for pods.
	Capacity CapacityIndex
	// Supply is what may be bought.
	Supply Supply
	// Rejected says what is wrong with pools, instance types and offerings that are
	// left out of planning.
	Rejected []model.Rejection
	// PoolErrors holds the same for pools, by index in Problem.Pools.
	PoolErrors map[int]string
	// Unused are the valid pools that are left out because no class needs them: it can use
	// none of them, or what they offer another pool offers, too. They are indices in
	// Problem.Pools (see [Space.Whole]).
	Unused []int

	// nodeFree is [Space.NodeFree] by index in Problem.Nodes.
	nodeFree [][]int64
	// constraints is the list of all rules on options.
	constraints []Constraint
	// asked is what is computed once asked for. Spaces of problems that share one have one.
	asked *asked
}

// asked is what is computed when something first asks for it.
type asked struct {
	// largest is the most that a machine on sale has, by axis.
	largest func() []int64
	// whole is [Space.Whole] of a space that leaves pools out, nil of others.
	whole func() *Space
	// kept is what [Kept] keeps.
	kept sync.Map
}

// Kept is what was made for a key before, for this space or another that shares its options, or is made
// now. It follows from the catalogues, and from the options but for their uses; it must not be changed.
// The type of the key is the caller's own.
func Kept[V any](s *Space, key any, make func() V) V {
	known, _ := s.asked.kept.Load(key)
	if value, ok := known.(V); ok {
		return value
	}
	value := make()
	s.asked.kept.Store(key, value)
	return value
}

// saleKey is a label in the catalogue of a NodePool, by index in Problem.Catalogs, or all labels where
// it has none.
type saleKey struct {
	catalog int
	label   string
}

// Option is one way to buy a machine, with all its labels known. There may be a million of them, so
// that they are small and have no pointers; what several share is in the space ([Space.Net],
// [Space.Uses]).
type Option struct {
	// Price is per hour.
	Price model.Money
	// Pool, Type and Offering index Problem.Pools, the pool's catalogue and the
	// type's offerings.
	Pool, Type, Offering int32
	// Daemons indexes Space.DaemonSets.
	Daemons int32
	// Run indexes the runs of Space.Capacity: neighbouring options that offer the same to pods.
	Run int32
	// uses indexes the lists of uses of Space.Supply.
	uses int32
}

// DaemonSet is the daemons that share a machine, added up.
type DaemonSet struct {
	// Requests is what they take together, per dimension of the space.
	Requests []int64
	// Ports are the host ports that they take.
	Ports []model.HostPort
}

// Pool is a usable NodePool of the space.
type Pool struct {
	// Index is that in Problem.Pools.
	Index int
	// First and End bound its options: First is the first one, End follows the last.
	First, End int
	// Tier numbers distinct weights from the heaviest, 0.
	Tier int
	// Alike are the valid pools that are left out because they offer the same to all
	// classes, by index in Problem.Pools.
	Alike []int
	// choosy says that labels are left to the buyer: there may be several options
	// to an offering.
	choosy bool
}

// Net is what pods can use of a machine: allocatable less daemons, per dimension of the space.
// Options share the vector: do not change it.
func (s *Space) Net(option int) []int64 { return s.Capacity.Runs[s.Options[option].Run].Net }

// Uses is what a machine takes from the lines of the supply. Options share the list: do not
// change it.
func (s *Space) Uses(option int) []Use { return s.Supply.uses[s.Options[option].uses] }

// Whole is the problem compiled with all NodePools, as far as memory allows. It is compiled
// when it is first asked for, unless this space leaves none out.
func (s *Space) Whole() *Space {
	if s.asked.whole == nil {
		return s
	}
	return s.asked.whole()
}

// PoolOf returns the space's pool of an option.
func (s *Space) PoolOf(option int) *Pool {
	i := sort.Search(len(s.Pools), func(i int) bool { return option < s.Pools[i].End })
	return &s.Pools[i]
}

// OptionOf is the index in Options of what a plan buys for a new node, with the labels that
// it asks for, -1 when there is none. Suits says which of several with other labels may be it; nil
// stands for any.
func (s *Space) OptionOf(node *model.NewNode, suits func(option int) bool) int {
	options, best := s.Options, node.Best()
	for i := range s.Pools {
		pool := &s.Pools[i]
		if pool.Index != node.Pool {
			continue
		}
		instanceType, offering := int32(best.InstanceType), int32(best.Offering)
		first := pool.First + sort.Search(pool.End-pool.First, func(o int) bool { return options[pool.First+o].Type >= instanceType })
		for o := first; o < pool.End && options[o].Type == instanceType; o++ {
			if options[o].Offering == offering && s.hasLabels(o, node.Requirements) && (suits == nil || suits(o)) {
				return o
			}
		}
	}
	return -1
}

// hasLabels reports whether an option has labels that are asked for, as far as rules look at them.
func (s *Space) hasLabels(option int, rs model.Requirements) bool {
	labels := &s.Labels
	for i := range rs {
		key := labels.KeyIndex(rs[i].Key)
		if key < 0 {
			continue
		}
		value := labels.OptionValue(key, option)
		name, _ := labels.ValueName(key, value)
		if !rs[i].Matches(name, value != Absent) {
			return false
		}
	}
	return true
}

// Tier returns the set of options whose pools have this tier.
func (s *Space) Tier(tier int) bitset.Set {
	set := bitset.New(len(s.Options))
	for _, p := range s.Pools {
		if p.Tier == tier {
			set.AddRange(p.First, p.End)
		}
	}
	return set
}

// Offering returns the catalogue's entries behind an option.
func (s *Space) Offering(option int) (*model.InstanceType, *model.Offering) {
	return offeringOf(s.Problem, &s.Options[option])
}

func offeringOf(p *model.Problem, o *Option) (*model.InstanceType, *model.Offering) {
	t := &p.Catalogs[p.Pools[o.Pool].Catalog].InstanceTypes[o.Type]
	return t, &t.Offerings[o.Offering]
}

// NodeFree is what an existing node has left for pods, per dimension. It belongs to the
// space: do not change it.
func (s *Space) NodeFree(n int) []int64 { return s.nodeFree[n] }

// nodesFree lays out for all nodes what they have left for pods, at most Unlimited in
// each dimension. Where more is used than there is, nothing is left: pods that ask for
// none of it have room all the same.
func (d *Dimensions) nodesFree(nodes []model.Node) [][]int64 {
	out, cells := make([][]int64, len(nodes)), make([]int64, len(nodes)*d.Count)
	for n := range nodes {
		free := cells[n*d.Count : (n+1)*d.Count : (n+1)*d.Count]
		d.layCapacity(free, nodes[n].Free(), nodes[n].VolumeSlots)
		for i, v := range free {
			free[i] = min(max(v, 0), Unlimited)
		}
		out[n] = free
	}
	return out
}

// OfferingCount is how many offerings the pool's catalogue has.
func (s *Space) OfferingCount(pool int) int {
	n := 0
	types := s.Problem.Catalogs[s.Problem.Pools[pool].Catalog].InstanceTypes
	for t := range types {
		n += len(types[t].Offerings)
	}
	return n
}

// OfferingNumbers number the offerings of a pool's catalogue from 0 on.
type OfferingNumbers struct {
	space *Space
	// first is the number of each type's first offering, and behind them how many there are.
	first []int
}

// NumberOfferings numbers the offerings of a pool's catalogue.
func (s *Space) NumberOfferings(pool *Pool) OfferingNumbers {
	types := s.Problem.Catalogs[s.Problem.Pools[pool.Index].Catalog].InstanceTypes
	first := make([]int, len(types)+1)
	for t := range types {
		first[t+1] = first[t] + len(types[t].Offerings)
	}
	return OfferingNumbers{s, first}
}

// Count is how many offerings there are.
func (n OfferingNumbers) Count() int { return n.first[len(n.first)-1] }

// Of is the number of an option's offering. Precondition: the option is one of the pool's.
func (n OfferingNumbers) Of(option int) int {
	o := &n.space.Options[option]
	return n.first[o.Type] + int(o.Offering)
}

// Offerings counts the pool's offerings of which at least one option is in the
// set. There are several options to an offering where labels are left to the
// buyer.
func (s *Space) Offerings(pool *Pool, set bitset.Set) int {
	if !pool.choosy {
		return set.CountRange(pool.First, pool.End)
	}
	numbers := s.NumberOfferings(pool)
	seen := bitset.New(numbers.Count())
	for i := set.Next(pool.First); i >= 0 && i < pool.End; i = set.Next(i + 1) {
		seen.Add(numbers.Of(i))
	}
	return seen.Count()
}
