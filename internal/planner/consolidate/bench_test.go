package consolidate_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
)

// fleets are the fragmented fleets of the benchmarks: 30 percent used, mixed
// sizes. The deployments are few enough to have some ten pods each.
func fleets() []fragmented {
	return []fragmented{
		{nodes: 100, deployments: 60}, {nodes: 500, deployments: 200}, {nodes: 2000, deployments: 400}, {nodes: 5000, deployments: 600},
		{nodes: 500, deployments: 200, budgets: true, spreads: true}, {nodes: 5000, deployments: 600, budgets: true, spreads: true},
		{nodes: 5000, deployments: 600, budgets: true, spreads: true, small: true},
	}
}

// within asks for moves with a budget on the clock.
func within(f *model.DisruptionProblem, budget time.Duration) *model.Commands {
	start := time.Now()
	f.Problem.Policy.Budget, f.Problem.Policy.Elapsed = budget, func() time.Duration { return time.Since(start) }
	return consolidate.Plan(f)
}

// BenchmarkFirstMoves is one answer with a short budget, and what it saves.
func BenchmarkFirstMoves(b *testing.B) {
	for _, fr := range fleets() {
		b.Run(fmt.Sprintf("%+v", fr), func(b *testing.B) {
			f := fr.fleet(b)
			var moves *model.Commands
			for b.Loop() {
				moves = within(f, 30*time.Millisecond)
			}
			b.ReportMetric(float64(len(moves.Commands)), "moves")
			b.ReportMetric(float64(moves.After)/float64(moves.Before), "left")
			b.ReportMetric(float64(moves.Tried), "tried")
		})
	}
}

// BenchmarkConverge asks, makes the moves, and asks again until nothing is
// proposed: with evictions for free and at the usual price.
func BenchmarkConverge(b *testing.B) {
	usual := model.DefaultConsolidationTerms()
	for _, fr := range fleets() {
		for name, terms := range map[string]model.ConsolidationTerms{"free": {Payback: time.Hour}, "usual": usual} {
			b.Run(fmt.Sprintf("%+v/%s", fr, name), func(b *testing.B) {
				f := fr.fleet(b)
				f.Terms = terms
				var c convergence
				for b.Loop() {
					c = converge(f, 20*time.Millisecond*time.Duration(max(1, fr.nodes/1000)))
				}
				within(f, 0)
				f.Problem.Policy.Budget, f.Problem.Policy.Elapsed = 200*time.Millisecond, nil
				bound := consolidate.LowerBound(f)
				b.ReportMetric(float64(c.after)/float64(bound), "cost/bound")
				b.ReportMetric(float64(c.evictions), "evictions")
				b.ReportMetric(float64(podCount(f)), "pods")
				b.ReportMetric(float64(c.rounds), "answers")
				b.ReportMetric(float64(c.moves), "moves")
				b.ReportMetric(float64(c.tried)/c.took.Seconds(), "tried/s")
				b.ReportMetric(c.peak, "MB")
			})
		}
	}
}

type convergence struct {
	after                    model.Money
	rounds, evictions, moves int
	tried                    int64
	took                     time.Duration
	peak                     float64
}

// converge has so much time for the search of every answer.
func converge(f *model.DisruptionProblem, budget time.Duration) convergence {
	var c convergence
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for {
		start := time.Now()
		moves := within(f, budget)
		c.took += time.Since(start)
		c.tried += moves.Tried
		c.rounds++
		if c.rounds == 1 {
			runtime.ReadMemStats(&after)
			c.peak = float64(after.HeapSys-min(after.HeapSys, before.HeapAlloc)) / 1e6
		}
		c.after = moves.After
		if len(moves.Commands) == 0 || c.rounds > 100 {
			return c
		}
		c.evictions += moves.Evictions
		c.moves += len(moves.Commands)
		f = apply(f, moves)
	}
}
