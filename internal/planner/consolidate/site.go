package consolidate

import (
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// site is what does not change while moves are sought: the fleet, compiled.
type site struct {
	fleet *model.DisruptionProblem
	// problem has the movable classes behind those that wait; first is where they
	// begin.
	problem *model.Problem
	first   int
	ground  *planner.Ground
	space   *feasible.Space
	// dims are the space's dimensions in which some pod takes something, d is how
	// many. All vectors of this package have that length.
	dims  []int
	d     int
	kinds []kind
	// levels counts those of all classes together.
	levels int32
	nodes  []lodging
	menu   []ware
	// order has the classes in the order in which their pods are housed; rank is
	// each one's position in it.
	order []int32
	rank  []int32
	// rate is what one unit of eviction cost has to save, in Money.
	rate float64
	// worth is the price of a unit of each dimension under which no ware is worth
	// more than it costs: what room is worth.
	worth []float64
	// varied says that some pool asks for minValues.
	varied bool
	pools  []poolTotals
}

// kind is a class of pods.
type kind struct {
	own       []int64
	shared    []model.Volume
	sharedDim []int
	ports     []model.HostPort
	levels    []planner.GroundLevel
	// firstLevel numbers the levels of all classes.
	firstLevel int32
	// plain pods have no rule that is not in the vectors and the sets of nodes.
	plain   bool
	invalid bool
	// cost is what evicting one counts, no less than 0.
	cost    float64
	budgets []int
	worth   float64
}

// group is a number of pods of a class.
type group struct{ class, n int32 }

// lodging is a node as a place for pods that could be given back.
type lodging struct {
	price   model.Money
	tenants []group
	// evictions counts the tenants, cost adds up their eviction costs. The toll is
	// what giving the node back has to save per hour, as Money.
	evictions  int
	cost, toll float64
	policy     int
	spot       bool
	// host nodes may take in pods of others.
	host bool
	// stay says why the node is no candidate for consolidation, nil if it is one.
	stay *model.KeptNode
	// later says of a node that goes, but not yet, what it waits for. Until then
	// it takes no pods in.
	later *model.KeptNode
	// kept says of a node that could go what it is kept for.
	kept *model.KeptNode
}

// empty is Karpenter's notion: nothing on the node costs anything to evict.
func (l *lodging) empty() bool { return l.cost == 0 }

// ware is an option worth buying.
type ware struct {
	option int
	price  model.Money
	net    []int64
	worth  float64
	spot   bool
}

// newSite compiles the fleet.
func newSite(f *model.DisruptionProblem) *site {
	s := &site{fleet: f}
	s.compileProblem()
	s.ground = planner.Prepare(s.problem)
	s.space = s.ground.Space
	s.findDims()
	s.rate = rateOf(f.Terms)
	for i := range s.problem.Classes {
		k := s.compileKind(i)
		k.firstLevel = s.levels
		s.levels += int32(len(k.levels))
		s.kinds = append(s.kinds, k)
	}
	s.compileMenu()
	s.priceRoom()
	s.sortClasses()
	for n := range s.problem.Nodes {
		s.nodes = append(s.nodes, s.compileNode(n))
	}
	s.totalPools()
	for n := range s.nodes {
		if l := &s.nodes[n]; l.stay == nil && l.evictions > 0 {
			l.stay = s.worthless(n)
		}
	}
	return s
}

// rateOf is what evicting one plain pod has to save per hour.
func rateOf(t model.ConsolidationTerms) float64 {
	switch {
	case t.EvictionPrice <= 0:
		return 0
	case t.Payback <= 0:
		return math.MaxInt32 * 1e6
	}
	return float64(t.EvictionPrice) / t.Payback.Hours()
}

func (s *site) compileProblem() {
	p := *s.fleet.Problem
	s.first = len(p.Classes)
	p.Classes = slices.Clone(p.Classes)
	for i := range s.fleet.Movable {
		p.Classes = append(p.Classes, s.fleet.Movable[i].PodClass)
	}
	static := map[string]bool{}
	for i := range s.fleet.Policies {
		static[s.fleet.Policies[i].Pool] = s.fleet.Policies[i].Static
	}
	p.Pools = slices.Clone(p.Pools)
	for i := range p.Pools {
		if static[p.Pools[i].Name] { // its size is decided elsewhere
			p.Pools[i].NodeLimit = 0
		}
	}
	s.problem = &p
}

func (s *site) findDims() {
	used := make([]bool, s.space.Dims)
	for i := range s.ground.Classes {
		for d, v := range s.ground.Classes[i].Own {
			used[d] = used[d] || v > 0
		}
		for _, v := range s.ground.Classes[i].Shared {
			used[s.space.DriverDim(v.Driver)] = true
		}
	}
	for d, u := range used {
		if u {
			s.dims = append(s.dims, d)
		}
	}
	s.d = len(s.dims)
}

func (s *site) project(v []int64) []int64 {
	out := make([]int64, s.d)
	for i, d := range s.dims {
		out[i] = v[d]
	}
	return out
}

func (s *site) compileKind(i int) kind {
	c := &s.ground.Classes[i]
	spec := &s.problem.Classes[i]
	k := kind{levels: c.Levels, shared: c.Shared, ports: spec.HostPorts, invalid: c.Invalid != ""}
	if k.invalid {
		return k
	}
	k.own = s.project(c.Own)
	for _, v := range c.Shared {
		k.sharedDim = append(k.sharedDim, slices.Index(s.dims, s.space.DriverDim(v.Driver)))
	}
	k.plain = len(k.ports) == 0 && len(k.shared) == 0
	for l := range k.levels {
		k.plain = k.plain && k.levels[l].Rules.Free()
	}
	if m := i - s.first; m >= 0 {
		k.cost = max(0, s.fleet.Movable[m].EvictionCost)
		k.budgets = s.fleet.Movable[m].Budgets
	}
	return k
}

func (s *site) compileMenu() {
	for o := range s.ground.Menu.All {
		if !s.space.Available.Has(o) {
			continue
		}
		_, offering := s.space.Offering(o)
		option := &s.space.Options[o]
		s.menu = append(s.menu, ware{option: o, price: option.Price, net: s.project(option.Net), spot: offering.CapacityType == model.Spot})
	}
	slices.SortStableFunc(s.menu, func(a, b ware) int { return int(a.price - b.price) })
	for i := range s.problem.Pools {
		for _, r := range s.problem.Pools[i].Requirements {
			s.varied = s.varied || r.MinValues > 0 && !s.problem.Policy.RelaxMinValues
		}
	}
}

// sortClasses orders classes for housing: those bound by topology first, then
// the large ones.
func (s *site) sortClasses() {
	for i := range s.kinds {
		if !s.kinds[i].invalid {
			s.order = append(s.order, int32(i))
		}
	}
	bound := func(k *kind) int {
		if k.plain {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(s.order, func(x, y int32) int {
		a, b := &s.kinds[x], &s.kinds[y]
		switch {
		case bound(a) != bound(b):
			return bound(a) - bound(b)
		case a.worth != b.worth && a.worth > b.worth:
			return -1
		case a.worth != b.worth:
			return 1
		}
		return int(x - y)
	})
	s.rank = make([]int32, len(s.kinds))
	for at, class := range s.order {
		s.rank[class] = int32(at)
	}
}

func (s *site) compileNode(n int) lodging {
	node := &s.problem.Nodes[n]
	l := lodging{price: node.Price, policy: -1, spot: node.Labels[model.LabelCapacityType] == string(model.Spot)}
	if n >= len(s.fleet.Usages) {
		return l
	}
	t := &s.fleet.Usages[n]
	l.policy = t.Policy
	for _, cp := range t.Pods {
		if len(cp.Pods) == 0 {
			continue
		}
		class := s.first + cp.Class
		l.tenants = append(l.tenants, group{int32(class), int32(len(cp.Pods))})
		l.evictions += len(cp.Pods)
		l.cost += float64(len(cp.Pods)) * s.kinds[class].cost
	}
	if l.evictions > 0 {
		l.toll = s.rate*l.cost + float64(t.ExpectedSaving)
	}
	l.host = node.State == model.NodeReady && t.Initialized && t.Ready && !t.Disrupting && !t.Reserved && s.receives(t)
	l.stay = s.guard(n)
	return l
}

// placeOf is a node as topology sees it.
func placeOf(n int) topology.Place { return topology.Place{ID: n, Node: n, Option: -1} }
