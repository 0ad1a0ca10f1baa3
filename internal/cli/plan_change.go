package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// addMoves completes a plan with the nodes that would be removed or replaced beside it.
// Input without nodes of NodePools has none.
func (c *planCommand) addMoves(ctx context.Context, made *madePlan) error {
	if len(made.input.Problem.Nodes) == 0 {
		return nil
	}
	moves, err := c.movesFor(ctx, made.read, made.source)
	if err != nil {
		return err
	}
	report := newMovesReport(moves)
	if report.Summary.Nodes == 0 {
		return nil
	}
	made.moves = report
	r, s := made.report, &report.Summary
	r.Moves, r.Stays = report.Moves, report.Stays
	after := s.HourlyAfter + r.Summary.HourlyCost
	r.Summary.Removed, r.Summary.Replacements, r.Summary.Evictions = s.Removed, s.Added, s.Evictions
	r.Summary.HourlyBefore, r.Summary.HourlyAfter = &s.HourlyBefore, &after
	return nil
}

// changes reports whether anything would be done, or waits.
func (m *madePlan) changes() bool {
	s := &m.report.Summary
	if m.report.scope != "" {
		return len(m.report.Nodes) > 0
	}
	return s.NewNodes > 0 || s.Unschedulable > 0 || len(m.report.StaticNodePools) > 0 || m.moves != nil && len(m.moves.Moves) > 0
}

// change writes what would be bought, given back and replaced, with one line of money and
// one of evictions.
func (t *planTable) change() {
	s, m := &t.Summary, &t.moves.Summary
	var parts []string
	if s.NewNodes > 0 {
		parts = append(parts, "buy "+plural(s.NewNodes, "node"))
	}
	plain, replaced := 0, 0
	for i := range t.moves.Moves {
		mv := &t.moves.Moves[i]
		if len(mv.Add) > 0 || mv.FromTemplate {
			replaced += len(mv.Remove)
		} else {
			plain += len(mv.Remove)
		}
	}
	if plain > 0 {
		parts = append(parts, fmt.Sprintf("give back %d of %s", plain, plural(m.Nodes, "node")))
	}
	if replaced > 0 {
		parts = append(parts, fmt.Sprintf("replace %d by %d", replaced, m.Added))
	}
	text := strings.Join(parts, ", ")
	t.out.WriteString(t.style.verdict("%s.", strings.ToUpper(text[:1])+text[1:]))
	before, after := *s.HourlyBefore, *s.HourlyAfter
	delta := after - before
	verb := "costs"
	if delta < 0 {
		verb, delta = "saves", -delta
	}
	t.out.WriteString(prose("Money: %s/h becomes %s/h: %s %s/h, %s/month.", dollars(before), dollars(after), verb, dollars(delta),
		cents(delta*model.HoursPerMonth)))
	fmt.Fprintf(&t.out, "Evictions: %s.\n", plural(m.Evictions, "pod"))
	t.proof()
	if s.Unschedulable > 0 {
		pending := t.style.ink.red(plural(s.Unschedulable, "pod") + " " + verbFor(s.Unschedulable, "stays") + " pending")
		fmt.Fprintf(&t.out, "%s a place; %s.\n", get(s.Scheduled), pending)
	}
}
