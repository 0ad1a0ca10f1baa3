package cli

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/shadowkeeper"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/shadow"
)

// shadowCommand is "nap shadow" before it runs.
type shadowCommand struct {
	streams command.Streams
	now     func() time.Time
	cluster command.Cluster
	since   string
	output  string
	// noHeaders leaves the line of headers out.
	noHeaders bool
}

func newShadow(s command.Streams, now func() time.Time) *cobra.Command {
	c := &shadowCommand{streams: s, now: now}
	cmd := &cobra.Command{
		Use:   "shadow",
		Short: "Say what a cluster has cost under another autoscaler, and what it would have with nap",
		Long: `Read what nap-controller --shadow has written down beside Karpenter, AKS's node
auto-provisioning or the cluster autoscaler: what the nodes have cost, what
nap's plans for the same pods would have, and for pods that waited, what nap
would have bought, and what was bought. Both sides are priced alike: machine,
managed disk and what every node costs beside. Time in which no shadow watched
counts on neither side. The table lists purchases, the latest ones; -o csv lists
hours.

Exit code 0: there is an answer. 1: an error.`,
		Example: `  nap shadow --since 7d
  nap shadow --since 2026-11-16 -o csv > shadow.csv`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.cluster.Add(cmd.Flags())
	cmd.Flags().StringVar(&c.since, "since", "7d", "how far back, in days or hours such as 7d or 24h, or a day such as 2026-11-22")
	addOutput(cmd, &c.output, documentForms("csv"))
	cmd.Flags().BoolVar(&c.noHeaders, "no-headers", false, "leave the line of headers out")
	return cmd
}

func (c *shadowCommand) run(ctx context.Context) error {
	if err := checkOutput(c.output, documentForms("csv")); err != nil {
		return err
	}
	from, err := sinceWhen(c.since, c.now())
	if err != nil {
		return err
	}
	record, err := c.read(ctx)
	if err != nil {
		return err
	}
	report := record.Since(from)
	switch {
	case isDocument(c.output):
		return writeDocument(c.streams.Out, c.output, report)
	case c.output == "csv":
		return writeShadowHours(c.streams.Out, report, c.noHeaders)
	}
	if err := writeShadow(c.streams.Out, report, c.now()); err != nil || len(report.Purchases) == 0 {
		return err
	}
	return shadowPurchases(report).write(c.streams.Out, "table", c.noHeaders)
}

// read reads the record of the cluster.
func (c *shadowCommand) read(ctx context.Context) (*shadow.Record, error) {
	config, err := c.cluster.Config(ctx)
	if err != nil {
		return nil, err
	}
	reader, err := ownKinds(config)
	if err != nil {
		return nil, err
	}
	record, err := shadowkeeper.Read(ctx, reader)
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%w: ask for the right to get shadowreports of nap.azure.com (the ClusterRole nap-view has it)", err)
	case err == nil && record == nil:
		return nil, fmt.Errorf("the cluster has no shadow's report: nap-controller --shadow keeps one (docs/shadow.md); " +
			"nap savings says what a cluster costs now")
	case err != nil:
		return nil, unreadable(&c.cluster, config.Host, err)
	}
	return record, nil
}

// stamp is a moment as the report writes it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }

