package bench

import (
	"fmt"
	"io"

	"github.com/nodeautoprovision/nap/bench/fleets"
)

// fleetColumns are the heads of the table about giving machines back. A row of
// the table is one engine on one fleet.
var fleetColumns = []string{"fleet", "pods", "engine", "first answer", "all answers", "CPU of all", "answers", "moves",
	"evictions", "peak heap", "$/h before", "$/h after", "over bound", "$/h saved per eviction", "sets tried per second"}

// WriteFleets prints the fleets as a Markdown table.
func WriteFleets(w io.Writer, rows []*fleets.Row) error {
	var lines [][]string
	for _, r := range rows {
		for i, n := range r.Nap {
			name, pods := "", ""
			if i == 0 {
				name, pods = r.Name, fmt.Sprint(r.Pods)
			}
			lines = append(lines, fleetLine(r, n.Figures, name, pods, fmt.Sprintf("nap, eviction at $%g", n.EvictionPrice)))
		}
		if r.Karpenter != nil {
			lines = append(lines, fleetLine(r, r.Karpenter, "", "", "karpenter"))
		}
	}
	return Markdown(w, fleetColumns, lines)
}

func fleetLine(r *fleets.Row, f *fleets.Figures, name, pods, engine string) []string {
	all := duration(f.All)
	if f.Stopped {
		all = "stopped " + all
	}
	saved := ""
	if f.Evictions > 0 {
		saved = fmt.Sprintf("%.4f", (r.Before-f.Cost)/float64(f.Evictions))
	}
	return []string{name, pods, engine, duration(f.First), all, duration(f.CPU),
		fmt.Sprint(f.Answers), fmt.Sprint(f.Moves), fmt.Sprint(f.Evictions), mebibytes(f.Peak),
		fmt.Sprintf("%.2f", r.Before), fmt.Sprintf("%.2f", f.Cost), over(f.Cost, r.Bound), saved, fmt.Sprintf("%.0f", f.TriedPerSecond)}
}

// churnColumns are the heads of the table about hours of change.
var churnColumns = []string{"life", "minutes", "engine", "paid", "needed in hindsight",
	"over hindsight", "pods evicted", "pods whose machine was taken", "nodes removed", "time deciding"}

// WriteChurn prints the lives as a Markdown table.
func WriteChurn(w io.Writer, rows []*fleets.LivedRow) error {
	var lines [][]string
	for _, r := range rows {
		lines = append(lines, churnLine(r.Nap, r.Name, fmt.Sprint(r.Minutes), "nap"))
		if r.Karpenter != nil {
			lines = append(lines, churnLine(r.Karpenter, "", "", "karpenter"))
		}
	}
	return Markdown(w, churnColumns, lines)
}

func churnLine(l *fleets.Lived, name, minutes, engine string) []string {
	return []string{name, minutes, engine, fmt.Sprintf("$%.2f", l.Cost), fmt.Sprintf("$%.2f", l.Hindsight), over(l.Cost, l.Hindsight),
		fmt.Sprint(l.Evictions), fmt.Sprint(l.TakenBack), fmt.Sprint(l.Removed), duration(l.Deciding)}
}

// writeChurnSection is the part of the page about hours of change.
func writeChurnSection(w io.Writer, rows []*fleets.LivedRow) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := fmt.Fprint(w, `
## Hours of change

A fleet lives through hours in which deployments grow and shrink, machines are
taken back and prices move, a minute a step; boots and drains take no time. Pods
that wait are planned by nap in either life, so that only consolidation differs:
nap decides once a minute, Karpenter four times, which is what its validation
leaves time for. Needed in hindsight is the lower bound of every minute, added up.

`)
	if err != nil {
		return err
	}
	if err := WriteChurn(w, rows); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	for _, r := range rows {
		if _, err := fmt.Fprintf(w, "- %s: begins with %d nodes; %s\n", r.Name, r.Nodes, r.About); err != nil {
			return err
		}
	}
	return nil
}

// writeFleetSection is the part of the page about giving machines back.
func writeFleetSection(w io.Writer, rows []*fleets.Row) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := fmt.Fprint(w, `
## Giving machines back

Fragmented fleets, asked again after every answer until nothing more is proposed.
What is proposed is made at once: the times are those of deciding alone. Karpenter
would beside it wait 15 seconds for the validation of each of its commands, and for
machines to boot, as nap would. Its methods run in its own order: empty nodes, then
many nodes, then one.

- first answer: the time to the first moves. all answers: until converged. A
  stopped engine had more to propose. CPU of all: what all answers took of all
  cores together. nap may search for 30 ms in its first answer, and in every later
  one for 20 ms, or 20 ms for every thousand nodes.
- sets tried per second: sets of nodes that nap looked at in a second of deciding;
  for Karpenter, single nodes that its simulation tries in a second.
- moves: nap's moves, Karpenter's commands. evictions: pods that had to move, each
  time counted.
- nap is measured with several prices of an eviction (`+"`--eviction-price`"+`): the
  frontier of saving against evictions. The list below the table says at which of
  these prices it saves what Karpenter does, or more, with the fewest evictions.
- guarded fleets: every deployment has a PodDisruptionBudget of a tenth of its pods,
  which allows as much again after every answer, and a third of the deployments
  spread over zones. nap keeps all moves of an answer within these budgets together;
  Karpenter asks them node by node, and its evictions would wait while it drains.

`)
	if err != nil {
		return err
	}
	if err := WriteFleets(w, rows); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	for _, r := range rows {
		if _, err := fmt.Fprintf(w, "- %s: %d nodes; %s%s\n", r.Name, r.Nodes, r.About, comparison(r)); err != nil {
			return err
		}
	}
	return nil
}

// comparison says what the saving of Karpenter costs nap in evictions.
func comparison(r *fleets.Row) string {
	if r.Karpenter == nil {
		return ""
	}
	saved := r.Before - r.Karpenter.Cost
	var best *fleets.Priced
	for i := range r.Nap {
		if n := &r.Nap[i]; n.Cost <= r.Karpenter.Cost && (best == nil || n.Evictions < best.Evictions) {
			best = n
		}
	}
	if best == nil {
		return fmt.Sprintf("; at no price does nap save the $%.2f/h that Karpenter saves", saved)
	}
	return fmt.Sprintf("; Karpenter saves $%.2f/h with %d evictions, nap $%.2f/h with %d (an eviction at $%g)",
		saved, r.Karpenter.Evictions, r.Before-best.Cost, best.Evictions, best.EvictionPrice)
}
