package feasible

import (
	"cmp"
	"slices"
)

// Levels answer which of some options have at least so much of one dimension.
// Their sets hold only the words of the space's sets from word From on in which
// those options are.
type Levels struct {
	From int
	// steps are the runs of options, by what they have.
	steps []step
	// sets[i] are the options from step i·stride on.
	sets   []Set
	stride int
}

// step is a run of options, which all have the same amount.
type step struct {
	amount     int64
	first, end int
}

const (
	// minStride is how many steps are at least between two sets: to take that many
	// runs out of a set one by one costs about as much as to intersect two.
	minStride = 16
	// maxLevels bounds the words of all sets of a dimension.
	maxLevels = 1 << 17
)

// NewLevels sorts the options in [first, end) by a dimension.
func (s *Space) NewLevels(dim, first, end int) *Levels {
	from, to := s.Options[first].Run, s.Options[end-1].Run+1
	l := &Levels{From: first / 64, steps: make([]step, 0, to-from)}
	for i := from; i < to; i++ {
		r := &s.Runs[i]
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

// keepAtLeast drops from a set the options that have less than an amount of one
// dimension for pods.
func (s *Space) keepAtLeast(set Set, dim int, amount int64) {
	if len(s.Options) == 0 {
		return
	}
	if s.levels[dim] == nil {
		s.levels[dim] = s.NewLevels(dim, 0, len(s.Options))
	}
	s.levels[dim].Keep(set, amount)
}
