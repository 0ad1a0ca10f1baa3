// Package workload holds what the planners are measured on: pods with known
// distributions, the NodePools that buy for them and the catalogues that are
// bought from. Nothing is read from outside the package, and the same name
// always gives the same objects.
//
// Start with [All], which lists the workloads, and [Workload.Build], which makes
// the objects of one.
//
// # Where the numbers come from
//
// W0, W2, W3 and W6 are files: Lists of Deployments that were drawn once from
// the distributions of [Shape], so that results can be compared over the years.
// The others are drawn by seed. The catalogue in data holds 774 Azure sizes
// with the pay-as-you-go prices of eastus of 2026-06-18; spot prices and zones
// are synthetic.
package workload

import (
	"fmt"
	"regexp"

	"github.com/nodeautoprovision/nap/internal/karpenterengine"
)

// Input is a cluster with pods that wait, in the form that both engines read.
type Input = karpenterengine.Input

// Workload is one line of the benchmark.
type Workload struct {
	// Name is "workload/pools"; Pods is how many pods it has at full size.
	Name string
	Pods int
	// About says in one line what is in it.
	About string
	// Workers is with how many workers Karpenter's own benchmark of these pods runs
	// it, whatever the cores; zero if it has none.
	Workers int

	build func(pods int) (*Input, error)
}

// Build makes the objects. With pods greater than zero and less than Pods, the
// workload shrinks to about that many while its classes stay what they are.
func (w *Workload) Build(pods int) (*Input, error) {
	if pods <= 0 || pods > w.Pods {
		pods = w.Pods
	}
	in, err := w.build(pods)
	if err != nil {
		return nil, fmt.Errorf("build workload %s: %w", w.Name, err)
	}
	return in, nil
}

// All lists the workloads in the order of the table.
func All() []Workload {
	var all []Workload
	for _, pools := range []string{"DEF64", "DEF", "DEFspot"} {
		all = append(all,
			file("W0", pools, 1_000, "100 deployments, lognormal requests"),
			file("W2", pools, 10_000, "200 deployments, lognormal requests"),
			file("W3", pools, 10_000, "500 deployments: 60% zonal spread, 25% hostname anti-affinity, 15% pinned to a zone"),
			file("W6", pools, 100, "20 deployments, lognormal requests"),
		)
	}
	for _, pods := range []int{100, 1_000, 10_000, 20_000} {
		all = append(all, diverse(pods))
	}
	big := Shape{Seed: 50, Deployments: 400}
	for _, pools := range []string{"DEF64", "DEF"} {
		all = append(all, drawn("deployments-50000", pools, 50_000, "400 deployments, lognormal requests", big.Deploy))
	}
	return append(all,
		drawn("W2-reseeded", "DEF64", 10_000, "requests as W2, another seed and flatter replicas", Shape{Seed: 7, Deployments: 200}.Deploy),
		drawn("W3-reseeded", "DEF64", 10_000, "rules as W3, another seed and flatter replicas",
			Shape{Seed: 8, Deployments: 500, Constrained: true}.Deploy),
		drawn("heavy-tails", "DEF64", 10_000, "1,000 deployments, a few with most of the pods, Pareto requests", heavyTails),
		drawn("identical", "DEF64", 10_000, "one deployment", identical),
		drawn("gpu-and-cpu", "all", 5_000, "150 deployments, one in five asks for GPUs", gpuAndCPU),
	)
}

// Select returns the workloads whose names match the pattern.
func Select(pattern string) ([]Workload, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: must be a regular expression: %w", pattern, err)
	}
	var chosen []Workload
	var names []string
	for _, w := range All() {
		names = append(names, w.Name)
		if re.MatchString(w.Name) {
			chosen = append(chosen, w)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("pattern %q: matches no workload, allowed: %v", pattern, names)
	}
	return chosen, nil
}
