package race

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/bench"
)

// WriteTable writes a row per course and engine: the median of its turns, and the least
// and the most in brackets.
func WriteTable(w io.Writer, results []*Result) error {
	head := []string{
		"course", "engine", "turns", "first claim", "last claim", "last node", "all running", "longest wait", "machines bought",
		"at the end", "$/h", "CPU", "peak memory", "API requests", "Azure requests",
	}
	var lines [][]string
	results = inOrder(results)
	for len(results) > 0 {
		course, engine := results[0].Course, results[0].Engine
		same := func(r *Result) bool { return r.Course == course && r.Engine == engine }
		var turns []*Result
		for _, r := range results {
			if same(r) {
				turns = append(turns, r)
			}
		}
		results = slices.DeleteFunc(slices.Clone(results), same)
		lines = append(lines, line(course, engine, turns))
	}
	return bench.Markdown(w, head, lines)
}

func names() []string {
	var out []string
	for _, c := range Courses() {
		out = append(out, c.Name)
	}
	return out
}

func line(course, engine string, turns []*Result) []string {
	of := func(format string, value func(*Result) float64) string {
		var values []float64
		for _, r := range turns {
			values = append(values, value(r))
		}
		slices.Sort(values)
		median := values[len(values)/2]
		if len(values) == 1 {
			return fmt.Sprintf(format, median)
		}
		return fmt.Sprintf(format+" ("+format+" to "+format+")", median, values[0], values[len(values)-1])
	}
	// A time that no turn has is left blank: nothing was bought, or no pod waited.
	seconds := func(value func(*Result) time.Duration) string {
		if !slices.ContainsFunc(turns, func(r *Result) bool { return value(r) > 0 }) {
			return ""
		}
		return of("%.1f s", func(r *Result) float64 { return value(r).Seconds() })
	}
	cells := []string{course, engine, fmt.Sprint(len(turns))}
	running := seconds(func(r *Result) time.Duration { return r.AllRunning })
	if engine == Floor {
		return append(cells, "", "", "", running, "", "", "", "", "", "", "", "")
	}
	return append(cells,
		seconds(func(r *Result) time.Duration { return r.FirstClaim }),
		seconds(func(r *Result) time.Duration { return r.LastClaim }),
		seconds(func(r *Result) time.Duration { return r.LastNode }),
		running,
		seconds(func(r *Result) time.Duration { return r.LongestWait }),
		of("%.0f", func(r *Result) float64 { return float64(r.Bought) }),
		of("%.0f", func(r *Result) float64 { return float64(r.Machines) }),
		of("%.3f", func(r *Result) float64 { return r.Cost }),
		seconds(func(r *Result) time.Duration { return r.CPU }),
		of("%.0f MB", func(r *Result) float64 { return float64(r.Peak) / 1e6 }),
		of("%.0f", func(r *Result) float64 { return float64(r.Requests) }),
		of("%.0f", func(r *Result) float64 { return float64(r.AzureCalls) }))
}
