package feasible

import (
	"cmp"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// CapacityIndex answers which options have at least a given amount of a dimension for
// pods. It groups neighbouring options of equal size, of which there are several per
// instance type: its zones and capacity types. Nothing changes it after compilation.
type CapacityIndex struct {
	// Runs are the stretches of options of equal size, ascending. Together they are
	// all options; a run never crosses the border of two pools.
	Runs []Run
	// levels are those of all options, per dimension, nil where the space has no options.
	levels []*Levels
}

// Run is a stretch of options of one pool with the same net capacity.
type Run struct {
	// First and End bound the options: First is the first one, End follows the last.
	First, End int
	// Net is what pods can use on each of them, per dimension of the space.
	Net []int64
}

// runBuilder groups options into runs, in their order. It exists while a space is compiled.
type runBuilder struct {
	// runs are those so far.
	runs []Run
	// cells are storage for vectors, yet to be laid out.
	cells []int64
}

// runsAtOnce is for how many runs storage is made at a time.
const runsAtOnce = 64

// add takes the next option, which offers net to pods, and returns the number of its run. A pool's
// first option begins a run. Net is copied.
func (r *runBuilder) add(option int, net []int64, begins bool) int32 {
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

// newCapacityIndex is of options that are grouped into runs.
func newCapacityIndex(runs []Run, dims int) CapacityIndex {
	x := CapacityIndex{Runs: runs}
	if len(runs) > 0 {
		for d := range dims {
			x.levels = append(x.levels, x.NewLevels(d, 0, runs[len(runs)-1].End))
		}
	}
	return x
}

// keepAtLeast drops from a set of all options those that have less than an amount of
// one dimension for pods.
func (x *CapacityIndex) keepAtLeast(set bitset.Set, dim int, amount int64) {
	if len(x.levels) > 0 {
		x.levels[dim].Keep(set, amount)
	}
}

// runOf is the number of the run of an option.
func (x *CapacityIndex) runOf(option int) int {
	return sort.Search(len(x.Runs), func(i int) bool { return option < x.Runs[i].End })
}

// Levels answer which of some options have at least a given amount of one dimension.
// Their sets hold only the words of the space's sets from word From on in which
// those options are. The first few questions are put to each run; then the amounts are sorted:
// of most dimensions pods ask for little, and small problems ask for it once. Any number of
// goroutines may use them.
type Levels struct {
	// From is the first word of a set of the space that concerns these options.
	From int
	// runs are those of the options, dim is the dimension.
	runs []Run
	dim  int
	// asked counts questions, and sorted is what answers them after the first few.
	asked  atomic.Int32
	sorted func() *sortedLevels
}

// fewQuestions is how many questions take less than to sort the amounts.
const fewQuestions = 4

// sortedLevels are the runs of options by what they have.
type sortedLevels struct {
	// steps are the runs of options, ascending by what they have.
	steps []step
	// sets[i] are the options from step i*stride on.
	sets []bitset.Set
	// stride is how many steps lie between two sets: the more, the less memory, and
	// the more runs keep takes out one by one.
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

// NewLevels are those of the options in [first, end) by a dimension. Precondition: the range
// consists of whole runs and is not empty.
func (x *CapacityIndex) NewLevels(dim, first, end int) *Levels {
	l := &Levels{From: first / 64, runs: x.Runs[x.runOf(first) : x.runOf(end-1)+1], dim: dim}
	l.sorted = sync.OnceValue(l.sort)
	return l
}

// Keep drops from a set, of the same words, the options that have less.
func (l *Levels) Keep(set bitset.Set, amount int64) {
	if l.asked.Add(1) > fewQuestions {
		l.sorted().keep(set, amount)
		return
	}
	for i := range l.runs {
		if r := &l.runs[i]; r.Net[l.dim] < amount {
			set.RemoveRange(r.First-64*l.From, r.End-64*l.From)
		}
	}
}

// sort sorts the runs by what they have.
func (l *Levels) sort() *sortedLevels {
	s := &sortedLevels{steps: make([]step, 0, len(l.runs))}
	for i := range l.runs {
		r := &l.runs[i]
		s.steps = append(s.steps, step{r.Net[l.dim], r.First - 64*l.From, r.End - 64*l.From})
	}
	slices.SortFunc(s.steps, func(x, y step) int { return cmp.Compare(x.amount, y.amount) })
	words := (l.runs[len(l.runs)-1].End+63)/64 - l.From
	s.stride = max(minStride, len(s.steps)*words/maxLevels)
	s.sets = make([]bitset.Set, (len(s.steps)+s.stride-1)/s.stride)
	set, cells := make(bitset.Set, words), make(bitset.Set, words*len(s.sets))
	for i := len(s.steps) - 1; i >= 0; i-- {
		set.AddRange(s.steps[i].first, s.steps[i].end)
		if at := i / s.stride; i%s.stride == 0 {
			s.sets[at] = cells[words*at : words*(at+1)]
			copy(s.sets[at], set)
		}
	}
	return s
}

// keep drops from a set the options that have less.
func (s *sortedLevels) keep(set bitset.Set, amount int64) {
	least, _ := slices.BinarySearchFunc(s.steps, amount, func(s step, amount int64) int { return cmp.Compare(s.amount, amount) })
	if least == len(s.steps) {
		clear(set)
		return
	}
	at := least / s.stride
	if at > 0 {
		set.And(s.sets[at])
	}
	for _, step := range s.steps[at*s.stride : least] {
		set.RemoveRange(step.first, step.end)
	}
}
