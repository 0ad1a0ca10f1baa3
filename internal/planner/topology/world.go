package topology

import (
	"maps"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// World is all counters of a problem and who adds to them.
type World struct {
	// OnlyHard leaves preferences out of what pods placed earlier are held to; see
	// [World.SetOrder].
	OnlyHard bool

	space    *feasible.Space
	counters []*Counter
	terms    []term
	byID     map[string]int
	scratch  []byte // the id that was looked up last
	minima   []minimum
	// spreads are the counter and the domains of every spread constraint, and
	// what [World.Settle] added.
	spreads []settled
	// spans caches domains.
	spans map[span][]int32
	// watched marks the counters that spread rules look at.
	watched map[int]bool
	// inverse are the counters of anti-affinity carriers: a pod that such a term
	// selects may not enter a domain where the counter is positive.
	inverse []int
	// adds lists, per class, the counters that its pods add to; repelled, the
	// inverse counters that select it.
	adds     [][]int
	repelled [][]int
	shapes   [][]int
	// position is each class's place in the order of placing, lastReader that of
	// the last class that reads a counter, lastAdder of the last that adds to it.
	position, lastReader, lastAdder []int
}

// NewWorld prepares the counters for the given classes at their given rules
// and counts the pods that run already. The order of classes is that of the
// problem; classes that are not valid have no rules.
func NewWorld(s *feasible.Space, classes []Class) *World {
	w := &World{space: s, byID: map[string]int{}, watched: map[int]bool{}, spans: map[span][]int32{}}
	for i := range classes {
		for l := range classes[i].Levels {
			w.compile(&classes[i], &classes[i].Levels[l])
		}
	}
	p := s.Problem
	for i := range p.Shapes {
		for t := range p.Shapes[i].AntiAffinity {
			w.carrierOf(&p.Shapes[i].AntiAffinity[t])
		}
	}
	w.link()
	for n := range p.Nodes {
		if p.Nodes[n].State == model.NodeLeaving {
			continue
		}
		for _, b := range p.Nodes[n].Bound {
			if b.Shape >= 0 && b.Shape < len(p.Shapes) && b.Count > 0 {
				for _, c := range w.shapes[b.Shape] {
					w.add(w.counters[c], Place{ID: n, Node: n}, b.Count)
				}
			}
		}
	}
	return w
}

// Add records n more pods of a class (fewer, if n is negative) on a place.
func (w *World) Add(class int, p Place, n int) {
	for _, c := range w.adds[class] {
		w.add(w.counters[c], p, n)
	}
}

func (w *World) keyOf(topologyKey string) int {
	if topologyKey == model.LabelHostname {
		return Host
	}
	return w.space.KeyIndex(topologyKey)
}

func (w *World) counter(t term, filter string, nodes, options feasible.Set) int {
	w.scratch = t.appendID(w.scratch[:0], filter)
	if i, ok := w.byID[string(w.scratch)]; ok {
		return i
	}
	i := len(w.counters)
	c := &Counter{Key: t.key, nodes: nodes, options: options}
	if t.key == Host {
		c.byPlace = map[int]int32{}
	}
	w.counters = append(w.counters, c)
	w.terms = append(w.terms, t)
	w.byID[string(w.scratch)] = i
	return i
}

func (w *World) affinityTerm(t *model.AffinityTerm) term {
	namespaces := t.Namespaces
	if !slices.IsSorted(namespaces) {
		namespaces = slices.Sorted(slices.Values(namespaces))
	}
	return term{key: w.keyOf(t.TopologyKey), selector: t.Selector, namespaces: namespaces, all: t.AllNamespaces}
}

func (w *World) carrierOf(t *model.AffinityTerm) int {
	tt := w.affinityTerm(t)
	tt.carriers = true
	before := len(w.counters)
	c := w.counter(tt, "", nil, nil)
	if c == before {
		w.inverse = append(w.inverse, c)
	}
	return c
}

// link finds, for every class and shape, the counters that it adds to. Terms
// whose selector names one value of a label are looked up by it, so that many
// classes with a selector each do not cost their product.
func (w *World) link() {
	p := w.space.Problem
	type label struct{ key, value string }
	index := map[label][]int{}
	var rest []int
	for i := range w.terms {
		if l, ok := singleValue(w.terms[i].selector); ok {
			index[label{l.Key, l.Values[0]}] = append(index[label{l.Key, l.Values[0]}], i)
		} else if w.terms[i].selector != nil {
			rest = append(rest, i)
		}
	}
	keys := map[string]bool{}
	for l := range index { // a set: order does not matter
		keys[l.key] = true
	}
	// What is found lies in one piece of storage, list behind list.
	cells := make([]int, 0, 2*(len(p.Classes)+len(p.Shapes)))
	var candidates, repelling []int
	find := func(shape *model.PodShape) (adds, repelled []int) {
		begin := len(cells)
		candidates, repelling = append(candidates[:0], rest...), repelling[:0]
		for k, v := range shape.Labels { // sorted below
			if keys[k] {
				candidates = append(candidates, index[label{k, v}]...)
			}
		}
		slices.Sort(candidates)
		for _, i := range candidates {
			if !w.terms[i].selects(shape.Namespace, shape.Labels) {
				continue
			}
			if w.terms[i].carriers {
				repelling = append(repelling, i)
			} else {
				cells = append(cells, i)
			}
		}
		for t := range shape.AntiAffinity {
			if c := w.carrierOf(&shape.AntiAffinity[t]); !slices.Contains(cells[begin:], c) {
				cells = append(cells, c)
			}
		}
		middle := len(cells)
		cells = append(cells, repelling...)
		return cells[begin:middle:middle], slices.Clip(cells[middle:])
	}
	w.adds, w.repelled = make([][]int, len(p.Classes)), make([][]int, len(p.Classes))
	w.shapes = make([][]int, len(p.Shapes))
	for i := range p.Classes {
		w.adds[i], w.repelled[i] = find(&p.Classes[i].PodShape)
	}
	for i := range p.Shapes {
		w.shapes[i], _ = find(&p.Shapes[i])
	}
}

// singleValue returns a requirement of the form "key In [value]", if any.
func singleValue(s *model.Selector) (model.Requirement, bool) {
	if s != nil {
		for _, r := range s.Requirements {
			if r.Operator == model.In && len(r.Values) == 1 {
				return r, true
			}
		}
	}
	return model.Requirement{}, false
}

// Fork is a world with the same counts, which the rules of the same classes apply
// to and which counts on by itself.
func (w *World) Fork() *World {
	f := *w
	f.counters = make([]*Counter, len(w.counters))
	for i, c := range w.counters {
		own := *c
		own.byValue, own.byPlace, own.aboard = slices.Clone(c.byValue), maps.Clone(c.byPlace), maps.Clone(c.aboard)
		f.counters[i] = &own
	}
	f.minima = slices.Clone(w.minima)
	return &f
}

// AnyOrder gets the world ready for classes that are placed in any order, a few
// pods of each at a time: whatever somebody reads matters to all that add to it.
func (w *World) AnyOrder() {
	for c := range w.lastReader {
		if w.lastReader[c] >= 0 {
			w.lastReader[c] = len(w.position)
		}
	}
}

// Loose reports whether a spread of a class is read by it for the last time before all
// have been placed who add to it: those who come after it are placed as if it had all
// its places.
func (w *World) Loose(r *Rules) bool {
	return slices.ContainsFunc(r.Spread, func(s Spread) bool {
		return s.Key != Host && w.lastAdder[s.Counter] > w.lastReader[s.Counter]
	})
}

// Tie makes what the spreads read matter to whoever adds to it, for pods that come
// after those.
func (w *World) Tie(r *Rules) {
	for i := range r.Spread {
		w.lastReader[r.Spread[i].Counter] = len(w.position)
	}
}
