package decompose

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/noderules"
)

// relations are which classes, NodePools and nodes belong together, a forest in which those
// that do have one root. Classes come first, then NodePools, then nodes, then the cells of
// NodePools with an open label.
type relations struct {
	problem *model.Problem
	parent  []int
	// open are the labels that NodePools leave open, nil where whole NodePools belong together.
	open  *openLabels
	cells *cells
}

// newRelations relates classes with the NodePools and nodes that may suit them, and with
// each other where topology terms of one select pods of the other. Pods that mount one volume
// share its slot on a node that suits both alone. Open is nil, or tells which machines of a
// NodePool different classes do not share.
func newRelations(p *model.Problem, open *openLabels) *relations {
	r := &relations{problem: p, parent: allOf(len(p.Classes) + len(p.Pools) + len(p.Nodes)), open: open, cells: newCells()}
	r.relatePlaces()
	r.relateTerms()
	r.joinCells()
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

func (r *relations) pool(i int) int { return len(r.problem.Classes) + i }
func (r *relations) node(i int) int { return len(r.problem.Classes) + len(r.problem.Pools) + i }
func (r *relations) cell(i int) int { return r.node(len(r.problem.Nodes)) + i }

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
				r.relatePool(c, i, &rules)
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

// joinCells relates the cells of NodePools of which whole machines belong together.
func (r *relations) joinCells() {
	for number, own := range r.cells.all {
		if r.cells.joined[own.pool] {
			r.relate(r.cell(number), r.pool(own.pool))
		}
	}
}

// relateNode relates a node with the machines of its NodePool that belong to it.
func (r *relations) relateNode(n, pool int) {
	value, has := "", false
	if r.open != nil && r.open.of[pool] != "" {
		value, has = noderules.NodeLabel(&r.problem.Nodes[n], r.open.of[pool])
	}
	if !has {
		r.cells.joined[pool] = true
		r.relate(r.node(n), r.pool(pool))
		return
	}
	r.relateCell(r.node(n), cell{pool, value})
}

// relateCell relates with a cell.
func (r *relations) relateCell(i int, own cell) {
	number, known := r.cells.numbers[own]
	if !known {
		number = len(r.cells.all)
		r.cells.numbers[own], r.cells.all = number, append(r.cells.all, own)
		r.parent = append(r.parent, r.cell(number))
	}
	r.relate(i, r.cell(number))
}

// relatePool relates a class with the machines of a NodePool that may suit it.
func (r *relations) relatePool(c, pool int, rules *noderules.Rules) {
	var values []string
	if r.open != nil && r.open.of[pool] != "" {
		values = valuesOf(rules, r.open.of[pool])
	}
	if values == nil {
		r.cells.joined[pool] = true
		r.relate(c, r.pool(pool))
	}
	for _, value := range values {
		r.relateCell(c, cell{pool, value})
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
	for number, own := range r.cells.all {
		n, used := numbers[r.root(r.cell(number))]
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
