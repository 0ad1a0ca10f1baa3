package feasible

import "slices"

// Ledger is what remains of the space's lines while a plan grows.
type Ledger struct {
	// space is the one that numbers the lines and options.
	space *Space
	// left is what remains of each line, in its unit; it may be negative.
	left []int64
}

// NewLedger starts with everything that the problem leaves.
func (s *Space) NewLedger() *Ledger {
	l := &Ledger{space: s, left: make([]int64, len(s.Supply.Lines))}
	for i := range s.Supply.Lines {
		l.left[i] = s.Supply.Lines[i].Left
	}
	return l
}

// Fork is a ledger with the same entries that is kept on by itself.
func (l *Ledger) Fork() *Ledger { return &Ledger{l.space, slices.Clone(l.left)} }

// Left is what remains of a line.
func (l *Ledger) Left(line int) int64 { return l.left[line] }

// Admits reports whether one more machine of the option can be bought.
func (l *Ledger) Admits(option int) bool {
	for _, u := range l.space.Options[option].Uses {
		if u.Amount > l.left[u.Line] {
			return false
		}
	}
	return true
}

// Tight reports whether some line has less left than some option takes of it.
// Otherwise everything is admitted.
func (l *Ledger) Tight() bool {
	for i, left := range l.left {
		if left < l.space.Supply.most[i] {
			return true
		}
	}
	return false
}

// Take books n machines of the option; a negative n returns them.
func (l *Ledger) Take(option, n int) {
	for _, u := range l.space.Options[option].Uses {
		l.left[u.Line] -= u.Amount * int64(n)
	}
}
