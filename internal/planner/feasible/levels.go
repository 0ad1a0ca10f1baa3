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
	// amounts ascend; sets[i] are the options with at least amounts[i].
	amounts []int64
	sets    []Set
}

// maxLevels bounds the words that a space spends on the levels of a dimension.
const maxLevels = 1 << 17

// NewLevels sorts the options in [first, end) by a dimension.
func (s *Space) NewLevels(dim, first, end int) *Levels {
	from, to := s.Options[first].Run, s.Options[end-1].Run+1
	runs := make([]*Run, 0, to-from)
	for i := from; i < to; i++ {
		runs = append(runs, &s.Runs[i])
	}
	slices.SortFunc(runs, func(x, y *Run) int { return cmp.Compare(y.Net[dim], x.Net[dim]) })
	distinct := 0
	for i, r := range runs {
		if i+1 == len(runs) || runs[i+1].Net[dim] != r.Net[dim] {
			distinct++
		}
	}
	l := &Levels{From: first / 64, amounts: make([]int64, distinct), sets: make([]Set, distinct)}
	words := (end+63)/64 - l.From
	set, cells := make(Set, words), make(Set, words*distinct)
	for i, r := range runs {
		set.AddRange(r.First-64*l.From, r.End-64*l.From)
		if i+1 == len(runs) || runs[i+1].Net[dim] != r.Net[dim] {
			distinct--
			l.amounts[distinct] = r.Net[dim]
			l.sets[distinct], cells = cells[:words:words], cells[words:]
			copy(l.sets[distinct], set)
		}
	}
	return l
}

// Keep drops from a set, of the same words, the options that have less.
func (l *Levels) Keep(set Set, amount int64) {
	switch i, _ := slices.BinarySearch(l.amounts, amount); {
	case i == len(l.amounts):
		clear(set)
	case i > 0:
		set.And(l.sets[i])
	}
}

// floor is a dimension and the least amount of it that is looked for.
type floor struct {
	dim    int
	amount int64
}

// keepAtLeast drops from a set the options that have less than an amount of one
// dimension for pods.
func (s *Space) keepAtLeast(set Set, dim int, amount int64) {
	if len(s.Options) == 0 {
		return
	}
	if s.levels[dim] == nil && len(s.Runs)*len(set) <= maxLevels {
		s.levels[dim] = s.NewLevels(dim, 0, len(s.Options))
	}
	if l := s.levels[dim]; l != nil {
		l.Keep(set, amount)
		return
	}
	// Too many options to keep a set for every amount that one has: those that
	// are asked for have to do.
	if s.amounts[dim] == nil {
		amounts := make([]int64, len(s.Runs))
		for i := range s.Runs {
			amounts[i] = s.Runs[i].Net[dim]
		}
		slices.Sort(amounts)
		s.amounts[dim] = slices.Compact(amounts)
	}
	i, _ := slices.BinarySearch(s.amounts[dim], amount)
	if i == 0 {
		return
	}
	if i == len(s.amounts[dim]) {
		clear(set)
		return
	}
	amount = s.amounts[dim][i]
	have, ok := s.floors[floor{dim, amount}]
	if !ok {
		have = NewSet(len(s.Options))
		for i := range s.Runs {
			if r := &s.Runs[i]; r.Net[dim] >= amount {
				have.AddRange(r.First, r.End)
			}
		}
		s.floors[floor{dim, amount}] = have
	}
	set.And(have)
}
