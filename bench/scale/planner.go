package scale

import (
	"context"
	"fmt"
	"time"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/beside"
	"github.com/nodeautoprovision/nap/bench/fleets"
	"github.com/nodeautoprovision/nap/bench/workload"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Planned is what a first plan for pods that wait has taken. Nothing runs yet.
type Planned struct {
	Pods, Machines, Unschedulable int
	// Read is the CPU time from objects to the stated problem, Plan that of the plan.
	Read, Plan time.Duration
	// Peak is how far the heap rose above the objects, in bytes.
	Peak uint64
	// Over is the share by which the plan costs more than its lower bound.
	Over float64
}

// Plan plans for so many pods, with the work that fits into about the effort.
func Plan(ctx context.Context, pods int, effort time.Duration) (*Planned, error) {
	chosen, err := workload.Select("^deployments-50000/DEF64$")
	if err != nil {
		return nil, err
	}
	drawn := chosen[0]
	drawn.Pods = max(drawn.Pods, pods) // or no more than the benchmark's are built
	in, err := drawn.Build(pods)
	if err != nil {
		return nil, fmt.Errorf("drawing %d pods: %w", pods, err)
	}
	return measurePlan(ctx, bench.NewNap(in, model.Policy{}), in.Pods(), effort)
}

// measurePlan makes the first plan for pods that wait.
func measurePlan(ctx context.Context, n *bench.Nap, pods int, effort time.Duration) (out *Planned, err error) {
	out = &Planned{Pods: pods}
	out.Peak = beside.Peak(time.Millisecond, func() {
		begin := beside.CPU()
		stated, failed := n.State(ctx)
		if failed != nil {
			err = failed
			return
		}
		read := beside.CPU()
		plan := n.SolveSteps(stated, effort)
		out.Read, out.Plan = read-begin, beside.CPU()-read
		out.Machines, out.Over = len(plan.NewNodes), over(plan.Cost.Dollars(), plan.LowerBound.Dollars())
		for _, u := range plan.Unschedulable {
			out.Unschedulable += len(u.Pods)
		}
	})
	return out, err
}

// over is the share by which cost is above bound.
func over(cost, bound float64) float64 {
	if bound <= 0 {
		return 0
	}
	return cost/bound - 1
}

// GivenBack is what one decision on a whole fleet has taken.
type GivenBack struct {
	Nodes int
	// CPU is what the decision took, drawing the fleet and reading its objects included.
	CPU time.Duration
	// Peak is how far the heap rose meanwhile, in bytes.
	Peak uint64
	// Commands are proposed.
	Commands int
}

// GiveBack draws a fragmented fleet and decides once.
func GiveBack(ctx context.Context, nodes int, effort time.Duration) (*GivenBack, error) {
	out := &GivenBack{Nodes: nodes}
	var err error
	out.Peak = beside.Peak(time.Millisecond, func() {
		begin := beside.CPU()
		_, commands, failed := fleets.Decide(ctx, fleets.Fleet{Name: fmt.Sprint("fleet-", nodes), Nodes: nodes}, effort)
		if failed != nil {
			err = failed
			return
		}
		out.CPU, out.Commands = beside.CPU()-begin, len(commands.Commands)
	})
	return out, err
}
