package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/ledgerkeeper"
	"github.com/nodeautoprovision/nap/internal/ledger"
)

// ledgerCommand is "nap ledger" before it runs.
type ledgerCommand struct {
	streams   command.Streams
	now       func() time.Time
	cluster   command.Cluster
	since     string
	by        string
	output    string
	noHeaders bool
}

// What nap ledger lists.
const (
	ledgerCosts     = "costs"
	ledgerPurchases = "purchases"
	ledgerMoves     = "moves"
)

func newLedger(s command.Streams, now func() time.Time) *cobra.Command {
	c := &ledgerCommand{streams: s, now: now}
	cmd := &cobra.Command{
		Use:   "ledger [costs | purchases | moves]",
		Short: "Say what machines have cost, for which pods, and whether the moves have paid",
		Long: `Read what the controller has written down of every machine that it bought and of
every move, for at least 30 days:

  costs      dollars by NodePool, namespace or label (the default)
  purchases  machines, with the planned and the paid price
  moves      removals of nodes, what they saved and what they cost

A node's cost is shared by what its pods request of its CPU, memory and GPUs.
What no pod requests is (idle), the pods of DaemonSets are (daemons), and
machines that are no nodes yet (starting). Days are days in UTC, and --since
counts from the start of its day. Labels are those of --ledger-labels of the
controller. A move has paid when it has saved more than its replacements cost
while both were there.

Exit code 0: there is an answer. 1: an error.`,
		Example: `  nap ledger --since 7d
  nap ledger --by namespace -o csv
  nap ledger moves --since 24h
  nap ledger --since 30d -o html > ledger.html`,
		Args:      checkLedger,
		ValidArgs: []string{ledgerCosts, ledgerPurchases, ledgerMoves},
		RunE: func(cmd *cobra.Command, args []string) error {
			what := ledgerCosts
			if len(args) > 0 {
				what = args[0]
			}
			return c.run(cmd.Context(), what)
		},
	}
	c.cluster.Add(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&c.since, "since", "7d", "how far back, in days or hours such as 7d or 24h, or a day such as 2026-11-22")
	flags.StringVar(&c.by, "by", "pool", "whose costs: pool, namespace or label")
	completeWords(cmd, "by", "pool", "namespace", "label")
	addOutput(cmd, &c.output, rowForms("html"))
	flags.BoolVar(&c.noHeaders, "no-headers", false, "leave the line of headers out")
	return cmd
}

// checkLedger accepts one word at most, of those that there are.
func checkLedger(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return fmt.Errorf("got %s, must be one at most: %s", plural(len(args), "argument"), strings.Join(cmd.ValidArgs, ", "))
	case len(args) == 1 && !slices.Contains(cmd.ValidArgs, args[0]):
		return fmt.Errorf("got %q, allowed: %s", args[0], strings.Join(cmd.ValidArgs, ", "))
	}
	return nil
}

// sinceAtMost is how many days back --since may go, about ten years.
const sinceAtMost = 3660

// sinceWhen is the moment that --since names, which is not after now.
func sinceWhen(since string, now time.Time) (time.Time, error) {
	from, err := readSince(since, now)
	switch {
	case err != nil:
		return time.Time{}, err
	case from.After(now):
		return time.Time{}, fmt.Errorf("--since: got %s, which is still to come, must be a day up to today", since)
	case from.Before(now.AddDate(0, 0, -sinceAtMost)):
		return time.Time{}, fmt.Errorf("--since: got %s, must be at most %d days back", since, sinceAtMost)
	}
	return from, nil
}

func readSince(since string, now time.Time) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, since); err == nil {
		return day, nil
	}
	if days, is := strings.CutSuffix(since, "d"); is {
		// So many days that a date cannot say when are too many in any case.
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		} else if errors.Is(err, strconv.ErrRange) {
			return time.Time{}, fmt.Errorf("--since: got %s, must be at most %d days back", since, sinceAtMost)
		}
	}
	if back, err := time.ParseDuration(since); err == nil && back >= 0 {
		return now.Add(-back), nil
	}
	return time.Time{}, fmt.Errorf("--since: got %q, must be days or hours such as 7d or 24h, or a day such as 2026-11-22", since)
}

