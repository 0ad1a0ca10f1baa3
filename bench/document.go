package bench

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/nodeautoprovision/nap/bench/fleets"
)

// Summary is one line about a workload for a person who waits.
func (r *Row) Summary() string {
	s := fmt.Sprintf("%-26s nap: read %s, first %s ($%.2f), final %s ($%.2f, %s of bound), %d classes, %d nodes, %d pending",
		r.Name, duration(r.Nap.Read), duration(r.Nap.First), r.Nap.FirstCost, duration(r.Nap.Final), r.Nap.Cost, over(r.Nap.Cost, r.Nap.Bound),
		r.Nap.Classes, r.Nap.Nodes, r.Nap.Unschedulable)
	if k := r.Karpenter; k != nil {
		s += fmt.Sprintf("; karpenter: %s, $%.2f, %d nodes, %d pending", duration(k.Final), k.Cost, k.Nodes, k.Unschedulable)
	}
	return s
}

// WriteDocument writes the tables as a page, with what it takes to read them.
func WriteDocument(w io.Writer, date string, s Settings, rows []*Row, given []*fleets.Row, lived []*fleets.LivedRow) error {
	_, err := fmt.Fprintf(w, `# Benchmarks

Made by `+"`make bench`"+` on %s; do not edit. Both engines ran in one process, one
after the other, on the same objects.

Machine: %s, %d cores, %s, %s/%s. Karpenter: %s, one worker per core.

- first plan, final plan: from Kubernetes objects in memory to the plan, the
  median of %d runs for nap, of up to %d where the first plan is short. The final
  plan has a budget of %s for improvement after the first one. Karpenter makes one
  plan, once, and was stopped after %s. It reads objects from an index in memory, as
  in its own controller.
- allocs: allocations of the run to the final plan. peak heap: what the run adds
  to the heap at most, garbage included.
- $/h: every new node at its cheapest offering. over bound: cost divided by the
  lower bound that nap proves for the same pods.
- pending: pods without a place.
- karpenter, 5 workers: as its own benchmark of these pods runs it, whatever the
  number of cores.
- The independent checker accepted every plan of nap: places, prices and limits
  always, topology up to %d pods.

%s`, date, processor(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		karpenterVersion(), s.Repeat, max(s.Repeat, mostPlans), s.Budget, s.UpstreamTimeout, fullCheck, s.scope())
	if err != nil {
		return err
	}
	if err := WriteTable(w, rows); err != nil {
		return err
	}
	if _, err := fmt.Fprint(w, "\n## Workloads\n\n"); err != nil {
		return err
	}
	for _, r := range rows {
		if _, err := fmt.Fprintf(w, "- %s: %d pods in %d classes; %s\n", r.Name, r.Pods, r.Nap.Classes, r.About); err != nil {
			return err
		}
	}
	if err := writeTimes(w, rows); err != nil {
		return err
	}
	if err := writeFleetSection(w, given); err != nil {
		return err
	}
	return writeChurnSection(w, lived)
}

// scope says what of the benchmark the page leaves out, and how busy the machine
// was.
func (s Settings) scope() string {
	var b strings.Builder
	if s.Only != "" {
		fmt.Fprintf(&b, "Only the workloads that match `%s` were measured.\n\n", s.Only)
	}
	if s.Pods > 0 {
		fmt.Fprintf(&b, "Every workload was shrunk to about %d pods.\n\n", s.Pods)
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		fields := strings.Fields(string(load))
		fmt.Fprintf(&b, "Load average of the last 15 minutes, the benchmark's own included, at the end: %s.\n\n", fields[2])
	}
	return b.String()
}

// processor is the model name that Linux tells, or the architecture.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(info)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return runtime.GOARCH
}

func karpenterVersion() string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, m := range info.Deps {
			if m.Path == "sigs.k8s.io/karpenter" {
				return m.Version
			}
		}
	}
	return "unknown version"
}
