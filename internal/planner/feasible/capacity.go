package feasible

import (
	"cmp"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

// CapacityIndex answers which options have at least a given amount of a dimension for
// pods. It groups neighbouring options of equal size, of which there are several per
// instance type: its zones and capacity types. Nothing changes it after compilation.
type CapacityIndex struct {
	// Runs are the stretches of options of equal size, ascending. Together they are
	// all options; a run never crosses the border of two pools.
	Runs []Run
	// levels are the sorted amounts of all options, per dimension, sorted when they are asked
	// for: of most dimensions pods ask for nothing. They are nil where the space has no options.
	levels []func() *Levels
	// asked counts questions per dimension: few are answered sooner without levels.
	asked []atomic.Int32
}

// fewQuestions is how many questions about a dimension take less than to sort its amounts.
const fewQuestions = 4

// Run is a stretch of options of one pool with the same net capacity.
type Run struct {
	// First and End bound the options: First is the first one, End follows the last.
	First, End int
	// Net is what pods can use on each of them, per dimension of the space.
	Net []int64
}

// runner groups options into runs, in their order. It exists while a space is compiled.
type runner struct {
	// runs are those so far.
	runs []Run
	// cells are storage for vectors, yet to be laid out.
	cells []int64
}

// runsAtOnce is for how many runs storage is made at a time.
const runsAtOnce = 64

// add takes the next option, which offers net to pods, and returns the number of its run. A pool's
// first option begins a run. Net is copied.
func (r *runner) add(option int, net []int64, begins bool) int32 {
	last := len(r.runs) - 1
	if !begins && slices.Equal(r.runs[last].Net, net) {
		r.runs[last].End = option + 1
		return int32(last)
	}
	if len(r.cells) < len(net) {
		r.cells = make([]int64, runsAtOnce*len(net))
	}
	own := r.cells[:len(net):len(net)]
	r.cells = r.cells[len(net):]
	copy(own, net)
	r.runs = append(r.runs, Run{First: option, End: option + 1, Net: own})
	return int32(last + 1)
}

// newCapacityIndex is of options that are grouped into runs, which are sorted by dimensions later.
func newCapacityIndex(runs []Run, dims int) CapacityIndex {
	x := CapacityIndex{Runs: runs}
	if len(runs) == 0 {
		return x
	}
	end := runs[len(runs)-1].End
	index := CapacityIndex{Runs: runs} // the index itself is copied
	x.levels, x.asked = make([]func() *Levels, dims), make([]atomic.Int32, dims)
	for d := range x.levels {
		x.levels[d] = sync.OnceValue(func() *Levels { return index.NewLevels(d, 0, end) })
	}
	return x
}

// keepAtLeast drops from a set of all options those that have less than an amount of
// one dimension for pods.
func (x *CapacityIndex) keepAtLeast(set Set, dim int, amount int64) {
	switch {
	case len(x.levels) == 0:
	case x.asked[dim].Add(1) <= fewQuestions:
		x.Keep(set, 0, 0, x.Runs[len(x.Runs)-1].End, dim, amount)
	default:
		x.levels[dim]().Keep(set, amount)
	}
}

// Keep drops from a set those of the options in [first, end) that have less than an amount of a
// dimension. The set holds the words of the space's sets from word from on. It asks each run;
// [Levels] are faster for many questions. Precondition: the range consists of whole runs and is not
// empty.
func (x *CapacityIndex) Keep(set Set, from, first, end, dim int, amount int64) {
	for _, r := range x.Runs[x.runOf(first) : x.runOf(end-1)+1] {
		if r.Net[dim] < amount {
			set.RemoveRange(r.First-64*from, r.End-64*from)
		}
	}
}

// runOf is the number of the run of an option.
func (x *CapacityIndex) runOf(option int) int {
	return sort.Search(len(x.Runs), func(i int) bool { return option < x.Runs[i].End })
}

// Levels answer which of some options have at least a given amount of one dimension.
// Their sets hold only the words of the space's sets from word From on in which
// those options are.
type Levels struct {
	// From is the first word of a set of the space that concerns these options.
	From int
	// steps are the runs of options, ascending by what they have.
	steps []step
	// sets[i] are the options from step i*stride on.
	sets []Set
	// stride is how many steps lie between two sets: the more, the less memory, and
	// the more runs Keep takes out one by one.
	stride int
}

// step is a run of options, which all have the same amount.
type step struct {
	// amount is in the unit of the dimension.
	amount int64
	// first and end bound the options, counted from the first bit of word From.
	first, end int
}

const (
	// minStride is how many steps are at least between two sets: to take that many
	// runs out of a set one by one costs about as much as to intersect two.
	minStride = 16
	// maxLevels bounds the words of all sets of a dimension.
	maxLevels = 1 << 17
)

// NewLevels sorts the options in [first, end) by a dimension. Precondition: the range
// consists of whole runs and is not empty.
func (x *CapacityIndex) NewLevels(dim, first, end int) *Levels {
	runs := x.Runs[x.runOf(first) : x.runOf(end-1)+1]
	l := &Levels{From: first / 64, steps: make([]step, 0, len(runs))}
	for i := range runs {
		r := &runs[i]
		l.steps = append(l.steps, step{r.Net[dim], r.First - 64*l.From, r.End - 64*l.From})
	}
	slices.SortFunc(l.steps, func(x, y step) int { return cmp.Compare(x.amount, y.amount) })
	words := (end+63)/64 - l.From
	l.stride = max(minStride, len(l.steps)*words/maxLevels)
	l.sets = make([]Set, (len(l.steps)+l.stride-1)/l.stride)
	set, cells := make(Set, words), make(Set, words*len(l.sets))
	for i := len(l.steps) - 1; i >= 0; i-- {
		set.AddRange(l.steps[i].first, l.steps[i].end)
		if at := i / l.stride; i%l.stride == 0 {
			l.sets[at] = cells[words*at : words*(at+1)]
			copy(l.sets[at], set)
		}
	}
	return l
}

// Keep drops from a set, of the same words, the options that have less.
func (l *Levels) Keep(set Set, amount int64) {
	least, _ := slices.BinarySearchFunc(l.steps, amount, func(s step, amount int64) int { return cmp.Compare(s.amount, amount) })
	if least == len(l.steps) {
		clear(set)
		return
	}
	at := least / l.stride
	if at > 0 {
		set.And(l.sets[at])
	}
	for _, s := range l.steps[at*l.stride : least] {
		set.RemoveRange(s.first, s.end)
	}
}