func (c *ledgerCommand) run(ctx context.Context, what string) error {
	if err := checkOutput(c.output, rowForms("html")); err != nil {
		return err
	}
	if err := oneOf("by", c.by, "pool", "namespace", "label"); err != nil {
		return err
	}
	from, err := sinceWhen(c.since, c.now())
	if err != nil {
		return err
	}
	books, err := c.read(ctx)
	if err != nil {
		return err
	}
	report := ledger.Sum(books, from)
	switch {
	case isDocument(c.output):
		return writeDocument(c.streams.Out, c.output, report)
	case c.output == "html":
		return ledgerPage.Execute(c.streams.Out, report)
	}
	list := c.listing(what, report)
	if c.output == "table" || c.output == "wide" {
		if err := writeLedgerHead(c.streams.Out, report); err != nil {
			return err
		}
	}
	return list.write(c.streams.Out, c.output, c.noHeaders)
}

// read reads the pages of the cluster.
func (c *ledgerCommand) read(ctx context.Context) ([]*ledger.Book, error) {
	config, err := c.cluster.Config(ctx)
	if err != nil {
		return nil, err
	}
	reader, err := ownKinds(config)
	if err != nil {
		return nil, err
	}
	books, err := ledgerkeeper.Read(ctx, reader)
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%w: ask for the right to list ledgerpages of nap.azure.com (the ClusterRole nap-view has it)", err)
	case meta.IsNoMatchError(err) || err == nil && len(books) == 0:
		return nil, fmt.Errorf("the cluster has no ledger: nap's controller keeps one with --engine=nap; " +
			"nap savings says what a cluster costs now")
	case err != nil:
		return nil, unreadable(&c.cluster, config.Host, err)
	}
	return books, nil
}

func (c *ledgerCommand) listing(what string, r *ledger.Report) *listing {
	switch what {
	case ledgerPurchases:
		return purchasesOf(r, c.now())
	case ledgerMoves:
		return ledgerMovesOf(r)
	}
	rows, head, of := r.NodePools, "NODEPOOL", ""
	switch c.by {
	case "namespace":
		rows, head = r.Namespaces, "NAMESPACE"
	case "label":
		rows, head, of = r.Labels, "VALUE", "LABEL"
	}
	return costsOf(r, rows, head, of)
}

// costsOf are rows of costs with their sum, for labels one for each.
func costsOf(r *ledger.Report, rows []ledger.Share, head, of string) *listing {
	out := &listing{kind: ledgerCosts, single: "cost", columns: []listColumn{
		{head: head}, {head: "MACHINE"}, {head: "DISK"}, {head: "NODE"}, {head: "DOLLARS"}, {head: "SHARE"},
	}}
	if of != "" {
		out.columns = append([]listColumn{{head: of}}, out.columns...)
	}
	total := r.Cost.Total()
	add := func(label, name string, cost ledger.Cost) {
		share := percentage(0)
		if total > 0 {
			share = percentage(100*cost.Total()/total + 0.5)
		}
		row := listRow{name: name, cells: []any{name, paid(cost.Machine), paid(cost.Disk), paid(cost.Node), paid(cost.Total()), share}}
		if of != "" {
			row.cells = append([]any{label}, row.cells...)
		}
		out.rows = append(out.rows, row)
	}
	for _, s := range rows {
		add(s.Of, s.Name, s.Cost)
	}
	if of == "" {
		add("", "total", r.Cost)
	}
	return out
}

