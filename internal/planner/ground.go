package planner

import (
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// Ground is a problem prepared for placing pods by hand, for whoever starts from
// what runs already instead of from nothing. [Solve] is built on the same parts.
type Ground struct {
	Space   *feasible.Space
	Classes []GroundClass
	// Menu are the options worth buying: of those that no rule tells apart, the
	// ones that no other beats in both size and price.
	Menu feasible.Set
	// Topology binds the rules of the levels to counters.
	Topology *topology.Topology
	builder  *builder
	offers   *alternatives
}

// GroundClass is a class of pods as the planner sees it.
type GroundClass struct {
	// Invalid says what is wrong with the class; such a class has no levels.
	Invalid string
	// Own is what every pod takes along the space's dimensions. Shared are the
	// disks that all its pods use together, which take a slot once per machine.
	Own    []int64
	Shared []model.Volume
	// Levels are the states of its preferences, from all honoured to none.
	Levels []GroundLevel
}

// GroundLevel says where pods of a class may go, topology aside, and which rules
// of topology hold.
type GroundLevel struct {
	Options, Nodes feasible.Set
	Rules          *topology.Rules
}

// PodsOn is a number of pods of a class on a machine, placed at a level.
type PodsOn struct{ Class, Level, Count int }

// Prepare compiles a problem.
func Prepare(p *model.Problem) *Ground {
	s := feasible.New(p)
	q := newSearch(s)
	classes := q.inst.Classes
	g := &Ground{Space: s, Topology: q.inst.Topology, builder: q.newBuilder(ruling{}, variant{})}
	g.Menu, g.offers = g.builder.reduced, newAlternatives(g.builder)
	for i := range classes {
		c := GroundClass{Invalid: classes[i].Invalid, Own: classes[i].Own, Shared: classes[i].Shared}
		for l := range classes[i].Levels {
			level := &classes[i].Levels[l]
			c.Levels = append(c.Levels, GroundLevel{level.Options, level.Nodes, classes[i].Levels[l].Rules})
		}
		g.Classes = append(g.Classes, c)
	}
	return g
}

// Varied reports whether a machine of the option with these pods keeps as many
// different instance types and the like to choose from as its pool asks for.
func (g *Ground) Varied(option int, pods []PodsOn) bool {
	b := g.builder
	index := b.space.Options[option].Pool
	if len(b.inst.MinValues.Of(index)) == 0 {
		return true
	}
	pl := g.place(option, pods)
	used := make([]int64, b.space.Dims)
	for d := range used {
		used[d] = b.space.Options[option].Net[d] - pl.Free[d]
	}
	pl.Options.And(b.space.Available)
	keys := b.settled(pl)
	b.keepAgreeing(pl, keys, pl.Options)
	return b.inst.MinValues.Met(index, b.inst.MinValues.Fixed(pl.Options, pl.Pods, option), used)
}

// Machine describes a machine to be bought with these pods on it: every offering
// that would hold them and that the ledger admits, the option's own among them.
// The ledger must have room for the option; Machine does not book it.
func (g *Ground) Machine(ledger *feasible.Ledger, option int, pods []PodsOn) model.NewNode {
	g.builder.ledger = ledger
	ledger.Take(option, 1)
	pl := g.place(option, pods)
	node := g.offers.newNode(pl)
	ledger.Take(pl.Option, -1)
	return node
}

// place is a machine to be bought with pods on it, which no counts know of.
func (g *Ground) place(option int, pods []PodsOn) *Place {
	b := g.builder
	pl := &Place{Place: topology.Place{ID: -1, Node: -1, Option: option}}
	pool := b.space.PoolOf(option)
	pl.Options = feasible.NewSet(len(b.space.Options))
	pl.Options.AddRange(pool.First, pool.End)
	pl.Free = append(pl.Free, b.space.Options[option].Net...)
	for _, on := range pods {
		c := &b.classes[on.Class]
		pl.Options.And(c.Levels[on.Level].Options)
		if extra := b.sharedNeed(c, pl); extra != nil {
			for d, v := range extra {
				pl.Free[d] -= v
			}
			pl.Attached = append(pl.Attached, c.Shared...)
		}
		for d, size := range c.Own {
			pl.Free[d] -= size * int64(on.Count)
		}
		pl.Pods = append(pl.Pods, instance.PodCount{Class: on.Class, Level: on.Level, Count: on.Count})
	}
	return pl
}
