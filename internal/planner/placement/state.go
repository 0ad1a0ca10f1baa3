package placement

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// Decision settles conflicts between topology spread and the domains in which nodes
// are bought for other pods; see package domainconflict.
type Decision struct {
	// Shut are options that may not be bought. Nil means none.
	Shut bitset.Set
	// Counted are the domains that spread constraints count besides their own.
	Counted []topology.Domain
}

// State is a partial plan.
//
// Invariants: Left[i] plus the pods of class i on all places is the number of its
// pods; the ledger has booked the option of every new node; Domains counts every pod
// that was put, but for those that wait for the packer (see construct.Demands).
type State struct {
	// Instance is the problem, which never changes.
	Instance *instance.Instance
	// Domains counts the pods per topology domain.
	Domains *Domains
	// Ledger knows what is left of limits, quotas and reservations.
	Ledger *feasible.Ledger
	// Nodes are existing nodes, NewNodes those to be bought, in the order of buying.
	// The ID of a new node is the number of existing nodes plus its index here.
	Nodes, NewNodes []*Place
	// Left is, per class, how many pods still need a place.
	Left []int
	// Steps counts units of work, in this state and those that it was forked from.
	Steps int64
	// Rounds counts how often all classes have had their turn.
	Rounds int
	// Decision is the one under which the plan is made. It never changes.
	Decision Decision
}

// New is an empty plan on copies of the given nodes, for classes in the order in which
// they will be placed. With onlyHard, what only preferences read binds no class that is
// placed later.
func New(in *instance.Instance, nodes []*Place, d Decision, sequence []int, onlyHard bool) *State {
	domains := newDomains(in, in.Topology.NewCounts(d.Counted), in.Topology.NewOrder(sequence, onlyHard))
	return &State{
		Instance: in, Domains: domains, Ledger: in.Space.NewLedger(), Nodes: clones(nodes), Left: in.PodCounts(), Decision: d,
	}
}

// Fork is an independent state at the same point, for the same goroutine.
func (s *State) Fork() *State {
	f := *s
	f.Domains, f.Ledger = s.Domains.fork(), s.Ledger.Fork()
	f.Nodes, f.NewNodes, f.Left = clones(s.Nodes), clones(s.NewNodes), slices.Clone(s.Left)
	return &f
}

// Detach is an independent state at the same point, for any goroutine.
func (s *State) Detach() *State {
	f := s.Fork()
	f.Domains.forget()
	return f
}

// AnyOrder prepares a state without pods for classes that come in any order, a few
// pods at a time, and leaves out the nodes without room for a pod of any class.
func (s *State) AnyOrder(sequence []int) {
	s.Nodes = slices.DeleteFunc(s.Nodes, func(pl *Place) bool {
		return !slices.ContainsFunc(sequence, func(i int) bool {
			return s.Instance.LastLevel(i).Nodes.Has(pl.Node) && s.Capacity(&s.Instance.Classes[i], pl, pl.Free) > 0
		})
	})
	s.Domains.SetOrder(s.Domains.Order.Repeated())
}

// NewNode is a node to be bought as the option, without pods. It is not part of the
// plan until [State.Buy].
func (s *State) NewNode(option int) *Place {
	space := s.Instance.Space
	pl := &Place{
		Place:   topology.Place{ID: len(space.Problem.Nodes) + len(s.NewNodes), Node: -1, Option: option},
		Free:    slices.Clone(space.Net(option)),
		Ports:   slices.Clone(space.DaemonSets[space.Options[option].Daemons].Ports),
		Options: s.Instance.PoolOptions(option),
	}
	if s.Decision.Shut != nil {
		pl.Options.AndNot(s.Decision.Shut)
	}
	return pl
}

// Buy makes a node to be bought part of the plan. No other one was bought since
// [State.NewNode] made it.
func (s *State) Buy(pl *Place) {
	s.NewNodes = append(s.NewNodes, pl)
	s.Ledger.Take(pl.Option, 1)
}

