package scale

import (
	"fmt"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/bench"
)

// Table writes the measurements as the part of docs/scale.md between its marks.
func Table(kept []*Kept, planned, tenants []*Planned, given []*GivenBack) (string, error) {
	var b strings.Builder
	var lines [][]string
	for _, k := range kept {
		lines = append(lines, []string{
			fmt.Sprint(k.Nodes), fmt.Sprint(k.Pods), kilobytes(k.NodeStripped), kilobytes(k.NodeTrimmed), kilobytes(k.NodeMirrored),
			kilobytes(k.PodStripped), kilobytes(k.PodTrimmed), kilobytes(k.PodMirrored), megabytes(k.Former()), megabytes(k.Total()), seconds(k.CPU),
		})
	}
	b.WriteString("Memory of caches and mirror:\n\n")
	err := bench.Markdown(&b, []string{"nodes", "pods", "node, field ownership dropped", "node, trimmed", "node, mirrored",
		"pod, field ownership dropped", "pod, trimmed", "pod, mirrored", "all, field ownership dropped", "all", "CPU of mirroring"}, lines)
	if err != nil {
		return "", err
	}
	b.WriteString("\nFirst plan for pods that all wait:\n\n")
	if err := writePlanned(&b, planned); err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "\nFirst plan for tenants with a NodePool and %d waiting pods each:\n\n", podsPerTenant)
	if err := writePlanned(&b, tenants); err != nil {
		return "", err
	}
	lines = nil
	for _, g := range given {
		lines = append(lines, []string{fmt.Sprint(g.Nodes), seconds(g.CPU), megabytes(float64(g.Peak)), fmt.Sprint(g.Commands)})
	}
	b.WriteString("\nOne decision on a whole fragmented fleet:\n\n")
	heads := []string{"nodes", "CPU, drawing the fleet included", "peak heap, the fleet included", "commands"}
	if err := bench.Markdown(&b, heads, lines); err != nil {
		return "", err
	}
	return b.String(), nil
}

// writePlanned writes a line per plan.
func writePlanned(b *strings.Builder, planned []*Planned) error {
	var lines [][]string
	for _, p := range planned {
		lines = append(lines, []string{
			fmt.Sprint(p.Pods), seconds(p.Read), seconds(p.Plan), megabytes(float64(p.Peak)), fmt.Sprint(p.Machines),
			fmt.Sprint(p.Unschedulable), fmt.Sprintf("%.2f%%", 100*p.Over),
		})
	}
	heads := []string{"pods", "CPU of reading", "CPU of the plan", "peak heap above the objects", "machines", "unschedulable", "over bound"}
	return bench.Markdown(b, heads, lines)
}

func kilobytes(n float64) string     { return fmt.Sprintf("%.2f kB", n/1e3) }
func megabytes(n float64) string     { return fmt.Sprintf("%.0f MB", n/1e6) }
func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
