package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/model"
)

// What fits on a screen of 80 columns and 24 lines.
const (
	screenColumns = 80
	screenLines   = 24
	mostPools     = 7
	mostPending   = 2
	mostNotes     = 2
)

// statusScreen writes a status for people, at most 24 lines of 80 columns.
type statusScreen struct {
	*clusterStatus
	at    time.Time
	ink   ink
	lines []string
	// offered is a text with commands as they have to be typed here.
	offered func(text string) string
}

// String writes the screen.
func (t *statusScreen) String() string {
	if t.Assuming != "" {
		t.lines = append(t.lines, wrap(t.Assuming, screenColumns)...)
	}
	t.headline()
	above := t.lines
	t.lines = nil
	t.pending()
	t.machines()
	t.moves()
	t.leaving()
	t.market()
	t.last()
	below := t.lines
	t.lines = above
	t.pools(screenLines - len(above) - len(below))
	return strings.Join(append(t.lines, below...), "\n") + "\n"
}

// add adds a line, cut to the width of the screen.
func (t *statusScreen) add(format string, args ...any) {
	t.lines = append(t.lines, clip(t.offered(fmt.Sprintf(format, args...)), screenColumns))
}

// clip cuts a text to a number of columns, with three dots for what is left out.
func clip(text string, columns int) string {
	runes := []rune(text)
	if len(runes) <= columns {
		return text
	}
	return string(runes[:columns-3]) + "..."
}

// ago is how long ago something was, in words.
func (t *statusScreen) ago(then time.Time) string {
	return model.FormatDuration(max(0, t.at.Sub(then).Truncate(time.Second)))
}

func (t *statusScreen) headline() {
	where := cmp.Or(t.Cluster, "files")
	if t.Status.Region != "" {
		where += " (" + t.Status.Region + ")"
	}
	nodes := plural(t.Nodes, "node") + " "
	if others := int(t.Status.OtherNodes); others > 0 { // the price is not theirs
		nodes = fmt.Sprintf("%d of %s:", t.Nodes-others, plural(t.Nodes, "node"))
	}
	money := fmt.Sprintf("%s %s/h  %s/month", nodes, dollars(t.HourlyCost), cents(t.MonthlyCost))
	health := "nap ok"
	switch {
	case t.Assuming != "":
		health = ""
	case t.Silent:
		health = "nap silent for " + t.ago(t.Status.Written.Time)
	case t.Status.Health.Buying != "":
		health = "nap buys nothing"
	}
	azure := ""
	if a := t.Status.Health.Azure; a != "" {
		azure = "Azure ok"
		if a != "ok" {
			azure = "Azure out"
		}
	}
	var parts []string
	for _, part := range []string{where, health, azure} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	left := clip(strings.Join(parts, "  "), screenColumns-len(money)-2)
	t.lines = append(t.lines, t.ink.bold(left)+strings.Repeat(" ", max(2, screenColumns-len([]rune(left))-len(money)))+money)
	for _, trouble := range []string{t.Status.Health.Buying, t.Status.Health.Azure, t.Status.Health.Prerequisites} {
		if trouble != "" && trouble != "ok" {
			t.add("  %s", trouble)
		}
	}
	if t.Silent {
		t.add("  its last word is of %s; see: kubectl get pods -A -l app.kubernetes.io/name=nap", t.Status.Written.UTC().Format(time.RFC3339))
	}
}

// leastRoom are the lines that the table of NodePools has in any case: its header, one NodePool, and
// how many more there are.
const leastRoom = 3

