package placement

import (
	"encoding/binary"
	"slices"
	"sort"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// RoomOn returns how many of the wanted pods of a class at a level the place holds as
// it is, hosts and domains aside. A new node that has too few values for its pool's
// minValues in one domain becomes open for a pod.
func (s *State) RoomOn(c *instance.Class, level, want int, pl *Place) int {
	n := min(want, s.Capacity(c, pl, pl.Free))
	if pl.Node >= 0 {
		return n
	}
	if !c.Levels[level].Options.Has(pl.Option) {
		n = 0
	}
	if n == 0 || len(s.Instance.MinValues.Of(int(s.Instance.Space.Options[pl.Option].Pool))) == 0 {
		return n
	}
	room := s.variedRoom(c, level, n, pl)
	if room == 0 && s.mayOpen(c, level, pl) {
		pl.Open = true
		if room = min(1, s.variedRoom(c, level, n, pl)); room == 0 {
			pl.Open = false
		}
	}
	return room
}

// variedRoom is how many of n pods of a class a new node holds with enough values left
// for its pool's minValues.
func (s *State) variedRoom(c *instance.Class, level, n int, pl *Place) int {
	pool, set := int(s.Instance.Space.Options[pl.Option].Pool), s.SharedOptions(c, level, pl)
	if !set.Has(pl.Option) {
		return 0
	}
	return sort.Search(n, func(n int) bool { return !s.Instance.MinValues.Met(pool, set, s.UsedWith(c, n+1, pl)) })
}

// VariedCapacity is how many of the wanted pods of a class a new node of the option
// holds with enough of the given options left for its pool's minValues. The place is
// one without pods.
func (s *State) VariedCapacity(c *instance.Class, fresh *Place, option int, options bitset.Set, want int) int {
	o := &s.Instance.Space.Options[option]
	n := min(want, s.Capacity(c, fresh, s.Instance.Space.Net(option)))
	if n == 0 || len(s.Instance.MinValues.Of(int(o.Pool))) == 0 {
		return n
	}
	set := s.Instance.PoolOptions(option)
	set.And(options)
	set = s.Instance.MinValues.Fixed(set, []instance.PodCount{{Class: c.Index}}, option)
	empty := &Place{Place: topology.Place{Node: -1, Option: option}, Free: s.Instance.Space.Net(option)}
	return sort.Search(n, func(n int) bool { return !s.Instance.MinValues.Met(int(o.Pool), set, s.UsedWith(c, n+1, empty)) })
}

// SharedOptions are the options of a new node that its pods and one more of a class
// agree on, labels that topology settles included. The caller owns the set.
func (s *State) SharedOptions(c *instance.Class, level int, pl *Place) bitset.Set {
	joined := *pl
	joined.Pods = append(slices.Clip(pl.Pods), instance.PodCount{Class: c.Index, Level: level, Count: 1})
	keys := s.Domains.Settled(&joined)
	set := pl.Options.Clone()
	set.And(c.Levels[level].Options)
	s.Domains.KeepAgreeing(&joined, keys, set)
	if pl.Open {
		s.Domains.KeepAdmitting(c, level, pl, set)
	}
	return s.Instance.MinValues.Fixed(set, joined.Pods, pl.Option)
}

// UsedWith is what the pods of a node to be bought take with n more of a class, by
// dimension.
func (s *State) UsedWith(c *instance.Class, n int, pl *Place) []int64 {
	load := s.SharedNeed(c, pl)
	if load == nil {
		load = make([]int64, s.Instance.Space.Dims.Count)
	}
	for d := range load {
		load[d] += s.Instance.Space.Net(pl.Option)[d] - pl.Free[d] + c.Own[d]*int64(n)
	}
	return load
}

// SameChoice reports whether a new node keeps the same options, in pools with
// minValues, when another option is planned for it.
func (s *State) SameChoice(pl *Place, option int) bool {
	m := s.Instance.MinValues
	return len(m.Of(int(s.Instance.Space.Options[option].Pool))) == 0 ||
		slices.Equal(m.Fixed(pl.Options, pl.Pods, pl.Option), m.Fixed(pl.Options, pl.Pods, option))
}

// SinglePods answers whether single pods of a class leave a node enough offerings for
// its pool's minValues.
type SinglePods struct {
	state *State
	class int
	// known are the answers so far for the class, by pool and by what topology and
	// alternatives tell apart.
	known map[string]*instance.Shortage
}

// NewSinglePods answers for a state, in the state's goroutine.
func NewSinglePods(s *State) *SinglePods { return &SinglePods{state: s} }

// Short is the first label of which a node of the option with just one pod of the
// class, which is this load, keeps fewer values than its pool asks for, or nil.
func (a *SinglePods) Short(class, option int, load []int64) *instance.Shortage {
	in := a.state.Instance
	pool := int(in.Space.Options[option].Pool)
	if len(in.MinValues.Of(pool)) == 0 {
		return nil
	}
	if a.known == nil || a.class != class {
		a.class, a.known = class, map[string]*instance.Shortage{}
	}
	c := &in.Classes[class]
	last := len(c.Levels) - 1
	alone := &Place{Place: topology.Place{ID: -1, Node: -1, Option: option}, Options: in.PoolOptions(option)}
	alone.Pods = []instance.PodCount{{Class: class, Level: last, Count: 1}}
	id := string(binary.AppendUvarint(a.state.Domains.ID(class, a.state.Domains.Settled(alone), alone.Place), uint64(pool)))
	known, ok := a.known[id]
	if ok && len(c.Spec.NodeAlternatives) < 2 && len(c.Spec.VolumeAlternatives) < 2 {
		return known
	}
	a.known[id] = in.MinValues.Short(pool, a.state.SharedOptions(c, last, alone), load)
	return a.known[id]
}
