package portfolio

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/binpack"
	"github.com/nodeautoprovision/nap/internal/planner/lns"
)

// Portfolio is what a search may try: strategies, and searches that improve a plan. It
// never changes.
type Portfolio struct {
	// strategies are those besides the zero one, in the order in which they are tried.
	strategies []entry
	// refinements improve the best plan of all strategies.
	refinements refinements
	// neighbourhoods are the parts of large neighbourhood search; without any there is
	// none.
	neighbourhoods lns.Operators
	// packing are the searches of the bin packer.
	packing binpack.Searches
	// cheapest says that nothing is paid for fewer machines.
	cheapest bool
}

// Cheapest is the portfolio with another last step: nothing is paid for fewer machines.
// It is there to measure what they cost.
func (f *Portfolio) Cheapest() *Portfolio {
	out := *f
	out.cheapest = true
	return &out
}

// PaysForFewer reports whether a plan may cost a little more for fewer machines.
func (f *Portfolio) PaysForFewer() bool { return !f.cheapest }

// refinements are steps of a search after the strategies.
type refinements uint8

const (
	// restorePreferences gives preferences back that a plan gave up in vain.
	restorePreferences refinements = 1 << iota
	// packAgain constructs the best plan again with time for the bin packer.
	packAgain
	// smallFirst tries the small pods first where limits leave some out.
	smallFirst
)

// Standard is the portfolio that production uses.
func Standard() *Portfolio {
	return &Portfolio{
		strategies: standardStrategies(), refinements: restorePreferences | packAgain | smallFirst,
		neighbourhoods: lns.AllOperators, packing: binpack.AllSearches,
	}
}

// Part is a part of a portfolio that a search can do without.
type Part struct {
	// Kind is "strategy", "refinement", "large neighbourhood search" or "bin packer".
	Kind, Name string
	// Whole says that the part is all parts of its kind together. Alone says that its
	// kind has no such part.
	Whole, Alone bool

	leave func(f *Portfolio)
}

// Parts lists the parts of the standard portfolio.
func Parts() []Part {
	var out []Part
	for _, e := range standardStrategies() {
		left := func(other entry) bool { return other.Strategy == e.Strategy }
		out = append(out, Part{
			Kind: "strategy", Name: e.name(), leave: func(f *Portfolio) { f.strategies = slices.DeleteFunc(f.strategies, left) },
		})
	}
	refinement := func(name string, r refinements) Part {
		return Part{Kind: "refinement", Name: name, Alone: true, leave: func(f *Portfolio) { f.refinements &^= r }}
	}
	operator := func(name string, o lns.Operators) Part {
		return Part{
			Kind: "large neighbourhood search", Name: name, Whole: o == lns.AllOperators, leave: func(f *Portfolio) { f.neighbourhoods &^= o },
		}
	}
	packer := func(name string, s binpack.Searches) Part {
		return Part{Kind: "bin packer", Name: name, Whole: s == binpack.AllSearches, leave: func(f *Portfolio) { f.packing &^= s }}
	}
	return append(out,
		Part{Kind: "strategy", Name: "all of them", Whole: true, leave: func(f *Portfolio) { f.strategies = nil }},
		refinement("restore preferences", restorePreferences),
		refinement("construct again with time", packAgain),
		refinement("small pods first", smallFirst),
		operator("guide", lns.Guide),
		operator("around", lns.Around),
		operator("restart", lns.Restart),
		operator("destroy and repair", lns.DestroyAndRepair),
		operator("all of it", lns.AllOperators),
		packer("exchange", binpack.Exchange),
		packer("column generation", binpack.Columns),
		packer("other rules", binpack.OtherRules),
		packer("ruin and recreate", binpack.RuinAndRecreate),
		packer("all of them", binpack.AllSearches),
	)
}

// Without is the standard portfolio without some parts.
func Without(parts ...Part) *Portfolio {
	f := Standard()
	for i := range parts {
		parts[i].leave(f)
	}
	return f
}
