package ledger

import (
	"slices"
	"time"
)

// earnsFor is for how long a move earns at most: after a day a fleet is another one.
const earnsFor = 24 * time.Hour

// move brings the moves up to a look; spent is what machines have cost since the one
// before, by NodeClaim.
func (b *Book) move(look *Look, spent map[string]float64) {
	removing := b.begin(look)
	there := map[string]bool{}
	for i := range b.Open {
		there[b.Open[i].NodeClaim] = true
	}
	var moving []Move
	for i := range b.Moving {
		m := b.Moving[i]
		var over bool
		switch m.State {
		case MoveUnderWay:
			over = b.advance(&m, removing[m.ID], there, spent, look.At)
		default:
			over = b.earn(&m, there, look.At)
		}
		if over {
			b.Moved, b.changed = append(b.Moved, m), true
		} else {
			moving = append(moving, m)
		}
	}
	b.Moving = moving
}

// begin notes moves that are new and nodes that commands remove, and returns which
// commands remove something now.
func (b *Book) begin(look *Look) map[string]bool {
	removing := map[string]bool{}
	for i := range look.Machines {
		seen := &look.Machines[i]
		c := seen.Command
		if c == nil {
			continue
		}
		removing[c.ID] = true
		at := slices.IndexFunc(b.Moving, func(m Move) bool { return m.ID == c.ID })
		if at < 0 {
			b.Moving = append(b.Moving, Move{
				ID: c.ID, Reason: c.Reason, Begun: c.Begun.UTC(), State: MoveUnderWay, Planned: c.Saving.Dollars(), Evictions: c.Evictions,
				Bought: slices.Clone(c.Replacements),
			})
			at, b.changed = len(b.Moving)-1, true
		}
		m := &b.Moving[at]
		if !slices.Contains(m.Removed, seen.NodeClaim) {
			m.Removed = append(m.Removed, seen.NodeClaim)
			m.Before += seen.Paid.Total()
			b.changed = true
		}
		if !slices.Contains(m.NodePools, seen.NodePool) {
			m.NodePools = append(m.NodePools, seen.NodePool)
		}
	}
	return removing
}

// advance follows a move under way, and reports whether it is over for good.
func (b *Book) advance(m *Move, removing bool, there map[string]bool, spent map[string]float64, at time.Time) bool {
	for _, claim := range m.Bought {
		m.Spent += spent[claim]
	}
	left := slices.ContainsFunc(m.Removed, func(claim string) bool { return there[claim] })
	if left && removing {
		return false
	}
	ended := at.UTC()
	m.Ended, b.changed = &ended, true
	if left {
		// The command is not on the nodes any more, and they are still there.
		m.State = MoveRolledBack
		return true
	}
	m.State = MoveDone
	for _, claim := range m.Bought {
		if o := b.openMachine(claim); o != nil {
			m.After += o.Paid.Total()
		}
	}
	return false
}

// earn adds what a move has saved since the last look, and reports whether it earns no more.
func (b *Book) earn(m *Move, there map[string]bool, at time.Time) bool {
	if slices.ContainsFunc(m.Bought, func(claim string) bool { return !there[claim] }) {
		return true
	}
	if len(m.Bought) == 0 && slices.ContainsFunc(b.Open, func(o Machine) bool {
		return o.Launched.After(*m.Ended) && slices.Contains(m.NodePools, o.NodePool)
	}) {
		return true
	}
	last := m.Ended.Add(earnsFor)
	until := at
	if until.After(last) {
		until = last
	}
	from := b.Until
	if from.Before(*m.Ended) {
		from = *m.Ended
	}
	m.Saved += max(0, until.Sub(from).Hours()) * m.Realised()
	return !at.Before(last)
}
