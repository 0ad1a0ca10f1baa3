package compare

import (
	"fmt"
	"strings"
	"time"
)

// Table prints the rows as a Markdown table. Percentages are how much more the new side
// takes, or tries.
func Table(older, newer string, rounds int, rows []Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Old is %s, new is %s; the least of %d runs of each, in turns, and of trials the most.\n\n", older, newer, rounds)
	b.WriteString("| benchmark | CPU ms old | new | % | ms old | new | % | MB old | new | % " +
		"| allocations old | new | % | trials old | new |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for i := range rows {
		o, n := &rows[i].Old, &rows[i].New
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |", rows[i].Name, pair(ms(o.CPU), ms(n.CPU), "%.2f"), pair(ms(o.Time), ms(n.Time), "%.2f"),
			pair(o.Bytes/1e6, n.Bytes/1e6, "%.2f"), pair(o.Allocs, n.Allocs, "%.0f"))
		if o.Trials+n.Trials > 0 {
			fmt.Fprintf(&b, " %.0f | %.0f |\n", o.Trials, n.Trials)
		} else {
			b.WriteString(" | |\n")
		}
	}
	return b.String()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// pair is an old and a new figure, and the rise in percent.
func pair(older, newer float64, format string) string {
	rise := "0.0"
	if older > 0 {
		rise = fmt.Sprintf("%+.1f", 100*(newer/older-1))
	}
	return fmt.Sprintf(format+" | "+format+" | %s", older, newer, rise)
}
