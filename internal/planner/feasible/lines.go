package feasible

import (
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Line is something that runs out and that several machines draw on: a pool's
// limit on one axis or on nodes, a quota, a capacity reservation.
type Line struct {
	Reason model.Reason
	// Name says in words what runs out.
	Name string
	// Axis is that of the amounts, or -1 for plain counts.
	Axis int
	// Left is what remains before anything is planned; it may be negative.
	Left int64
}

// Use is what one machine takes from a line.
type Use struct {
	Line   int
	Amount int64
}

// lineReasons are the kinds of lines in the order of the checks.
var lineReasons = []model.Reason{model.ReasonQuota, model.ReasonReservation, model.ReasonLimit, model.ReasonNodeLimit}

// RunsOut reports whether a reason is that of a line.
func RunsOut(reason model.Reason) bool { return slices.Contains(lineReasons, reason) }

// addLines collects everything that limits purchases and what each option
// takes from it.
func (s *Space) addLines() {
	quotas := map[string]int{}
	for _, q := range s.Problem.Quotas {
		if _, twice := quotas[q.Name]; !twice {
			quotas[q.Name] = s.line(Line{model.ReasonQuota, "quota " + q.Name, -1, q.Left})
		}
	}
	reservations := map[string]int{}
	reserved := func(catalog int, t *model.InstanceType, offering int) int {
		of := &t.Offerings[offering]
		id := of.Reservation
		if id == "" {
			id = fmt.Sprintf("%d/%s/%d", catalog, t.Name, offering)
		}
		line, ok := reservations[id]
		if !ok {
			line = s.line(Line{model.ReasonReservation, "reservation " + id, -1, int64(of.Remaining)})
			reservations[id] = line
		}
		return line
	}
	for _, pool := range s.Pools {
		src := &s.Problem.Pools[pool.Index]
		fixed, axes := s.poolLines(src)
		uses := make([]Use, 0, len(fixed)*(pool.End-pool.First)) // of all options, in one piece of memory
		for i := pool.First; i < pool.End; i++ {
			o, from := &s.Options[i], len(uses)
			for k, line := range fixed {
				amount := int64(1)
				if axes[k] >= 0 {
					amount = o.Gross[axes[k]]
				}
				if amount > 0 {
					uses = append(uses, Use{line, amount})
				}
			}
			t, offering := s.Offering(i)
			for _, u := range offering.Quotas {
				if line, ok := quotas[u.Quota]; ok && u.Amount > 0 {
					uses = append(uses, Use{line, u.Amount})
				}
			}
			if offering.CapacityType == model.Reserved {
				uses = append(uses, Use{reserved(src.Catalog, t, o.Offering), 1})
			}
			o.Uses = uses[from:len(uses):len(uses)]
		}
	}
}

// poolLines makes the lines of a pool's limits; axis -1 counts nodes.
func (s *Space) poolLines(pool *model.Pool) (lines, axes []int) {
	for _, l := range pool.Limits {
		name := fmt.Sprintf("limit %s of NodePool %s", s.AxisName(l.Axis), pool.Name)
		lines = append(lines, s.line(Line{model.ReasonLimit, name, l.Axis, l.Value - pool.Usage.Get(l.Axis)}))
		axes = append(axes, l.Axis)
	}
	if pool.NodeLimit >= 0 {
		name := "limit nodes of NodePool " + pool.Name
		lines = append(lines, s.line(Line{model.ReasonNodeLimit, name, -1, int64(pool.NodeLimit - pool.Nodes)}))
		axes = append(axes, -1)
	}
	return lines, axes
}

func (s *Space) line(l Line) int {
	s.Lines = append(s.Lines, l)
	return len(s.Lines) - 1
}

// AxisName is the name of a resource, also of one that the problem does not name.
func (s *Space) AxisName(axis int) string {
	if axis < len(s.Problem.Axes) {
		return s.Problem.Axes[axis]
	}
	return fmt.Sprintf("axis %d", axis)
}

// findAvailable asks for every option whether one machine of it can be bought.
func (s *Space) findAvailable() {
	n := len(s.Options)
	s.sold = NewSet(n)
	s.within = map[model.Reason]Set{}
	for _, reason := range lineReasons {
		s.within[reason] = Full(n)
	}
	s.most = make([]int64, len(s.Lines))
	for i := range s.Options {
		if _, o := s.Offering(i); o.Available {
			s.sold.Add(i)
		}
		for _, u := range s.Options[i].Uses {
			s.most[u.Line] = max(s.most[u.Line], u.Amount)
			if line := &s.Lines[u.Line]; u.Amount > line.Left {
				s.within[line.Reason].Remove(i)
			}
		}
	}
	s.Available = s.sold.Clone()
	for _, reason := range lineReasons {
		s.Available.And(s.within[reason])
	}
}

// Ledger is what remains of the space's lines while a plan grows.
type Ledger struct {
	space *Space
	left  []int64
}

// NewLedger starts with everything that the problem leaves.
func (s *Space) NewLedger() *Ledger {
	l := &Ledger{space: s, left: make([]int64, len(s.Lines))}
	for i := range s.Lines {
		l.left[i] = s.Lines[i].Left
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
		if left < l.space.most[i] {
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

// Amount prints an amount of a line in its unit.
func (l *Line) Amount(v int64) string { return model.FormatAmount(l.Axis, v) }