// writeShadow says in a few lines what both sides cost.
func writeShadow(w io.Writer, r *shadow.Report, now time.Time) error {
	k := inkFor(w)
	var out strings.Builder
	start := r.From
	if r.Began.After(start) {
		start = r.Began
	}
	fmt.Fprintf(&out, "since %s: %.1f h watched, sampled every %s", stamp(start), r.WatchedHours,
		model.FormatDuration(time.Duration(r.EverySeconds*float64(time.Second))))
	if r.UnwatchedHours >= 0.05 {
		fmt.Fprintf(&out, " (%.1f h not, left out)", r.UnwatchedHours)
	}
	out.WriteString("\n")
	if paid, planned := r.Paid.Total(), r.Planned.Total(); r.WatchedHours > 0 {
		verdict := "no less"
		if planned < paid {
			verdict = fmt.Sprintf("%.0f%% less", r.SavedPercent)
		}
		sum := fmt.Sprintf("paid %s; with nap the same pods would have cost %s: %s", cents(paid), cents(planned), verdict)
		out.WriteString(k.bold(sum) + "\n")
		fmt.Fprintf(&out, "proof: no nodes for these requests could have cost less than %s\n", cents(r.Bound))
		fmt.Fprintf(&out, "of that disks: %s and %s; what every node costs beside: %s and %s\n",
			cents(r.Paid.Disk), cents(r.Planned.Disk), cents(r.Paid.Node), cents(r.Planned.Node))
	}
	if s := r.Now; s != nil {
		fmt.Fprintf(&out, "now: %s, %s/h; nap's plan: %s, %s/h", plural(s.Nodes, "node"), dollars(s.Paid.Total()),
			plural(s.PlannedNodes, "node"), dollars(s.Planned.Total()))
		fmt.Fprintf(&out, ", after %s\n", plural(s.Pods, "eviction"))
		if s.Stay > 0 {
			fmt.Fprintf(&out, "not counted: %s of mode system or without a price\n", plural(s.Stay, "node"))
		}
		if late := now.Sub(s.At); late > shadow.Gap(time.Duration(r.EverySeconds*float64(time.Second))) {
			fmt.Fprintf(&out, "the last sample is of %s: does the shadow run?\n", stamp(s.At))
		}
	}
	if r.MostPending > 0 {
		fmt.Fprintf(&out, "without a place in a plan, and left on their nodes: up to %s\n", plural(r.MostPending, "pod"))
	}
	writeShadowPurchases(&out, r)
	for _, note := range r.Notes {
		sayNote(&out, "%s", note)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// writeShadowPurchases sums up what pods that waited would have got.
func writeShadowPurchases(out *strings.Builder, r *shadow.Report) {
	if len(r.Purchases) == 0 {
		return
	}
	planned, bought, machines, got := 0.0, 0.0, 0, 0
	for i := range r.Purchases {
		p := &r.Purchases[i]
		planned += p.PlannedHourly
		bought += p.BoughtHourly
		machines += countOf(p.Planned)
		got += countOf(p.Bought)
	}
	fmt.Fprintf(out, "%s of pods waited:\n  nap would have bought %s, %s/h; bought were %s, %s/h\n", plural(len(r.Purchases), "group"),
		plural(machines, "machine"), dollars(planned), plural(got, "machine"), dollars(bought))
	if r.Dropped > 0 {
		fmt.Fprintf(out, "%s before are not in the record any more\n", plural(r.Dropped, "group"))
	}
}

func countOf(machines []shadow.Machines) int {
	n := 0
	for _, m := range machines {
		n += m.Count
	}
	return n
}

// shadowPurchases are what pods that waited would have got and got.
func shadowPurchases(r *shadow.Report) *listing {
	out := &listing{kind: "purchases", single: "purchase", columns: []listColumn{
		{head: "SINCE"}, {head: "PODS"}, {head: "NAP"}, {head: "$/H"}, {head: "AFTER"}, {head: "BOUGHT"}, {head: "$/H"}, {head: "AFTER"},
	}}
	for i := range r.Purchases {
		p := &r.Purchases[i]
		after := any("-")
		switch {
		case p.First != nil:
			after = max(0, p.First.Sub(p.At)).Round(time.Second)
		case p.Lost:
			after = "?"
		}
		out.rows = append(out.rows, listRow{name: p.Pod, cells: []any{
			p.At.UTC().Format("01-02 15:04"), p.Pods, machinesText(p.Planned), money(p.PlannedHourly),
			max(0, p.Decided.Sub(p.At)).Round(time.Second), machinesText(p.Bought), money(p.BoughtHourly), after,
		}})
	}
	return out
}

// machinesText is what was bought in few letters: the first size, and how many more.
func machinesText(machines []shadow.Machines) string {
	if len(machines) == 0 {
		return "-"
	}
	text := fmt.Sprintf("%d %s", machines[0].Count, strings.TrimPrefix(machines[0].Size, "Standard_"))
	if more := countOf(machines[1:]); more > 0 {
		text += fmt.Sprintf(" +%d", more)
	}
	return text
}

// writeShadowHours prints one line for each hour.
func writeShadowHours(w io.Writer, r *shadow.Report, noHeaders bool) error {
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', 5, 64) }
	rows := [][]string{{
		"hour", "watchedSeconds", "samples", "paid", "paidDisk", "paidNode", "planned", "plannedDisk", "plannedNode", "bound",
		"nodeHours", "plannedNodeHours", "mostPending",
	}}
	if noHeaders {
		rows = nil
	}
	for i := range r.Hours {
		h := &r.Hours[i]
		rows = append(rows, []string{
			h.Start.Format(time.RFC3339), strconv.FormatFloat(h.Seconds, 'f', 0, 64), strconv.Itoa(h.Samples),
			number(h.Paid.Total()), number(h.Paid.Disk), number(h.Paid.Node),
			number(h.Planned.Total()), number(h.Planned.Disk), number(h.Planned.Node), number(h.Bound),
			number(h.NodeHours), number(h.PlannedNodeHours), strconv.Itoa(h.MostPending),
		})
	}
	return csv.NewWriter(w).WriteAll(rows)
}
