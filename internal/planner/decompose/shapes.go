package decompose

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// shapes finds the nodes on which pods run that count for others by topology terms.
type shapes struct {
	problem *model.Problem
	// all are the shapes of running pods by index, in those of a namespace, repelling those
	// that keep others away.
	all, repelling []int
	in             map[string][]int
}

func newShapes(p *model.Problem) *shapes {
	s := &shapes{problem: p, all: allOf(len(p.Shapes)), in: map[string][]int{}}
	for i := range p.Shapes {
		shape := &p.Shapes[i]
		s.in[shape.Namespace] = append(s.in[shape.Namespace], i)
		if len(shape.AntiAffinity) > 0 {
			s.repelling = append(s.repelling, i)
		}
	}
	return s
}

// nodesOf are the nodes with running pods that terms of the classes select, or whose terms
// select pods of the classes.
func (s *shapes) nodesOf(classes []model.PodClass) []int {
	counts, any := make([]bool, len(s.all)), false
	note := func(shape int) { counts[shape], any = true, true }
	for c := range classes {
		class := &classes[c]
		eachTerm(class, func(t *model.AffinityTerm) {
			among := s.all
			if !t.AllNamespaces {
				among = nil
				for _, namespace := range t.Namespaces {
					among = append(among, s.in[namespace]...)
				}
			}
			for _, i := range among {
				if t.Selector.Matches(s.problem.Shapes[i].Labels) {
					note(i)
				}
			}
		})
		for _, i := range s.repelling {
			if slices.ContainsFunc(s.problem.Shapes[i].AntiAffinity, func(t model.AffinityTerm) bool {
				return t.Selects(class.Namespace, class.Labels)
			}) {
				note(i)
			}
		}
	}
	if !any {
		return nil
	}
	var out []int
	for n := range s.problem.Nodes {
		if slices.ContainsFunc(s.problem.Nodes[n].Bound, func(b model.BoundPods) bool {
			return b.Shape >= 0 && b.Shape < len(counts) && counts[b.Shape] // a malformed problem has other shapes
		}) {
			out = append(out, n)
		}
	}
	return out
}

// eachTerm calls yield for all topology terms of a class; its spreads select pods of its own
// namespace.
func eachTerm(class *model.PodClass, yield func(*model.AffinityTerm)) {
	for i := range class.Spread {
		yield(&model.AffinityTerm{Selector: class.Spread[i].Selector, Namespaces: []string{class.Namespace}})
	}
	for i := range class.Affinity {
		yield(&class.Affinity[i])
	}
	for i := range class.AntiAffinity {
		yield(&class.AntiAffinity[i])
	}
	for i := range class.Preferences {
		yield(&class.Preferences[i].Term)
	}
}
