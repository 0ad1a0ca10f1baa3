package topology

import (
	"maps"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// linker finds the counters whose terms select a pod. Terms whose selector names one
// value of a label are looked up by it, so that many classes with a selector each do not
// cost their product.
type linker struct {
	c *compiler
	// byLabel are the counters whose selector requires that one value of a label; rest
	// are the others with a selector.
	byLabel map[label][]int32
	rest    []int32
	// twins are the inverse counters of terms that have another counter, too, by that one:
	// both select the same pods. They are in no list.
	twins map[int32]int32
	// keys are the label keys of byLabel.
	keys map[string]bool
	// spaces number the namespaces of all pods. within are, by counter, those that a term lists
	// which lists many, nil for others.
	spaces map[string]int
	within []bitset.Set
	// cells is the storage of the lists that find returned last, one behind the other.
	cells []int32
	// candidates and inverse are storage for one call of find.
	candidates, inverse []int32
}

type label struct{ key, value string }

// cellsAtOnce is for how many entries of lists storage is made at a time.
const cellsAtOnce = 1 << 14

// newLinker indexes the counters that the compiler has so far.
func newLinker(c *compiler) *linker {
	p := c.t.space.Problem
	l := &linker{
		c: c, byLabel: map[label][]int32{}, twins: map[int32]int32{}, keys: map[string]bool{},
		cells: make([]int32, 0, 2*(len(p.Classes)+len(p.Shapes))),
	}
	for i := range c.t.counters {
		if at, ok := c.twin(&c.t.counters[i]); ok {
			l.twins[int32(at)] = int32(i)
			continue
		}
		if r, ok := singleValue(c.t.counters[i].selector); ok {
			at := label{r.Key, r.Values[0]}
			l.byLabel[at] = append(l.byLabel[at], int32(i))
			l.keys[r.Key] = true
		} else if c.t.counters[i].selector != nil {
			l.rest = append(l.rest, int32(i))
		}
	}
	l.indexNamespaces(p)
	return l
}

// manyNamespaces is from how many namespaces of a term on they are looked up by number.
const manyNamespaces = 16

// indexNamespaces looks once for the namespaces of pods in the lists of terms that list many: each
// of many terms is asked about each of many pods.
func (l *linker) indexNamespaces(p *model.Problem) {
	l.within = make([]bitset.Set, len(l.c.t.counters))
	long := func(c counter) bool { return !c.all && len(c.namespaces) >= manyNamespaces }
	if !slices.ContainsFunc(l.c.t.counters, long) {
		return
	}
	l.spaces = map[string]int{}
	for i := range p.Classes {
		l.spaces[p.Classes[i].Namespace] = 0
	}
	for i := range p.Shapes {
		l.spaces[p.Shapes[i].Namespace] = 0
	}
	names := slices.Sorted(maps.Keys(l.spaces))
	for number, name := range names {
		l.spaces[name] = number
	}
	for i := range l.c.t.counters {
		if !long(l.c.t.counters[i]) {
			continue
		}
		set, listed := bitset.New(len(names)), l.c.t.counters[i].namespaces
		for number, name := range names { // both are sorted
			for len(listed) > 0 && listed[0] < name {
				listed = listed[1:]
			}
			if len(listed) > 0 && listed[0] == name {
				set.Add(number)
			}
		}
		l.within[i] = set
	}
}

// selects is [term.selects] for the term of a counter.
func (l *linker) selects(counter int32, shape *model.PodShape) bool {
	t := &l.c.t.counters[counter].term
	if int(counter) >= len(l.within) || l.within[counter] == nil {
		return t.selects(shape.Namespace, shape.Labels)
	}
	return l.within[counter].Has(l.spaces[shape.Namespace]) && t.selector.Matches(shape.Labels)
}

// twin returns the counter of the pods that the term of an inverse counter selects, if
// there is one.
func (c *compiler) twin(of *counter) (int, bool) {
	if !of.inverse {
		return 0, false
	}
	t := of.term
	t.inverse = false
	c.id = t.appendID(c.id[:0], "")
	at, ok := c.byTerm[string(c.id)]
	return at, ok
}

// find returns the counters that count pods of a shape, and the inverse ones whose term
// selects them, but for pairwise twins: their twins are among the former. Terms of the shape
// itself that have no counter yet get one; only pods that are not valid have such terms, so
// that no other shape needs to know.
func (l *linker) find(shape *model.PodShape) (adds, repelled []int32) {
	l.candidates, l.inverse = append(l.candidates[:0], l.rest...), l.inverse[:0]
	for k, v := range shape.Labels { // sorted below
		if l.keys[k] {
			l.candidates = append(l.candidates, l.byLabel[label{k, v}]...)
		}
	}
	slices.Sort(l.candidates)
	if most := len(l.candidates) + len(shape.AntiAffinity); cap(l.cells)-len(l.cells) < most {
		l.cells = make([]int32, 0, max(most, cellsAtOnce)) // what was found before stays where it is
	}
	begin := len(l.cells)
	for _, i := range l.candidates {
		if !l.selects(i, shape) {
			continue
		}
		if l.c.t.counters[i].inverse {
			l.inverse = append(l.inverse, i)
			continue
		}
		l.cells = append(l.cells, i)
		if twin, ok := l.twins[i]; ok && !l.c.t.counters[twin].pairwise() {
			l.inverse = append(l.inverse, twin)
		}
	}
	slices.Sort(l.inverse)
	for t := range shape.AntiAffinity {
		if c := int32(l.c.inverse(&shape.AntiAffinity[t])); !slices.Contains(l.cells[begin:], c) {
			l.cells = append(l.cells, c)
		}
	}
	middle := len(l.cells)
	l.cells = append(l.cells, l.inverse...)
	return l.cells[begin:middle:middle], slices.Clip(l.cells[middle:])
}
