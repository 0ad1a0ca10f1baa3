package cli

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
)

// movesTable writes moves for people: the money first, then the moves in the
// order in which they would be made, then why the other nodes stay.
type movesTable struct {
	*movesReport
	style tableStyle
	out   strings.Builder
}

// String writes the whole table.
func (t *movesTable) String() string {
	t.headline()
	if len(t.Moves) > 0 {
		t.moves()
	}
	if len(t.Stays) > 0 {
		t.stays()
	}
	return t.out.String()
}

func (t *movesTable) headline() {
	s := &t.Summary
	switch {
	case s.Nodes == 0 && s.Others > 0:
		t.out.WriteString(t.style.ink.bold("Remove nothing: no node is of a NodePool.") + "\n")
	case len(t.Moves) == 0:
		t.out.WriteString(t.style.verdict("Remove nothing: keep %s for %s/h.", plural(s.Nodes, "node"), dollars(s.HourlyBefore)))
	default:
		verdict := fmt.Sprintf("Remove %d of %s", s.Removed, plural(s.Nodes, "node"))
		if s.Added > 0 {
			verdict += fmt.Sprintf(" and buy %d", s.Added)
		}
		t.out.WriteString(t.style.verdict("%s.", verdict))
		t.money()
	}
	t.others()
	if line := proofLine(s.LowerBound, s.GapPercent, t.style.wide); line != "" {
		t.out.WriteString(prose("%s", line))
	}
}

// others says what nodes cost that are of no NodePool.
func (t *movesTable) others() {
	s := &t.Summary
	switch {
	case s.Others == 0:
	case s.OthersHourly <= 0:
		t.out.WriteString(prose("%s of no NodePool without a known price: not nap's to remove.", plural(s.Others, "node")))
	case s.Others == 1:
		t.out.WriteString(prose("1 node of no NodePool costs %s/h and is not nap's to remove; "+
			"nap savings says what its pods would cost on nap's.", dollars(s.OthersHourly)))
	default:
		t.out.WriteString(prose("%d nodes of no NodePool cost %s/h and are not nap's to remove; "+
			"nap savings says what their pods would cost on nap's.", s.Others, dollars(s.OthersHourly)))
	}
}

func (t *movesTable) money() {
	s := &t.Summary
	verb, amount := "saves", s.HourlySaving
	if amount < 0 {
		verb, amount = "costs", -amount
	}
	text := fmt.Sprintf("%s/h becomes %s/h: %s %s/h, %s/month", dollars(s.HourlyBefore), dollars(s.HourlyAfter),
		verb, dollars(amount), cents(amount*model.HoursPerMonth))
	if s.HourlyBefore > 0 {
		text += fmt.Sprintf(" (%.1f%%)", 100*amount/s.HourlyBefore)
	}
	t.out.WriteString(prose("%s; evicts %s.", text, plural(s.Evictions, "pod")))
}

// moves prints every move: what goes, what comes instead, money and evictions.
func (t *movesTable) moves() {
	fmt.Fprintf(&t.out, "\n%s\n", t.style.ink.bold("Moves, in order"))
	w := tabwriter.NewWriter(&t.out, 0, 0, 2, ' ', 0)
	// Zone, capacity type and NodePool are for -o wide: a line fits 80 columns.
	line := func(sign, node, size, zone, capacityType, pool string, rest ...string) {
		cells := []string{"  " + sign, node, size}
		if t.style.wide {
			cells = append(cells, zone, capacityType, pool)
		}
		fmt.Fprintln(w, strings.Join(append(cells, rest...), "\t"))
	}
	if !t.style.noHeaders {
		line(" ", "NODE", "SIZE", "ZONE", "CAPACITY", "NODEPOOL", "PER HOUR", "SAVES", "EVICTS", "REASON")
	}
	for i := range t.Moves {
		mv := &t.Moves[i]
		sign := "-"
		if len(mv.Add) > 0 || mv.FromTemplate {
			sign = "~"
		}
		for j := range mv.Remove {
			m := &mv.Remove[j]
			saves, evicts, reason := "", "", ""
			if j == 0 {
				saves, evicts, reason = signedDollars(mv.HourlySaving), fmt.Sprint(mv.Evictions), mv.Reason
			}
			line(sign, m.Node, shortSize(m.InstanceType), zoneText(m.Zone), m.CapacityType, m.NodePool, "-"+dollars(m.HourlyPrice),
				saves, evicts, reason)
		}
		for j := range mv.Add {
			n := &mv.Add[j]
			line("+", "(new)", shortSize(n.InstanceType), zoneText(n.Zone), n.CapacityType, n.NodePool, dollars(n.HourlyPrice),
				"", "", "for "+plural(len(n.Pods), "pod"))
		}
		if mv.FromTemplate {
			fmt.Fprintf(w, "  +\t(new)\tfrom the template of NodePool %s\n", mv.Remove[0].NodePool)
		}
	}
	w.Flush()
	if t.style.wide {
		t.evictions()
	}
}

// signedDollars is dollars for amounts that may be negative.
func signedDollars(v float64) string {
	if v < 0 {
		return "-" + dollars(-v)
	}
	return dollars(v)
}

// evictions says where the pods of every move go.
func (t *movesTable) evictions() {
	fmt.Fprintf(&t.out, "\n%s\n", t.style.ink.bold("Evicted pods"))
	owned := &planTable{planReport: &planReport{owners: t.owners}}
	for i := range t.Moves {
		mv := &t.Moves[i]
		var names []string
		for j := range mv.Remove {
			names = append(names, mv.Remove[j].Node)
		}
		if mv.Evictions == 0 {
			fmt.Fprintf(&t.out, "  %s: none\n", strings.Join(names, ", "))
			continue
		}
		fmt.Fprintf(&t.out, "  %s:\n", strings.Join(names, ", "))
		for _, p := range mv.Placements {
			fmt.Fprintf(&t.out, "    to %s: %s\n", p.Node, owned.owned(p.Pods))
		}
		for j := range mv.Add {
			fmt.Fprintf(&t.out, "    to the new %s: %s\n", mv.Add[j].InstanceType, owned.owned(mv.Add[j].Pods))
		}
		if pods := mv.forcedOut(); pods > 0 {
			fmt.Fprintf(&t.out, "    %s\n", notBefore(pods))
		}
	}
}

// stays groups the nodes that are kept by their reasons, most nodes first.
func (t *movesTable) stays() {
	fmt.Fprintf(&t.out, "\n%s\n", t.style.ink.bold("Kept"))
	index := map[string]int{}
	var groups [][]*reportStay
	for i := range t.Stays {
		st := &t.Stays[i]
		at, known := index[st.Reason]
		if !known {
			at = len(groups)
			index[st.Reason] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], st)
	}
	slices.SortStableFunc(groups, func(a, b []*reportStay) int { return len(b) - len(a) })
	for _, g := range groups {
		// What follows the first line stands further in than the nodes.
		heading := prose("    %s, %s: %s", plural(len(g), "node"), g[0].Reason, explain.Meaning(model.Reason(g[0].Reason)))
		t.out.WriteString(heading[2:])
		most := 3
		if t.style.wide {
			most = len(g)
		}
		for _, st := range g[:min(most, len(g))] {
			t.out.WriteString(prose("    %s", st.Message))
		}
		if len(g) > most {
			fmt.Fprintf(&t.out, "    ... and %s; -o wide shows all\n", plural(len(g)-most, "more node"))
		}
	}
}