// pools are a table of the NodePools, the largest first: as many as there is room for, in lines.
func (t *statusScreen) pools(room int) {
	pools := slices.Clone(t.Status.NodePools)
	slices.SortStableFunc(pools, func(x, y v1alpha1.NodePoolState) int {
		return cmp.Or(cmp.Compare(y.Nodes, x.Nodes), cmp.Compare(x.Name, y.Name))
	})
	if len(pools) == 0 {
		t.add("No NodePool: nothing is bought. See docs/install.md, or: nap doctor")
		return
	}
	beside := t.besidePools(pools)
	beside = beside[:min(len(beside), max(0, room-leastRoom))]
	rows := min(mostPools, room-1-len(beside))
	if rows < len(pools) { // one line says how many more there are
		rows = max(1, min(mostPools, room-2-len(beside)))
	}
	rows = min(rows, len(pools))
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODEPOOL\tNODES\tCPU\tMEMORY\tLIMIT\t$/H\tSPOT\tMOVES")
	for i := range pools[:rows] {
		p := &pools[i]
		moves := 0
		for j := range t.Status.Moves {
			if slices.Contains(t.Status.Moves[j].NodePools, p.Name) {
				moves++
			}
		}
		underWay := fmt.Sprint(moves)
		if t.Status.Engine == engineKarpenter {
			underWay = "-"
		}
		spot := "-"
		if p.Nodes > 0 {
			spot = fmt.Sprintf("%d%%", 100*p.SpotNodes/p.Nodes)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", clip(p.Name, 24), p.Nodes, percentText(p.CPUPercent), percentText(p.MemoryPercent),
			cellText(limitText(p.Limits)), cmp.Or(p.HourlyCost, "0.000"), spot, underWay)
	}
	w.Flush()
	for line := range strings.Lines(text.String()) {
		t.add("%s", strings.TrimRight(line, " \n"))
	}
	if more := len(pools) - rows; more > 0 {
		t.add("... and %s: nap get pools", plural(more, "more NodePool"))
	}
	for _, line := range beside {
		t.add("%s", line)
	}
}

// besidePools are the lines that follow the table of NodePools where there is room: what is special
// about the first of them, and nodes that belong to none.
func (t *statusScreen) besidePools(pools []v1alpha1.NodePoolState) []string {
	var out []string
	for i := range pools[:min(mostPools, len(pools))] {
		if note := noteOf(&pools[i]); note != "" && len(out) < mostNotes {
			out = append(out, clip(pools[i].Name, 24)+": "+note)
		}
	}
	if n := t.Status.OtherNodes; n > 0 {
		out = append(out, plural(int(n), "node")+" of no NodePool: nap savings says what nap would cost")
	}
	return out
}

// noteOf is what is special about a NodePool.
func noteOf(p *v1alpha1.NodePoolState) string {
	switch {
	case p.Frozen != "":
		return "frozen " + p.Frozen
	case p.Why != "":
		return "buys nothing: " + p.Why
	}
	return ""
}

func percentText(p *int32) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprintf("%d%%", *p)
}

// limitText is the first limit of dollars per hour, cpu, memory and nodes that there is, or
// empty.
func limitText(limits map[string]string) string {
	if text := limits[snapshot.LimitDollars]; text != "" { // such as $9.120/$12.500/h
		return strings.Replace(text, "/h of ", "/", 1)
	}
	for _, name := range []string{"cpu", "memory", "nodes"} {
		if text := limits[name]; text != "" {
			return strings.Replace(text, " of ", "/", 1) + " " + name
		}
	}
	return ""
}

// pending are the workloads that wait, with the command that says more.
func (t *statusScreen) pending() {
	s := &t.Status
	if s.PendingPods == 0 {
		t.add("PENDING  none")
		return
	}
	for i := range s.Pending[:min(mostPending, len(s.Pending))] {
		w := &s.Pending[i]
		t.add("PENDING  %s of %s: %s", plural(int(w.Pods), "pod"), w.Workload, cmp.Or(w.Reason, w.Message))
		t.add("         -> nap explain pod %s", w.Pod)
	}
	if more := len(s.Pending) - mostPending; more > 0 {
		t.add("         ... and %s: nap plan", plural(more, "more workload"))
	}
}

// machines says what is on its way.
func (t *statusScreen) machines() {
	s := &t.Status
	if len(s.Machines) == 0 {
		t.add("BUYING   nothing on its way")
		return
	}
	first := &s.Machines[0]
	line := fmt.Sprintf("BUYING   %s; %s (%s) for %s",
		plural(len(s.Machines), "machine"), first.NodeClaim, first.Stage, t.ago(first.Ordered.Time))
	if s.UsualBootSeconds > 0 {
		line += fmt.Sprintf(", usually %s", model.FormatDuration(time.Duration(s.UsualBootSeconds)*time.Second))
	}
	if first.GivenUp != nil {
		line += fmt.Sprintf(", given up at %s", first.GivenUp.UTC().Format("15:04Z"))
	}
	if t.add("%s", line); first.Trouble != "" {
		t.add("         %s", first.Trouble)
	}
}