// SharedNeed is what the first pod of a class takes on the place for disks that all
// pods of the class share and that are not there yet, by dimension, or nil.
func (s *State) SharedNeed(c *instance.Class, pl *Place) []int64 {
	if len(c.Shared) == 0 {
		return nil
	}
	need := make([]int64, s.Instance.Space.Dims.Count)
	for _, v := range c.Shared {
		if !slices.Contains(pl.Attached, v) {
			need[s.Instance.Space.Dims.OfDriver(v.Driver)]++
		}
	}
	return need
}

// Capacity is how many pods of the class the ports of the place and the given free
// resources hold.
func (s *State) Capacity(c *instance.Class, pl *Place, free []int64) int {
	if len(c.Spec.HostPorts) > 0 && feasible.PortsClash(c.Spec.HostPorts, pl.Ports) {
		return 0
	}
	n := Fitting(c.Own, s.SharedNeed(c, pl), free)
	if n > 1 && len(c.Spec.HostPorts) > 0 {
		n = 1
	}
	return n
}

// Load charges a place with n pods of a class, as far as resources, ports and disks go.
func (s *State) Load(c *instance.Class, level, n int, pl *Place) {
	if extra := s.SharedNeed(c, pl); extra != nil {
		for d, v := range extra {
			pl.Free[d] -= v
		}
		for _, v := range c.Shared {
			if !slices.Contains(pl.Attached, v) {
				pl.Attached = append(pl.Attached, v)
			}
		}
	}
	for d, size := range c.Own {
		pl.Free[d] -= size * int64(n)
	}
	pl.Ports = append(pl.Ports, c.Spec.HostPorts...)
	if k := len(pl.Pods); k > 0 && pl.Pods[k-1].Class == c.Index && pl.Pods[k-1].Level == level {
		pl.Pods[k-1].Count += n
	} else {
		pl.Pods = append(pl.Pods, instance.PodCount{Class: c.Index, Level: level, Count: n})
	}
}

// Put puts n pods of a class, placed at a level, on the place and counts them in its
// domains. The caller has made sure that they may go there, and takes them off Left.
func (s *State) Put(c *instance.Class, level, n int, pl *Place) {
	s.Load(c, level, n, pl)
	if pl.Open {
		s.addOpen(c, level, n, pl)
		return
	}
	s.Domains.Counts.Add(c.Index, pl.Place, n)
}

// Affords reports whether the ledger admits one option in place of another.
func (s *State) Affords(old, option int) bool {
	s.Ledger.Take(old, -1)
	ok := s.Ledger.Admits(option)
	s.Ledger.Take(old, 1)
	return ok
}

// Exchange plans a new node as another option. The caller has made sure that this one
// holds its pods, that its rules allow it and that the ledger affords it.
func (s *State) Exchange(pl *Place, option int) {
	space := s.Instance.Space
	old, now := space.Net(pl.Option), space.Net(option)
	for d := range pl.Free {
		pl.Free[d] += now[d] - old[d]
	}
	s.Ledger.Take(pl.Option, -1)
	s.Ledger.Take(option, 1)
	add := s.Domains.Counts.Add
	if pl.Open { // its other domains are counted already
		add = s.Domains.Counts.AddHost
	}
	for _, pc := range pl.Pods {
		add(pc.Class, pl.Place, -pc.Count)
	}
	pl.Ports = append(pl.Ports[:len(pl.Ports):len(pl.Ports)], space.DaemonSets[space.Options[option].Daemons].Ports...)
	pl.Option = option
	for _, pc := range pl.Pods { // spread over hosts may see the one option and not the other
		add(pc.Class, pl.Place, pc.Count)
	}
}

// Used is what the pods of a node to be bought take together, by dimension.
func (s *State) Used(pl *Place) []int64 {
	used := make([]int64, s.Instance.Space.Dims.Count)
	for d := range used {
		used[d] = s.Instance.Space.Net(pl.Option)[d] - pl.Free[d]
	}
	return used
}

// EachPodCount visits the pods of existing nodes, then those of new ones.
func (s *State) EachPodCount(visit func(pl *Place, pc instance.PodCount)) {
	for _, list := range [2][]*Place{s.Nodes, s.NewNodes} {
		for _, pl := range list {
			for _, pc := range pl.Pods {
				visit(pl, pc)
			}
		}
	}
}
