package bench

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// columns are the heads of the table. A row of the table is one engine on one
// workload.
var columns = []string{"workload", "pods", "engine", "first plan", "final plan", "allocs",
	"peak heap", "nodes", "$/h", "over bound", "pending", "nap is times faster (first / final)"}

// WriteTable prints the rows as a Markdown table.
func WriteTable(w io.Writer, rows []*Row) error {
	var lines [][]string
	for _, r := range rows {
		lines = append(lines, r.lines()...)
	}
	return Markdown(w, columns, lines)
}

// Markdown prints a table with columns of even width.
func Markdown(w io.Writer, head []string, lines [][]string) error {
	width := make([]int, len(head))
	for _, line := range append([][]string{head}, lines...) {
		for i, cell := range line {
			width[i] = max(width[i], len(cell))
		}
	}
	if err := writeLine(w, head, width); err != nil {
		return err
	}
	rule := make([]string, len(head))
	for i := range rule {
		rule[i] = strings.Repeat("-", width[i])
	}
	if err := writeLine(w, rule, width); err != nil {
		return err
	}
	for _, line := range lines {
		if err := writeLine(w, line, width); err != nil {
			return err
		}
	}
	return nil
}

func writeLine(w io.Writer, cells []string, width []int) error {
	var b strings.Builder
	for i, cell := range cells {
		fmt.Fprintf(&b, "| %-*s ", width[i], cell)
	}
	_, err := fmt.Fprintln(w, b.String()+"|")
	return err
}

func (r *Row) lines() [][]string {
	n := r.Nap
	out := [][]string{{r.Name, fmt.Sprint(r.Pods), "nap", duration(n.First), duration(n.Final), count(n.Allocs), mebibytes(n.Peak),
		fmt.Sprint(n.Nodes), fmt.Sprintf("%.2f", n.Cost), over(n.Cost, n.Bound), fmt.Sprint(n.Unschedulable), ""}}
	if r.Karpenter != nil {
		out = append(out, r.rival("karpenter", r.Karpenter))
	}
	if r.Own != nil {
		out = append(out, r.rival(fmt.Sprintf("karpenter, %d workers", r.Workers), r.Own))
	}
	return out
}

// rival is the line of Karpenter, and how many times faster nap is.
func (r *Row) rival(name string, k *Figures) []string {
	n, gap, final, sign := r.Nap, over(k.Cost, r.Nap.Bound), duration(k.Final), ""
	if k.Unschedulable != n.Unschedulable {
		gap = "other pods"
	}
	if k.TimedOut {
		final, sign = "stopped "+final, "> "
	}
	faster := fmt.Sprintf("%s%.0f / %.0f", sign, ratio(k.Final, n.First), ratio(k.Final, n.Final))
	return []string{"", "", name, "", final, count(k.Allocs), mebibytes(k.Peak),
		fmt.Sprint(k.Nodes), fmt.Sprintf("%.2f", k.Cost), gap, fmt.Sprint(k.Unschedulable), faster}
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

// over is cost as a multiple of the bound.
func over(cost, bound float64) string {
	if bound <= 0 {
		return "no bound"
	}
	return fmt.Sprintf("%.4f", cost/bound)
}

func duration(d time.Duration) string {
	switch {
	case d < 100*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

func count(n uint64) string {
	switch {
	case n < 10_000:
		return fmt.Sprint(n)
	case n < 10_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%dM", n/1_000_000)
}

func mebibytes(n uint64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