// moves says what is being removed.
func (t *statusScreen) moves() {
	if t.Status.Engine == engineKarpenter {
		t.add("MOVES    not known with --engine=karpenter, but: kubectl get nodeclaims")
		return
	}
	if len(t.Status.Moves) == 0 {
		t.add("MOVES    none")
		return
	}
	first := &t.Status.Moves[0]
	t.add("MOVES    %d, %s; %s (%s), %s for %s", len(t.Status.Moves), plural(t.EvictionsNow, "eviction"),
		first.Node, first.Reason, first.Stage, t.ago(first.Begun.Time))
}

// leaving says which nodes are on their way out, and what blocks the oldest of those that are
// blocked, or else what the oldest of those waits for of which that is known.
func (t *statusScreen) leaving() {
	leaving := t.Status.Leaving
	if len(leaving) == 0 {
		return
	}
	at := slices.IndexFunc(leaving, func(n v1alpha1.LeavingNode) bool { return n.BlockedBy != "" })
	if at < 0 {
		at = max(0, slices.IndexFunc(leaving, func(n v1alpha1.LeavingNode) bool { return n.WaitsFor != "" }))
	}
	told := &leaving[at]
	name := cmp.Or(told.Node, told.NodeClaim)
	t.add("LEAVING  %s, the oldest for %s", plural(len(leaving), "node"), t.ago(leaving[0].Since.Time))
	why := cmp.Or(told.BlockedBy, told.WaitsFor)
	if why == "" {
		return
	}
	t.add("         %s: %s", name, why)
	t.add("         -> %s", t.offered("nap explain node "+name))
}

// market says what Azure refuses, and the scarcest quota.
func (t *statusScreen) market() {
	s := &t.Status
	if n := int(s.RefusedOfferings); n > 0 && len(s.Refusals) > 0 {
		next := slices.MinFunc(s.Refusals, func(x, y v1alpha1.Refusal) int { return x.Until.Compare(y.Until.Time) })
		t.add("REFUSED  %d; %s (%s), asked again at %s", n,
			cmp.Or(next.Size, next.Family, next.Kind, "every size"), next.Why, next.Until.UTC().Format("15:04Z"))
	}
	if len(s.Quotas) > 0 {
		q := slices.MinFunc(s.Quotas, func(x, y v1alpha1.QuotaLine) int { return cmp.Compare(x.Limit-x.Used, y.Limit-y.Used) })
		if q.Limit > 0 && 10*q.Used >= 8*q.Limit {
			t.add("QUOTA    %s: %d of %d vCPUs used", q.Name, q.Used, q.Limit)
		}
	}
	if s.Prices.SpotEstimated {
		t.add("PRICES   %s", s.Prices.Source)
	}
}

// last says what was planned and moved last.
func (t *statusScreen) last() {
	s := &t.Status
	if p := s.LastPlan; p != nil {
		t.add("LAST     plan %s, %s ago: %s for %s, $%s/h", p.ID, t.ago(p.At.Time), plural(int(p.NewNodes), "node"), plural(int(p.Pods), "pod"),
			p.HourlyCost)
	}
	if len(s.LastMoves) > 0 {
		m := &s.LastMoves[0]
		line := fmt.Sprintf("         move %s (%s), %s ago: %s", m.ID, m.Reason, t.ago(m.Ended.Time), m.Stage)
		if m.Why != "" {
			line += ": " + m.Why
		}
		t.add("%s", line)
	}
	if t.Assuming == "" {
		t.add("written %s ago", t.ago(s.Written.Time))
	}
}

// sortedPending are the workloads, the largest first.
func sortedPending(byOwner map[string]*v1alpha1.PendingWorkload) []v1alpha1.PendingWorkload {
	var out []v1alpha1.PendingWorkload
	for _, owner := range slices.Sorted(maps.Keys(byOwner)) {
		out = append(out, *byOwner[owner])
	}
	slices.SortStableFunc(out, func(x, y v1alpha1.PendingWorkload) int { return cmp.Compare(y.Pods, x.Pods) })
	return out
}
