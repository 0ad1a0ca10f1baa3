package decompose

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/noderules"
)

// relations are which classes, NodePools and nodes belong together, a forest in which those
// that do have one root. Classes come first, then NodePools, then nodes, then the values of open
// labels of NodePools.
type relations struct {
	problem *model.Problem
	parent  []int
	open    *openLabels
	values  *poolValues
}

// newRelations relates classes with the NodePools and nodes that may suit them, and with
// each other where topology terms of one select pods of the other. Pods that mount one volume
// share its slot on a node that suits both alone.
func newRelations(p *model.Problem, open *openLabels) *relations {
	r := &relations{problem: p, parent: allOf(len(p.Classes) + len(p.Pools) + len(p.Nodes)), open: open, values: newPoolValues()}
	r.relatePlaces()
	r.relateTerms()
	r.joinValues()
	return r
}

func (r *relations) root(i int) int {
	for r.parent[i] != i {
		r.parent[i] = r.parent[r.parent[i]]
		i = r.parent[i]
	}
	return i
}

// relate says that two belong together. The lower root stays.
func (r *relations) relate(a, b int) {
	a, b = r.root(a), r.root(b)
	r.parent[max(a, b)] = min(a, b)
}

func (r *relations) pool(i int) int      { return len(r.problem.Classes) + i }
func (r *relations) node(i int) int      { return len(r.problem.Classes) + len(r.problem.Pools) + i }
func (r *relations) poolValue(i int) int { return r.node(len(r.problem.Nodes)) + i }

// relatePlaces relates classes with NodePools and nodes. Classes with the same rules have the
// same places.
func (r *relations) relatePlaces() {
	p := r.problem
	first := map[string]int{}
	pools, nodes, cloud := newPoolsByLabel(p), newAlikeNodes(p), noderules.NewCloudLabels(p)
	for c := range p.Classes {
		rules := placesOf(&p.Classes[c])
		key := rules.Key()
		if other, known := first[key]; known {
			r.relate(c, other)
			continue
		}
		first[key] = c
		for _, i := range pools.candidates(&rules) {
			if rules.Admits(&p.Pools[i], cloud) {
				r.relateMachines(c, i, valuesOf(&rules, r.open.of[i]))
			}
		}
		for _, group := range nodes.candidates(&rules) {
			if alike := nodes.groups[group]; rules.AdmitsNode(&p.Nodes[alike[0]]) {
				for _, n := range alike {
					r.relate(c, r.node(n))
				}
			}
		}
	}
}

// joinValues relates the values of NodePools of which all machines belong together.
func (r *relations) joinValues() {
	for number, own := range r.values.all {
		if r.values.joined[own.pool] {
			r.relate(r.poolValue(number), r.pool(own.pool))
		}
	}
}

// relateMachines relates a class or a node with those machines of a NodePool that have one of
// these values of its open label, or with all where there are none.
func (r *relations) relateMachines(i, pool int, values []string) {
	if values == nil {
		r.values.joined[pool] = true
		r.relate(i, r.pool(pool))
	}
	for _, value := range values {
		own := poolValue{pool, value}
		number, known := r.values.numbers[own]
		if !known {
			number = len(r.values.all)
			r.values.numbers[own], r.values.all = number, append(r.values.all, own)
			r.parent = append(r.parent, r.poolValue(number))
		}
		r.relate(i, r.poolValue(number))
	}
}

// placesOf are the rules of a class, less those that its spreads do not count by: what they
// leave in are domains of the spread.
func placesOf(c *model.PodClass) noderules.Rules {
	rules := noderules.Of(c)
	taints := slices.ContainsFunc(c.Spread, func(s model.SpreadConstraint) bool { return !s.HonorTaints })
	requirements := slices.ContainsFunc(c.Spread, func(s model.SpreadConstraint) bool { return !s.HonorNodeAffinity })
	return rules.Without(taints, requirements)
}

// relateTerms relates classes of which one's topology terms select the other's pods.
func (r *relations) relateTerms() {
	p := r.problem
	in := map[string][]int{} // classes by namespace
	for c := range p.Classes {
		in[p.Classes[c].Namespace] = append(in[p.Classes[c].Namespace], c)
	}
	all := allOf(len(p.Classes))
	selected := func(c int, s *model.Selector, among []int) {
		for _, other := range among {
			if s.Matches(p.Classes[other].Labels) {
				r.relate(c, other)
			}
		}
	}
	for c := range p.Classes {
		eachTerm(&p.Classes[c], func(t *model.AffinityTerm) {
			if t.AllNamespaces {
				selected(c, t.Selector, all)
				return
			}
			for _, namespace := range t.Namespaces {
				selected(c, t.Selector, in[namespace])
			}
		})
	}
}

// group is what belongs together, by index. A NodePool with an open label may be of several.
type group struct{ classes, pools, nodes []int }

// groups are those with classes, in the order of their first classes.
func (r *relations) groups() []group {
	var out []group
	numbers := map[int]int{} // by root
	for c := range r.problem.Classes {
		root := r.root(c)
		n, known := numbers[root]
		if !known {
			n = len(out)
			numbers[root] = n
			out = append(out, group{})
		}
		out[n].classes = append(out[n].classes, c)
	}
	for i := range r.problem.Pools {
		if n, used := numbers[r.root(r.pool(i))]; used {
			out[n].pools = append(out[n].pools, i)
		}
	}
	for number, own := range r.values.all {
		n, used := numbers[r.root(r.poolValue(number))]
		if used && !slices.Contains(out[n].pools, own.pool) {
			out[n].pools = append(out[n].pools, own.pool)
		}
	}
	for i := range r.problem.Nodes {
		if n, used := numbers[r.root(r.node(i))]; used {
			out[n].nodes = append(out[n].nodes, i)
		}
	}
	return out
}
