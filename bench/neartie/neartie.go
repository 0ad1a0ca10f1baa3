// Package neartie measures what the planner pays for fewer machines: it plans the
// workloads of the benchmark, with disks in the prices, with and without the last step
// that joins machines.
package neartie

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/workload"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/portfolio"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

// mostOrdered is up to how many pods the checker looks for an order of all pods.
const mostOrdered = 5_000

// Row is what was found for one workload.
type Row struct {
	Name string
	Pods int
	// Cheapest is the plan without the step, Fewer the one with it.
	Cheapest, Fewer Plan
}

// Plan is what a plan buys.
type Plan struct {
	Machines    int
	Cost, Bound model.Money
}

// Measure plans a workload twice, with the work that fits into about the effort. Every
// node has a managed disk of this price.
func Measure(ctx context.Context, w *workload.Workload, disk model.Money, effort time.Duration) (*Row, error) {
	in, err := w.Build(0)
	if err != nil {
		return nil, err
	}
	out := &Row{Name: w.Name, Pods: in.Pods()}
	if out.Cheapest, err = solve(ctx, in, portfolio.Standard().Cheapest(), disk, effort); err != nil {
		return nil, fmt.Errorf("%s: %w", w.Name, err)
	}
	if out.Fewer, err = solve(ctx, in, portfolio.Standard(), disk, effort); err != nil {
		return nil, fmt.Errorf("%s: %w", w.Name, err)
	}
	return out, nil
}

func solve(ctx context.Context, in *workload.Input, f *portfolio.Portfolio, disk model.Money, effort time.Duration) (Plan, error) {
	stated, err := bench.NewNap(in, model.Policy{Budget: effort}).State(ctx)
	if err != nil {
		return Plan{}, err
	}
	p := stated.Problem
	for i := range p.Catalogs {
		addDisks(&p.Catalogs[i], disk)
	}
	plan := planner.SolveBy(p, f)
	check := verify.Check
	if p.PodCount() > mostOrdered {
		check = verify.CheckPlaces
	}
	if wrong := check(p, plan); len(wrong) > 0 {
		return Plan{}, fmt.Errorf("the plan breaks %d rules, the first: %s", len(wrong), wrong[0])
	}
	return Plan{Machines: len(plan.NewNodes), Cost: plan.Cost, Bound: plan.LowerBound}, nil
}

// addDisks gives the nodes of every offering a disk.
func addDisks(c *model.Catalog, price model.Money) {
	for i := range c.InstanceTypes {
		for j := range c.InstanceTypes[i].Offerings {
			o := &c.InstanceTypes[i].Offerings[j]
			o.Price += price
			o.DiskPrice += price
		}
	}
}

// Table prints the rows as Markdown, with their sum.
func Table(rows []*Row) (string, error) {
	var b strings.Builder
	var lines [][]string
	sum := Row{Name: "all"}
	for _, r := range rows {
		lines = append(lines, r.line())
		sum.Pods += r.Pods
		sum.Cheapest.add(&r.Cheapest)
		sum.Fewer.add(&r.Fewer)
	}
	lines = append(lines, sum.line())
	head := []string{"workload", "pods", "machines", "$/h", "over bound", "fewer: machines", "$/h", "over bound", "paid"}
	err := bench.Markdown(&b, head, lines)
	return b.String(), err
}

func (p *Plan) add(o *Plan) {
	p.Machines += o.Machines
	p.Cost += o.Cost
	p.Bound += o.Bound
}

func (r *Row) line() []string {
	over := func(p *Plan) string { return fmt.Sprintf("%.4f", float64(p.Cost)/float64(max(1, p.Bound))) }
	paid := 100 * (float64(r.Fewer.Cost)/float64(max(1, r.Cheapest.Cost)) - 1)
	return []string{
		r.Name, fmt.Sprint(r.Pods), fmt.Sprint(r.Cheapest.Machines), fmt.Sprintf("%.2f", r.Cheapest.Cost.Dollars()), over(&r.Cheapest),
		fmt.Sprint(r.Fewer.Machines), fmt.Sprintf("%.2f", r.Fewer.Cost.Dollars()), over(&r.Fewer), fmt.Sprintf("%.2f%%", paid),
	}
}
