package conformance

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Phase is what a spec of suite performance has measured in one of its phases. The suite
// writes it as JSON into the folder that the variable OUTPUT_DIR names.
type Phase struct {
	// Name is the suite's own, for instance "Scale Out Test".
	Name string `json:"name"`
	// Seconds is how long the phase took.
	Seconds float64 `json:"seconds"`
	Pods    int     `json:"pods"`
	Nodes   int     `json:"nodes"`
	// Disrupted counts the pods that were drained meanwhile.
	Disrupted int `json:"disrupted"`
	// CPUUse and MemoryUse are the requests of pods as a share of what nodes have to give,
	// the mean over nodes, from 0 to 1.
	CPUUse    float64 `json:"cpuUse"`
	MemoryUse float64 `json:"memoryUse"`
	// Memory is the most that the controller had resident and Heap the 95th percentile of
	// its live heap, in the suite's megabytes, of 1024 times 1024 bytes.
	Memory float64 `json:"memory"`
	Heap   float64 `json:"heap"`
	// Cores is the mean processor time that the controller took in a second.
	Cores float64 `json:"cores"`
}

// phaseReport is what of a report of the suite is read.
type phaseReport struct {
	Name      string        `json:"test_name"`
	Took      time.Duration `json:"total_time"`
	At        time.Time     `json:"timestamp"`
	Pods      int           `json:"total_pods"`
	Nodes     int           `json:"total_nodes"`
	Disrupted int           `json:"pods_disrupted"`
	CPUUse    float64       `json:"total_reserved_cpu_utilization"`
	MemoryUse float64       `json:"total_reserved_memory_utilization"`
	Memory    float64       `json:"karpenter_max_memory_mb"`
	Heap      float64       `json:"karpenter_p95_heap_mb"`
	Cores     float64       `json:"karpenter_avg_cpu_cores"`
}

// readPhases reads the reports in a folder, in the order in which the phases ended.
func readPhases(dir string) ([]Phase, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*_performance_report.json"))
	if err != nil {
		return nil, fmt.Errorf("find reports of phases: %w", err)
	}
	var reports []phaseReport
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the report of a phase: %w", err)
		}
		var r phaseReport
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("read the report of a phase, %s: %w", path, err)
		}
		reports = append(reports, r)
	}
	slices.SortFunc(reports, func(a, b phaseReport) int { return a.At.Compare(b.At) })
	var out []Phase
	for _, r := range reports {
		out = append(out, Phase{
			Name: r.Name, Seconds: rounded(r.Took.Seconds(), 1), Pods: r.Pods, Nodes: r.Nodes, Disrupted: r.Disrupted,
			CPUUse: rounded(r.CPUUse, 3), MemoryUse: rounded(r.MemoryUse, 3),
			Memory: rounded(r.Memory, 0), Heap: rounded(r.Heap, 0), Cores: rounded(r.Cores, 3),
		})
	}
	return out, nil
}

// rounded has so many digits behind the point.
func rounded(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}

// phases is the table of what a suite's specs have measured, empty where none has.
func (r *Record) phases(s Suite) string {
	var out strings.Builder
	for _, spec := range r.Specs[s.Name] {
		for _, engine := range []string{EngineNap, EngineKarpenter} {
			result, _ := r.Of(s.Name, engine, spec)
			for _, p := range result.Phases {
				fmt.Fprintf(&out, "| %s | %s | %s | %.1f s | %d | %d | %d | %.0f%% | %.0f%% | %.0f MB | %.0f MB | %.2f |\n",
					inCell(spec), inCell(p.Name), engine, p.Seconds, p.Pods, p.Nodes, p.Disrupted,
					100*p.CPUUse, 100*p.MemoryUse, p.Memory, p.Heap, p.Cores)
			}
		}
	}
	if out.Len() == 0 {
		return ""
	}
	return "\nWhat the specs measured, by the suite's own reports: memory is the most that the controller had resident, " +
		"heap the 95th percentile of its live heap, cores its mean processor time per second.\n\n" +
		"| spec | phase | engine | time | pods | nodes | pods moved | CPU in use | memory in use | memory | heap | cores |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|\n" + out.String()
}
