package decompose

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/noderules"
)

// poolsByLabel finds NodePools by the labels that tell them apart.
type poolsByLabel struct {
	all []int
	// with are the NodePools that require a value of a label among others, by both; without
	// are those that require none of the label's values by operator In.
	with    map[string]map[string][]int
	without map[string][]int
}

func newPoolsByLabel(p *model.Problem) *poolsByLabel {
	b := &poolsByLabel{all: allOf(len(p.Pools)), with: map[string]map[string][]int{}, without: map[string][]int{}}
	for i := range p.Pools {
		for _, r := range p.Pools[i].Requirements {
			if r.Operator == model.In && b.with[r.Key] == nil {
				b.with[r.Key] = map[string][]int{}
			}
		}
	}
	for i := range p.Pools {
		has := map[string]bool{}
		for _, r := range p.Pools[i].Requirements {
			if r.Operator != model.In {
				continue
			}
			has[r.Key] = true
			for _, v := range r.Values {
				b.with[r.Key][v] = append(b.with[r.Key][v], i)
			}
		}
		for key := range b.with {
			if !has[key] {
				b.without[key] = append(b.without[key], i)
			}
		}
	}
	return b
}

// candidates are NodePools beside which none can suit the rules.
func (b *poolsByLabel) candidates(rules *noderules.Rules) []int {
	best := b.all
	rules.Demanded(func(asked *model.Requirement) {
		values, told := b.with[asked.Key]
		if asked.Operator != model.In || !told {
			return
		}
		found := slices.Clone(b.without[asked.Key])
		for _, v := range asked.Values {
			if found = append(found, values[v]...); len(found) >= len(best) {
				return
			}
		}
		best = found
	})
	return best
}

// alikeNodes are groups of nodes whose labels and taints are the same, as far as classes
// ask for them.
type alikeNodes struct {
	groups [][]int
	all    []int
	// with are the groups with a value of a label, by both.
	with map[string]map[string][]int
}

func newAlikeNodes(p *model.Problem) *alikeNodes {
	a := &alikeNodes{with: map[string]map[string][]int{}}
	for c := range p.Classes {
		rules := noderules.Of(&p.Classes[c])
		rules.Asked(func(r *model.Requirement) { a.with[r.Key] = map[string][]int{} })
	}
	numbers := map[string]int{}
	for n := range p.Nodes {
		node := &p.Nodes[n]
		seen := model.Node{Pool: node.Pool, State: node.State, Taints: node.Taints, Labels: map[string]string{}}
		for key := range a.with {
			if value, has := node.Labels[key]; has {
				seen.Labels[key] = value
			}
		}
		key := string(model.AppendKey(nil, &seen))
		number, known := numbers[key]
		if !known {
			number = len(a.groups)
			numbers[key] = number
			a.groups = append(a.groups, nil)
			for key, values := range a.with {
				if value, has := noderules.NodeLabel(node, key); has {
					values[value] = append(values[value], number)
				}
			}
		}
		a.groups[number] = append(a.groups[number], n)
	}
	a.all = allOf(len(a.groups))
	return a
}

// candidates are groups beside which none can suit the rules.
func (a *alikeNodes) candidates(rules *noderules.Rules) []int {
	best := a.all
	rules.Demanded(func(asked *model.Requirement) {
		if asked.Operator != model.In {
			return
		}
		var found []int
		for _, v := range asked.Values {
			found = append(found, a.with[asked.Key][v]...)
		}
		if len(found) < len(best) {
			best = found
		}
	})
	return best
}
