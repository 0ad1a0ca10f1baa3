package bench

import (
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/bench/workload"
	"github.com/nodeautoprovision/nap/internal/model"
)

// BenchmarkFirstPlan times what the tables call the first plan, from objects to a
// feasible plan, and reading alone. Beside the mean it tells the fastest run,
// which says more on a busy machine.
func BenchmarkFirstPlan(b *testing.B) {
	for _, name := range []string{"diverse-100/", "diverse-1000/", "diverse-10000/", "diverse-20000/",
		"W0/DEF$", "W2/DEF$", "W3/DEF$", "W6/DEF$", "W6/DEFspot$", "deployments-50000/DEF$"} {
		chosen, err := workload.Select("^" + name)
		if err != nil {
			b.Fatal(err)
		}
		in, err := chosen[0].Build(0)
		if err != nil {
			b.Fatal(err)
		}
		n := NewNap(in, model.Policy{})
		measure := func(part string, plan bool) {
			b.Run(chosen[0].Name+"/"+part, func(b *testing.B) {
				b.ReportAllocs()
				fastest := time.Hour
				for b.Loop() {
					begin := time.Now()
					stated, err := n.State(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					if plan {
						n.Solve(stated, 0)
					}
					fastest = min(fastest, time.Since(begin))
				}
				b.ReportMetric(float64(fastest.Microseconds())/1000, "fastest-ms")
			})
		}
		measure("read", false)
		measure("whole", true)
	}
}
