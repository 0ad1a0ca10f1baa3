package decompose

import (
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/noderules"
)

// openLabels are labels of which NodePools leave the value to their machines: since a machine
// has one value, classes that ask for different ones share none. They share the NodePool's
// limits ([Suffices]).
type openLabels struct {
	// of is the label by NodePool: of those that it leaves open the one of which classes name
	// the most values. It is empty where they name none, or one.
	of []string
	// values bounds how many values classes name, by NodePool; 1 where of is empty.
	values []int
}

// newOpenLabels looks at the labels that NodePools require, unless the cloud decides them. Of a
// heavier NodePool with limits all machines belong together: where other classes have used up
// its limits, a class may go to a lighter and cheaper one, which no bound of a part knows. So do those
// of a NodePool that leaves a label open which topology terms are about: the values that classes
// name are domains for all.
func newOpenLabels(p *model.Problem) *openLabels {
	named := map[string]map[string]bool{} // values by label
	for c := range p.Classes {
		rules := noderules.Of(&p.Classes[c])
		rules.Demanded(func(asked *model.Requirement) {
			if asked.Operator != model.In || asked.Key == model.LabelNodePool {
				return
			}
			if named[asked.Key] == nil {
				named[asked.Key] = map[string]bool{}
			}
			for _, v := range asked.Values {
				named[asked.Key][v] = true
			}
		})
	}
	o, cloud := &openLabels{make([]string, len(p.Pools)), make([]int, len(p.Pools))}, noderules.NewCloudLabels(p)
	keys, lightest := topologyKeys(p), math.MaxInt
	for i := range p.Pools {
		lightest = min(lightest, p.Pools[i].Weight)
	}
	for i := range p.Pools {
		pool := &p.Pools[i]
		o.values[i] = 1
		if limited(pool) && pool.Weight > lightest || opensDomains(pool, keys, cloud) {
			continue
		}
		for r := range pool.Requirements {
			own := &pool.Requirements[r]
			if n := admitted(own, named[own.Key]); n > o.values[i] && !cloud.Decides(pool, own.Key) {
				o.of[i], o.values[i] = own.Key, n
			}
		}
	}
	return o
}

// topologyKeys are the labels that topology terms of classes are about.
func topologyKeys(p *model.Problem) map[string]bool {
	keys := map[string]bool{}
	for i := range p.Classes {
		for _, spread := range p.Classes[i].Spread {
			keys[spread.TopologyKey] = true
		}
		eachTerm(&p.Classes[i], func(t *model.AffinityTerm) { keys[t.TopologyKey] = true })
	}
	return keys
}

// opensDomains reports whether a NodePool leaves one of these labels open, so that only the values
// which pods name make domains known.
func opensDomains(pool *model.Pool, keys map[string]bool, cloud *noderules.CloudLabels) bool {
	return slices.ContainsFunc(pool.Requirements, func(r model.Requirement) bool { return keys[r.Key] && !cloud.Decides(pool, r.Key) })
}

// limited reports whether a NodePool has limits.
func limited(pool *model.Pool) bool {
	return len(pool.Limits) > 0 || pool.NodeLimit >= 0 || pool.CostLimit != nil
}

// admitted bounds how many of the named values a NodePool's requirement admits.
func admitted(own *model.Requirement, named map[string]bool) int {
	if own.Operator != model.In {
		return len(named)
	}
	n := 0
	for _, v := range own.Values {
		if named[v] {
			n++
		}
	}
	return n
}

// valuesOf are the values of a label that rules ask for, nil where they admit any other.
func valuesOf(rules *noderules.Rules, label string) (values []string) {
	rules.Demanded(func(asked *model.Requirement) {
		if asked.Key == label && asked.Operator == model.In && values == nil {
			values = asked.Values
		}
	})
	return values
}

// poolValue is a NodePool, by index in the problem, and a value of its open label.
type poolValue struct {
	pool  int
	value string
}

// poolValues numbers the values of NodePools, in the order in which they are met.
type poolValues struct {
	numbers map[poolValue]int
	all     []poolValue
	// joined are the NodePools of which all machines belong together: they have no open label,
	// or some class does not mind its value.
	joined map[int]bool
}

func newPoolValues() *poolValues {
	return &poolValues{numbers: map[poolValue]int{}, joined: map[int]bool{}}
}

// ofNode is the value that a node has of a label, nil where it has none.
func ofNode(n *model.Node, label string) []string {
	if value, has := noderules.NodeLabel(n, label); has {
		return []string{value}
	}
	return nil
}
