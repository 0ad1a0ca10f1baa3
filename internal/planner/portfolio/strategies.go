package portfolio

import (
	"reflect"
	"strings"

	"github.com/nodeautoprovision/nap/internal/planner/construct"
	"github.com/nodeautoprovision/nap/internal/planner/nodechoice"
)

// smallProblem is up to how many pods a problem is planned by several strategies even
// when all have a place; largeProblem when some wait although there may be a place, if
// there is time. Up to largeProblem, a search begins with a plan without time to know
// that.
const (
	smallProblem = 300
	largeProblem = 3000
)

// entry is a strategy of the portfolio and the situations in which it is worth trying.
type entry struct {
	construct.Strategy
	when func(s situation) bool
}

// name lists the criteria in which the strategy differs from the zero one.
func (e *entry) name() string {
	var set []string
	v := reflect.ValueOf(e.Strategy)
	for i := range v.NumField() {
		if v.Field(i).Bool() {
			set = append(set, v.Type().Field(i).Name)
		}
	}
	return strings.Join(set, " + ")
}

// situation is what decides which strategies are worth trying after the first plan.
type situation struct {
	// short says that the packer found no node for some pods of the first plan.
	short bool
	// choice says that nodes, topology or the order of classes leave a choice in a
	// problem that is small enough. The fields below are false without it.
	choice bool
	// nodes says that existing nodes can take pods, unequal that priorities differ.
	nodes, unequal bool
	// preferring says that preferences may cost pods their place.
	preferring bool
}

// standardStrategies lists the strategies besides the zero one, in the order in which
// they are tried: when something ran out, nodes one by one; where there is a choice,
// every strategy that the situation suits.
func standardStrategies() []entry {
	whenShort := func(s situation) bool { return s.short }
	whenChoice := func(s situation) bool { return s.choice }
	whenNodes := func(s situation) bool { return s.nodes }
	whenUnequal := func(s situation) bool { return s.unequal }
	whenPreferring := func(s situation) bool { return s.preferring }
	return []entry{
		{construct.Strategy{Sequential: true}, func(s situation) bool { return s.short || s.choice }},
		{construct.Strategy{Sequential: true, ScarcityFirst: true}, whenShort},
		{construct.Strategy{ByCount: true}, whenChoice},
		{construct.Strategy{BySize: true}, whenChoice},
		{construct.Strategy{BySize: true, ByCount: true}, whenChoice},
		{construct.Strategy{Sequential: true, BySize: true, ByCount: true}, whenChoice},
		{construct.Strategy{Sequential: true, BySize: true, Join: true}, whenChoice},
		{construct.Strategy{BySize: true, ByUnitCost: true}, whenNodes},
		{construct.Strategy{FewestNodes: true}, whenNodes},
		{construct.Strategy{Sequential: true, FewestNodes: true, Join: true}, whenNodes},
		{construct.Strategy{IgnorePriority: true}, whenUnequal},
		{construct.Strategy{Sequential: true, IgnorePriority: true, Join: true}, whenUnequal},
		{construct.Strategy{HardOnly: true}, whenPreferring},
		{construct.Strategy{Sequential: true, BySize: true, Join: true, IgnorePriority: true, HardOnly: true}, whenPreferring},
	}
}

// worthTrying lists the strategies that are worth trying after the first plan, in
// problems of no more than so many pods if nothing ran out.
func (f *Portfolio) worthTrying(c *construct.Constructor, first nodechoice.Result, mostPods int) []construct.Strategy {
	s := situationOf(c, first, mostPods)
	var out []construct.Strategy
	for i := range f.strategies {
		if e := &f.strategies[i]; e.when(s) {
			out = append(out, e.Strategy)
		}
	}
	return out
}

func situationOf(c *construct.Constructor, first nodechoice.Result, mostPods int) situation {
	in := c.State.Instance
	nodes := len(c.State.Nodes) > 0
	pods, choice, preferring, unequal := 0, nodes, false, false
	for i := range in.Classes {
		class := &in.Classes[i]
		if class.Invalid != "" {
			continue
		}
		pods += len(class.Spec.Pods)
		choice = choice || class.Colocated || len(c.State.Domains.Keys(i, 0)) > 0
		preferring = preferring || len(class.Levels) > 1
		unequal = unequal || class.Spec.Priority != in.Classes[0].Spec.Priority
	}
	s := situation{short: first.Unplaced > 0}
	preferring = preferring && s.short
	if (choice || preferring || unequal) && pods <= mostPods {
		s.choice, s.nodes, s.unequal, s.preferring = true, nodes, unequal, preferring
	}
	return s
}
