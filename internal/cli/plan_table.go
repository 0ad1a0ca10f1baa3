package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/model"
)

// ink paints words for terminals, and nothing elsewhere or with NO_COLOR set.
type ink struct{ on bool }

func inkFor(w io.Writer) ink {
	return ink{command.IsTerminal(w) && os.Getenv("NO_COLOR") == ""}
}

func (k ink) bold(s string) string { return k.wrap("1", s) }
func (k ink) red(s string) string  { return k.wrap("31", s) }

func (k ink) wrap(code, s string) string {
	if !k.on {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// tableStyle is how tables are written.
type tableStyle struct {
	wide bool
	// noHeaders leaves the headers out.
	noHeaders bool
	ink       ink
}

// verdict is the sentence that an answer begins with.
func (s tableStyle) verdict(format string, args ...any) string {
	var out strings.Builder
	for _, line := range wrapIndented(fmt.Sprintf(format, args...)) {
		out.WriteString(s.ink.bold(line) + "\n")
	}
	return out.String()
}

// planTable writes a plan for people: the price and its proof first, then what
// is bought, what goes where, and what stays pending with what would help.
type planTable struct {
	*planReport
	// moves are the nodes that would be removed beside what is bought, or nil.
	moves *movesReport
	style tableStyle
	// refused says that objects of the input could not be read.
	refused bool
	out     strings.Builder
}

// String writes the whole table.
func (t *planTable) String() string {
	switch {
	case t.scope != "":
		t.out.WriteString(t.style.ink.bold(t.scope) + "\n")
	case t.moves != nil && len(t.moves.Moves) > 0:
		t.change()
	default:
		t.headline()
	}
	for i := range t.StaticNodePools {
		t.say("%s", t.StaticNodePools[i].Message)
	}
	if len(t.Nodes) > 0 {
		t.purchases()
	}
	if len(t.Existing) > 0 {
		t.existing()
	}
	if len(t.Unschedulable) > 0 {
		t.pending()
	}
	if t.moves != nil && len(t.moves.Moves) > 0 {
		moves := &movesTable{movesReport: t.moves, style: t.style}
		moves.moves()
		t.out.WriteString(moves.out.String())
	}
	if t.moves != nil && len(t.moves.Stays) > 0 {
		n := len(t.moves.Stays)
		fmt.Fprintf(&t.out, "\n%s; nap plan --consolidate says why\n", plural(n, "node")+" "+verbFor(n, "stays"))
	}
	return t.out.String()
}

// say writes a sentence as lines that fit the screen, or as one where all is asked for.
func (t *planTable) say(format string, args ...any) {
	if t.style.wide {
		fmt.Fprintf(&t.out, format+"\n", args...)
		return
	}
	t.out.WriteString(prose(format, args...))
}

func (t *planTable) headline() {
	s := &t.Summary
	switch {
	case s.Pods == 0 && t.refused:
		t.out.WriteString(t.style.ink.bold("Nothing planned: no pod is left beside what was refused.") + "\n")
		return
	case s.Pods == 0:
		verdict := "no pod waits for a node"
		if t.moves != nil {
			verdict += ", and no move is worth making"
		}
		if len(t.StaticNodePools) == 0 {
			verdict = "Nothing to do: " + verdict
		}
		t.out.WriteString(t.style.ink.bold(strings.ToUpper(verdict[:1])+verdict[1:]+".") + "\n")
		return
	case s.NewNodes == 0 && s.Unschedulable == 0:
		t.out.WriteString(t.style.ink.bold(fmt.Sprintf("Buy nothing: %s on nodes that exist.", fit(s.Scheduled))) + "\n")
		return
	case s.NewNodes == 0:
		t.out.WriteString(t.style.ink.bold("Buy nothing.") + "\n")
	default:
		t.out.WriteString(t.style.verdict("Buy %s for %s/h, %s/month%s.", plural(s.NewNodes, "node"),
			dollars(s.HourlyCost), cents(s.HourlyCost*model.HoursPerMonth), s.parts()))
		t.proof()
	}
	if s.Unschedulable > 0 {
		pending := t.style.ink.red(plural(s.Unschedulable, "pod") + " " + verbFor(s.Unschedulable, "stays") + " pending")
		fmt.Fprintf(&t.out, "%s a place; %s.\n", get(s.Scheduled), pending)
	}
}

// parts says how much of the cost is not for machines, or nothing.
func (s *planSummary) parts() string {
	var parts []string
	if s.DiskCost > 0 {
		parts = append(parts, dollars(s.DiskCost)+"/h for disks")
	}
	if s.NodeCost > 0 {
		parts = append(parts, dollars(s.NodeCost)+"/h per node")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func (t *planTable) proof() {
	if line := proofLine(t.Summary.LowerBound, t.Summary.GapPercent, t.style.wide); line != "" {
		t.out.WriteString(prose("%s", line))
	}
	if s := &t.Summary; s.SharesCost > 0 {
		t.out.WriteString(prose("%s/h of it is for the caps of what one node may hold.", dollars(s.SharesCost)))
	}
	if s := &t.Summary; s.FewerNodes > 0 {
		t.out.WriteString(prose("%s/h of it is paid for %s fewer than the cheapest plan found has.",
			dollars(s.FewerCost), plural(s.FewerNodes, "node")))
	}
}

// mostTold is the largest gap, in percent, that says anything: a bound further away is
// a weak bound more often than a poor plan.
const mostTold = 10

// proofLine says how near the plan is proven to be to the best there can be. A gap over
// mostTold is told only where all is asked for.
func proofLine(bound, gapPercent float64, all bool) string {
	switch {
	case bound <= 0:
		return ""
	case gapPercent <= 0:
		return "Nothing feasible can cost less: the plan is optimal."
	case gapPercent <= mostTold:
		return fmt.Sprintf("The plan is at most %.2f%% above what is proven possible (%s/h).", gapPercent, dollars(bound))
	case all:
		return fmt.Sprintf("What is proven possible is far below the plan, %s/h: the bound lets pods share parts of machines.", dollars(bound))
	}
	return ""
}

// purchase is all that is bought under one offering.
type purchase struct {
	first *reportNode
	nodes []*reportNode
}

func (t *planTable) purchases() {
	fmt.Fprintf(&t.out, "\n%s\n", t.style.ink.bold("Buy"))
	index := map[string]*purchase{}
	var all []*purchase
	for i := range t.Nodes {
		n := &t.Nodes[i]
		key := fmt.Sprint(n.NodePool, "\x00", n.reportOffering)
		if index[key] == nil {
			index[key] = &purchase{first: n}
			all = append(all, index[key])
		}
		index[key].nodes = append(index[key].nodes, n)
	}
	slices.SortStableFunc(all, func(a, b *purchase) int {
		return cmp.Or(cmp.Compare(a.first.NodePool, b.first.NodePool), -cmp.Compare(a.first.HourlyPrice, b.first.HourlyPrice),
			cmp.Compare(a.first.InstanceType, b.first.InstanceType), cmp.Compare(a.first.Zone, b.first.Zone))
	})
	text := t.purchaseTable(all, func(size string) string { return size })
	if !t.style.wide && columnsOf(text) > screenColumns {
		text = t.purchaseTable(all, shortSize)
	}
	t.out.WriteString(text)
	t.newNodes(all)
}

// purchaseTable is the table of what is bought, with sizes by a name that may be shorter.
func (t *planTable) purchaseTable(all []*purchase, name func(size string) string) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	// A NodePool that all have in common, and memory, are for -o wide: a line fits 80 columns.
	one := !slices.ContainsFunc(all, func(p *purchase) bool { return p.first.NodePool != all[0].first.NodePool })
	line := func(pool, memory string, others ...string) {
		cells := others[:4:4]
		if t.style.wide || !one {
			cells = append(cells, pool)
		}
		cells = append(cells, others[4:6]...)
		if t.style.wide {
			cells = append(cells, memory)
		}
		fmt.Fprintln(w, "  "+strings.Join(append(cells, others[6:]...), "\t"))
	}
	if !t.style.noHeaders {
		line("NODEPOOL", "MEMORY", "COUNT", "SIZE", "ZONE", "CAPACITY", "EACH", "CPU", "PODS")
	}
	for _, p := range all {
		cpu, memory, pods := p.sums()
		line(p.first.NodePool, memory, fmt.Sprint(len(p.nodes)), name(p.first.InstanceType), zoneText(p.first.Zone), p.first.CapacityType,
			dollars(p.first.HourlyPrice)+"/h", cpu, fmt.Sprint(pods))
	}
	w.Flush()
	return out.String()
}

// sums are what the nodes of a purchase take of what they have, together.
func (p *purchase) sums() (cpu, memory string, pods int) {
	var used, room model.Resources
	for _, n := range p.nodes {
		used, room = used.Add(n.requests), room.Add(n.room)
		pods += len(n.Pods)
	}
	cpu = fmt.Sprintf("%s of %s", cores(used.Get(model.CPU)), cores(room.Get(model.CPU)))
	memory = fmt.Sprintf("%s of %s", model.FormatAmount(model.Memory, used.Get(model.Memory)),
		model.FormatAmount(model.Memory, room.Get(model.Memory)))
	return cpu, memory, pods
}

// mostLines is how many lines of one kind the table form shows.
const mostLines = 15

// newNodes says which workloads each new node takes; nodes that take the same
// are told once.
func (t *planTable) newNodes(all []*purchase) {
	fmt.Fprintf(&t.out, "\n%s\n", t.style.ink.bold("New nodes take"))
	var lines []string
	counts := map[string]int{}
	for _, p := range all {
		for _, n := range p.nodes {
			line := fmt.Sprintf("%s: %s", n.InstanceType, t.owned(n.Pods))
			if t.style.wide {
				line = fmt.Sprintf("%s %s %s, %d other offerings would do: %s", n.InstanceType, model.ZoneName(n.Zone), n.CapacityType,
					len(n.fallbacks), strings.Join(n.Pods, " "))
			}
			if counts[line] == 0 {
				lines = append(lines, line)
			}
			counts[line]++
		}
	}
	hidden := 0
	for i, line := range lines {
		if i >= mostLines && !t.style.wide {
			hidden += counts[line]
			continue
		}
		t.say("  %d x %s", counts[line], line)
	}
	if hidden > 0 {
		fmt.Fprintf(&t.out, "  ... and %s; -o wide shows all\n", plural(hidden, "more node"))
	}
}

func (t *planTable) existing() {
	fmt.Fprintf(&t.out, "\n%s\n", t.style.ink.bold("Nodes that exist take"))
	for _, n := range t.Existing {
		t.say("  %s: %s", n.Node, t.owned(n.Pods))
		if t.style.wide {
			fmt.Fprintf(&t.out, "      %s\n", strings.Join(n.Pods, " "))
		}
	}
}

func (t *planTable) pending() {
	fmt.Fprintf(&t.out, "\n%s\n", t.style.ink.bold("Pending"))
	type group struct {
		first *reportPending
		pods  []string
	}
	index := map[string]*group{}
	var groups []*group
	for i := range t.Unschedulable {
		u := &t.Unschedulable[i]
		key := t.owners[u.Pod] + "\x00" + u.Reason + "\x00" + nameless(u.Message, u.Pod)
		if index[key] == nil {
			index[key] = &group{first: u}
			groups = append(groups, index[key])
		}
		index[key].pods = append(index[key].pods, u.Pod)
	}
	for _, g := range groups {
		for _, line := range wrapIndented("  " + t.owned(g.pods)) {
			t.out.WriteString(t.style.ink.red(line) + "\n")
		}
		words := g.first.words
		others := ""
		if why := words.Why; len(g.pods) > 1 && nameless(why, g.first.Pod) != why {
			others = "; so with the others"
		}
		t.say("    %s: %s%s.", g.first.Reason, words.Why, others)
		if words.Nearest != "" {
			t.say("    nearest miss: %s", words.Nearest)
		}
		if words.Fix != "" {
			t.say("    fix: %s", words.Fix)
		}
		if t.style.wide {
			fmt.Fprintf(&t.out, "      %s\n", strings.Join(g.pods, " "))
		}
	}
}

// nameless is a message about a pod without its name, which may be a part of the names of its
// volume claims: what keeps the pods of a StatefulSet then reads the same of all.
func nameless(message, pod string) string {
	_, name, _ := strings.Cut(pod, "/")
	return strings.ReplaceAll(message, name, "\x00")
}

// owned lists pods by their workloads, most pods first. Deployments, which most
// workloads are, go without their kind.
func (t *planTable) owned(pods []string) string {
	counts := map[string]int{}
	var owners []string
	for _, p := range pods {
		o := cmp.Or(t.owners[p], "Pod "+p)
		if counts[o] == 0 {
			owners = append(owners, o)
		}
		counts[o]++
	}
	slices.SortFunc(owners, func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	const most = 6
	var parts []string
	rest := 0
	for i, o := range owners {
		switch {
		case i >= most && !t.style.wide:
			rest += counts[o]
		case strings.HasPrefix(o, "Pod "):
			parts = append(parts, o)
		default:
			parts = append(parts, fmt.Sprintf("%d of %s", counts[o], strings.TrimPrefix(o, "Deployment ")))
		}
	}
	if rest > 0 {
		others := plural(len(owners)-most, "other workload")
		if len(owners)-most == 1 {
			others = "another workload"
		}
		parts = append(parts, fmt.Sprintf("%d of %s", rest, others))
	}
	return strings.Join(parts, ", ")
}

// cores writes milli-cores as cores with at most two decimals.
func cores(milli int64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", float64(milli)/1000), "0"), ".")
}

// zoneText names the zone, or that the machine has none.
func zoneText(zone string) string {
	if zone == model.NoZone {
		return "none"
	}
	return zone
}

// inZone says where a machine is, in a sentence.
func inZone(zone string) string {
	if zone == model.NoZone {
		return "without a zone"
	}
	return "in zone " + zone
}

// dollars writes an amount with three decimals, large ones as cents does.
func dollars(v float64) string {
	if v < 100 {
		return fmt.Sprintf("$%.3f", v)
	}
	return cents(v)
}

// cents writes an amount with two decimals and with commas.
func cents(v float64) string {
	text := fmt.Sprintf("%.2f", v)
	for i := len(text) - 6; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return "$" + text
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func fit(n int) string {
	if n == 1 {
		return "the pod fits"
	}
	return fmt.Sprintf("all %d pods fit", n)
}

func get(n int) string {
	if n == 1 {
		return "1 pod gets"
	}
	return fmt.Sprintf("%d pods get", n)
}
