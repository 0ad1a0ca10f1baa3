package objects

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/nodeautoprovision/nap/bench"
)

// WriteTable writes a line per measurement, and for each engine with several sizes how its
// figures grow.
func WriteTable(w io.Writer, all []*Figures) error {
	heads := []string{
		"nodes", "pods", "NodePools", "engine", "start to first NodeClaim", "CPU until then", "idle, of a core", "memory", "peak",
		"CPU per changed pod", "one pod to its NodeClaim", "CPU of it", "budgets open to first disruption", "CPU of that", "measured",
	}
	var lines [][]string
	for _, f := range all {
		decision := "none in " + decisionWithin.String()
		if f.Decision > 0 {
			decision = seconds(f.Decision)
		}
		event := "not measurable"
		if f.PerEvent > 0 {
			event = fmt.Sprintf("%.2f ms", 1e3*f.PerEvent.Seconds())
		}
		lines = append(lines, []string{
			fmt.Sprint(f.Nodes), fmt.Sprint(f.Pods), fmt.Sprint(f.Pools), f.Engine, seconds(f.FirstClaim), seconds(f.StartCPU),
			fmt.Sprintf("%.1f%%", 100*f.Idle), megabytes(f.Memory), megabytes(f.Peak), event,
			milliseconds(f.OnePod), milliseconds(f.OnePodCPU), decision, seconds(f.DecisionCPU), f.Date,
		})
	}
	if err := bench.Markdown(w, heads, lines); err != nil {
		return err
	}
	return writeGrowth(w, all)
}

// WriteStandbyTable writes a line per measurement of a second replica.
func WriteStandbyTable(w io.Writer, all []*Standby) error {
	heads := []string{
		"nodes", "pods", "engine", "CPU of its start", "at rest, of a core", "memory", "peak",
		"the first at rest, of a core", "its memory", "measured",
	}
	var lines [][]string
	for _, s := range all {
		lines = append(lines, []string{
			fmt.Sprint(s.Nodes), fmt.Sprint(s.Pods), s.Engine, seconds(s.StartCPU), fmt.Sprintf("%.1f%%", 100*s.Idle),
			megabytes(s.Memory), megabytes(s.Peak), fmt.Sprintf("%.1f%%", 100*s.Leader), megabytes(s.LeaderMemory), s.Date,
		})
	}
	return bench.Markdown(w, heads, lines)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
}
func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }

// writeGrowth writes the exponents of the figures over the number of nodes: 1 is linear.
func writeGrowth(w io.Writer, all []*Figures) error {
	var lines [][]string
	for _, engine := range []string{"nap", "karpenter"} {
		var of []*Figures
		for _, f := range all {
			if f.Engine == engine {
				of = append(of, f)
			}
		}
		if len(of) < 2 {
			continue
		}
		line := []string{engine}
		for _, value := range []func(*Figures) float64{
			func(f *Figures) float64 { return f.FirstClaim.Seconds() },
			func(f *Figures) float64 { return f.StartCPU.Seconds() },
			func(f *Figures) float64 { return float64(f.Memory) },
			func(f *Figures) float64 { return f.DecisionCPU.Seconds() },
		} {
			line = append(line, fmt.Sprintf("%.2f", exponent(of, value)))
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return nil
	}
	if _, err := fmt.Fprint(w, "\nGrowth with the number of nodes, as the exponent of the best fit (1 is linear):\n\n"); err != nil {
		return err
	}
	return bench.Markdown(w, []string{"engine", "start to first NodeClaim", "CPU until then", "memory", "CPU of the decision"}, lines)
}

// exponent is b of the power law a·nodes^b that is nearest to the values, by least squares
// of the logarithms. There must be two sizes at least.
func exponent(of []*Figures, value func(*Figures) float64) float64 {
	var n, sx, sy, sxx, sxy float64
	for _, f := range of {
		x, y := math.Log(float64(f.Nodes)), math.Log(max(value(f), 1e-3))
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
