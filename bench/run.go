package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/nodeautoprovision/nap/bench/beside"
	"github.com/nodeautoprovision/nap/bench/workload"
	"github.com/nodeautoprovision/nap/internal/karpenterengine"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Settings say how to measure.
type Settings struct {
	// Only is the pattern that chose the workloads; empty for all of them.
	Only string
	// Pods shrinks every workload to about that many; zero leaves them whole.
	Pods int
	// Budget is nap's time to improve its first plan, Repeat how often it plans.
	Budget time.Duration
	Repeat int
	// SkipUpstream leaves Karpenter out; UpstreamTimeout stops it.
	SkipUpstream    bool
	UpstreamTimeout time.Duration
}

// Row is the outcome of one workload. Karpenter is nil when it was left out.
type Row struct {
	Name, About    string
	Pods           int
	Nap, Karpenter *Figures
	// Own is Karpenter with as many workers as its own benchmark of these pods
	// gives it, which is Workers; nil if there is none.
	Own     *Figures
	Workers int
}

// Run measures one workload.
func Run(ctx context.Context, w *workload.Workload, s Settings) (*Row, error) {
	in, err := w.Build(s.Pods)
	if err != nil {
		return nil, err
	}
	row := &Row{Name: w.Name, About: w.About, Pods: in.Pods()}
	if row.Nap, err = NewNap(in, model.Policy{}).Measure(ctx, s.Budget, s.Repeat); err != nil {
		return nil, fmt.Errorf("workload %s: nap: %w", w.Name, err)
	}
	if s.SkipUpstream {
		return row, nil
	}
	if row.Karpenter, err = measureUpstream(ctx, in, 0, s.UpstreamTimeout); err == nil && w.Workers > 0 {
		row.Workers = w.Workers
		row.Own, err = measureUpstream(ctx, in, w.Workers, s.UpstreamTimeout)
	}
	if err != nil {
		return nil, fmt.Errorf("workload %s: Karpenter: %w", w.Name, err)
	}
	return row, nil
}

func measureUpstream(ctx context.Context, in *workload.Input, workers int, timeout time.Duration) (*Figures, error) {
	s, err := karpenterengine.New(ctx, in, karpenterengine.Options{Workers: workers})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	f := &Figures{}
	var result *karpenterengine.Result
	f.Peak = beside.Peak(10*time.Millisecond, func() {
		begin := settle()
		result, err = s.Solve(ctx)
		f.Final, f.Allocs = begin.since(), begin.allocs()
	})
	if err != nil {
		return nil, err
	}
	f.First, f.Nodes, f.Cost = f.Final, len(result.Nodes), result.Cost
	f.Unschedulable, f.TimedOut = len(result.Unschedulable), result.TimedOut
	return f, nil
}
