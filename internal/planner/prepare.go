package planner

import (
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/construct"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/offers"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
	"github.com/nodeautoprovision/nap/internal/planner/portfolio"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// Prepared is a problem prepared for placing pods by hand, for callers that start from
// what runs already instead of from nothing. [Solve] is built on the same parts. Any
// number of goroutines may share one, but for [Prepared.Machine].
type Prepared struct {
	Space   *feasible.Space
	Classes []PreparedClass
	// Menu are the options worth buying: of those that no rule tells apart, the
	// ones that no other beats in both size and price.
	Menu bitset.Set
	// Topology binds the rules of the levels to counters.
	Topology *topology.Topology
	// state is an empty plan that never changes. It knows the keys of all classes and
	// answers questions about single nodes.
	state  *placement.State
	offers *offers.Alternatives
	// catalogs are those that the problem shares with others, nil for none.
	catalogs *feasible.Catalogs
}

// PreparedClass is a class of pods as the planner sees it.
type PreparedClass struct {
	// Invalid says what is wrong with the class; such a class has no levels.
	Invalid string
	// Own is what every pod takes along the space's dimensions. Shared are the
	// disks that all its pods use together, which take a slot once per node.
	Own    []int64
	Shared []model.Volume
	// Levels are the states of its preferences, from all honoured to none.
	Levels []PreparedLevel
}

// PreparedLevel says where pods of a class may go, topology aside, and which rules
// of topology hold.
type PreparedLevel struct {
	Options, Nodes bitset.Set
	Rules          *topology.Rules
}

// PodsOn is a number of pods of a class on a node, placed at a level.
type PodsOn = instance.PodCount

// Prepare compiles a problem. Catalogs may be nil, or those that it shares with others.
func Prepare(p *model.Problem, catalogs *feasible.Catalogs) *Prepared {
	in := instance.New(feasible.New(p, catalogs))
	empty := construct.New(in, nil, placement.Decision{}, construct.Params{}).State
	empty.Domains.KnowAll()
	g := &Prepared{Space: in.Space, Menu: in.Menu, Topology: in.Topology, state: empty, offers: offers.New(in), catalogs: catalogs}
	for i := range in.Classes {
		class := &in.Classes[i]
		c := PreparedClass{Invalid: class.Invalid, Own: class.Own, Shared: class.Shared}
		for l := range class.Levels {
			level := &class.Levels[l]
			c.Levels = append(c.Levels, PreparedLevel{level.Options, level.Nodes, level.Rules})
		}
		g.Classes = append(g.Classes, c)
	}
	return g
}

// Solve is [Solve] for a problem with the catalogues of the prepared one, of which nothing is
// read twice.
func (g *Prepared) Solve(p *model.Problem) *model.Plan {
	return solve(p, portfolio.Standard(), standardSizes(), g.catalogs)
}

// Varied reports whether a node of the option with these pods keeps as many different
// instance types and the like to choose from as its pool's minValues ask for.
func (g *Prepared) Varied(option int, pods []PodsOn) bool {
	m, pool := g.state.Instance.MinValues, int(g.Space.Options[option].Pool)
	if len(m.Of(pool)) == 0 {
		return true
	}
	pl := g.place(option, pods)
	pl.Options.And(g.Space.Supply.Available)
	g.state.Domains.KeepAgreeing(pl, g.state.Domains.Settled(pl), pl.Options)
	return m.Met(pool, m.Fixed(pl.Options, pl.Pods, option), g.state.Used(pl))
}

// Machine describes a node to be bought with these pods on it: every offering that would
// hold them and that the ledger admits, the option's own among them. The ledger must
// have room for the option; Machine does not book it. It also returns the option of the first
// offering, which is bought if it can be. It remembers what it found, so that calls must not overlap.
func (g *Prepared) Machine(ledger *feasible.Ledger, option int, pods []PodsOn) (node model.NewNode, best int) {
	s := *g.state
	s.Ledger = ledger
	ledger.Take(option, 1)
	pl := g.place(option, pods)
	node = g.offers.NewNode(&s, pl)
	ledger.Take(pl.Option, -1)
	return node, pl.Option
}

// place is a node to be bought with pods on it, which no counts know of.
func (g *Prepared) place(option int, pods []PodsOn) *placement.Place {
	pl := g.state.NewNode(option)
	pl.ID = -1
	for _, on := range pods {
		c := &g.state.Instance.Classes[on.Class]
		pl.Options.And(c.Levels[on.Level].Options)
		g.state.Load(c, on.Level, on.Count, pl)
	}
	return pl
}