// purchasesOf are the machines that were bought.
func purchasesOf(r *ledger.Report, now time.Time) *listing {
	out := &listing{kind: ledgerPurchases, single: "purchase", columns: []listColumn{
		{head: "NODECLAIM"}, {head: "SIZE"}, {head: "FOR"}, {head: "LIVED"}, {head: "PLANNED"}, {head: "PAID"}, {head: "DOLLARS"}, {head: "END"},
		{head: "NODEPOOL", wide: true}, {head: "ZONE", wide: true}, {head: "LAUNCHED", wide: true},
		{head: "MACHINE", wide: true}, {head: "DISK", wide: true}, {head: "NODE", wide: true},
	}}
	for i := range r.Purchases {
		m := &r.Purchases[i]
		until, end, planned := now, "", any(nil)
		if m.Ended != nil {
			until, end = *m.Ended, m.End
		}
		if m.Planned > 0 {
			planned = money(m.Planned)
		}
		bought := "pods"
		if m.Move != "" {
			bought = "move"
		}
		size := strings.TrimPrefix(m.Size, "Standard_")
		if m.CapacityType == "spot" {
			size += " spot"
		}
		out.rows = append(out.rows, listRow{name: m.NodeClaim, cells: []any{
			m.NodeClaim, size, bought, max(0, until.Sub(m.Launched)).Truncate(time.Second),
			planned, money(m.Paid.Total()), paid(m.Cost.Total()), end,
			m.NodePool, zoneText(m.Zone), m.Launched.Format(time.RFC3339), paid(m.Cost.Machine), paid(m.Cost.Disk), paid(m.Cost.Node),
		}})
	}
	return out
}

// ledgerMovesOf are the moves.
func ledgerMovesOf(r *ledger.Report) *listing {
	out := &listing{kind: ledgerMoves, single: "move", columns: []listColumn{
		{head: "MOVE"}, {head: "REASON"}, {head: "NODES"}, {head: "PODS"},
		{head: "PLANNED"}, {head: "REAL"}, {head: "SPENT"}, {head: "SAVED"}, {head: "PAID"},
		{head: "BOUGHT", wide: true}, {head: "STATE", wide: true}, {head: "BEGUN", wide: true},
	}}
	for i := range r.Moves {
		m := &r.Moves[i]
		verdict := "no"
		switch {
		case m.Paid():
			verdict = "yes"
		case m.State == ledger.MoveUnderWay:
			verdict = "under way"
		}
		out.rows = append(out.rows, listRow{name: m.ID, cells: []any{
			m.ID, m.Reason, len(m.Removed), m.Evictions, money(m.Planned), money(m.Realised()), paid(m.Spent), paid(m.Saved), verdict,
			len(m.Bought), m.State, m.Begun.Format(time.RFC3339),
		}})
	}
	return out
}

// writeLedgerHead says in a few lines what the days have cost.
func writeLedgerHead(w io.Writer, r *ledger.Report) error {
	k, t := inkFor(w), &r.Totals
	var out strings.Builder
	out.WriteString(k.bold(fmt.Sprintf("%s from %s to %s; now %s/h", cents(r.Cost.Total()), r.From.Format(time.DateOnly),
		r.To.Format("2006-01-02 15:04Z"), dollars(r.HourlyCost.Total()))) + "\n")
	if r.Began.After(r.From) {
		fmt.Fprintf(&out, "the ledger began at %s\n", r.Began.Format("2006-01-02 15:04Z"))
	}
	fmt.Fprintf(&out, "%s", plural(t.Machines, "machine"))
	if t.Planned > 0 {
		fmt.Fprintf(&out, ", paid %+.1f%% beside the plans", 100*(t.Paid/t.Planned-1))
	}
	if t.Evicted > 0 {
		fmt.Fprintf(&out, ", %d taken back by Azure", t.Evicted)
	}
	if t.Moves > 0 {
		fmt.Fprintf(&out, "\n%s: %d paid, saved %s, cost %s, %s", plural(t.Moves, "move"), t.MovesPaid,
			cents(t.Saved), cents(t.Spent), plural(t.Evictions, "eviction"))
	}
	out.WriteString("\n")
	if n := len(r.Folded); n > 0 {
		folded := 0
		for _, f := range r.Folded {
			folded += f.Machines
		}
		fmt.Fprintf(&out, "%s only in sums: the days had too many\n", plural(folded, "machine"))
	}
	_, err := io.WriteString(w, out.String())
	return err
}
