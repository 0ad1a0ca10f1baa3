package binpack

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
)

// catalogue is a price list in the manner of a cloud's: three families with 2, 4
// and 8 GiB per core in several generations, 2 to limit cores, each in zones
// that do not matter here and with spot prices that follow no logic.
func catalogue(limit int, spot bool) []Bin {
	r := rand.New(rand.NewPCG(1, 2))
	var bins []Bin
	for gen := range 6 {
		for family, gib := range []float64{2, 4, 8} {
			perCore := (0.0335 + 0.0044*gib) * (1 + 0.03*float64(gen))
			for _, cores := range []int{2, 4, 8, 16, 32, 48, 64, 96, 128} {
				if cores > limit {
					continue
				}
				memory := gib*float64(cores)*1024*0.93 - 1200 // what the system keeps
				b := Bin{Capacity: []int64{int64(cores*1000 - 60 - 10*cores/4), int64(memory), 110 + int64(family)*70},
					Cost: int64(perCore * float64(cores) * 1e6), Max: -1}
				for range 3 {
					bins = append(bins, b)
					if s := b; spot {
						s.Cost = int64(float64(b.Cost) * (0.12 + 0.4*r.Float64()))
						bins = append(bins, s)
					}
				}
			}
		}
	}
	return bins
}

// workload is pods of deployments: cores lognormal around half a core, memory
// per core lognormal around 3 GiB, replicas exponential.
func workload(pods, deployments, bins int, sigma float64) []Class {
	r := rand.New(rand.NewPCG(3, 4))
	weights, total := make([]float64, deployments), 0.0
	for i := range weights {
		weights[i] = r.ExpFloat64()
		total += weights[i]
	}
	var classes []Class
	for i := range deployments {
		cpu := min(math.Max(50, math.Round(500*math.Exp(sigma*r.NormFloat64())/50)*50), 28000)
		gib := cpu / 1000 * 3 * math.Exp(0.8*r.NormFloat64())
		mem := min(math.Max(64, math.Round(gib*16)*64), 100*1024)
		classes = append(classes, Class{Size: []int64{int64(cpu), int64(mem), 1},
			Count: max(1, int(float64(pods)*weights[i]/total)), Bins: bitset.Full(bins)})
	}
	return classes
}

// exclusive makes every class exclude all others and itself.
func exclusive(classes []Class) []Class {
	for i := range classes {
		classes[i].PerBin, classes[i].Conflicts = 1, []int32{0}
	}
	return classes
}

func benchmarks() map[string]*Problem {
	plain, big, spot := catalogue(64, false), catalogue(128, false), catalogue(128, true)
	make := func(classes []Class, bins []Bin) *Problem {
		return &Problem{Dims: 3, Classes: classes, Bins: bins, Budget: 250 * time.Millisecond, Seed: 1}
	}
	fixed := append([]Bin(nil), plain...)
	r := rand.New(rand.NewPCG(5, 6))
	for range 5000 {
		fixed = append(fixed, Bin{Capacity: []int64{r.Int64N(4000), r.Int64N(16000), 30}, Fixed: true})
	}
	return map[string]*Problem{
		"pods=100/classes=20":            make(workload(100, 20, len(plain), 1), plain),
		"pods=1000/classes=100/spot":     make(workload(1000, 100, len(spot), 1), spot),
		"pods=10000/classes=200":         make(workload(10000, 200, len(plain), 1), plain),
		"pods=10000/classes=200/big":     make(workload(10000, 200, len(big), 1), big),
		"pods=10000/classes=200/spot":    make(workload(10000, 200, len(spot), 1), spot),
		"pods=10000/classes=200/heavy":   make(workload(10000, 200, len(big), 2), big),
		"pods=20000/classes=200":         make(workload(20000, 200, len(plain), 1), plain),
		"pods=50000/classes=400":         make(workload(50000, 400, len(plain), 1), plain),
		"pods=10000/classes=1":           make(workload(10000, 1, len(plain), 1), plain),
		"pods=10000/classes=2000":        make(workload(10000, 2000, len(big), 1), big),
		"pods=2000/classes=2000/exclude": make(exclusive(workload(2000, 2000, len(plain), 1)), plain),
		"pods=10000/fixed=5000":          make(workload(10000, 200, len(fixed), 1), fixed),
		"pods=10000/fixed=5000/2000":     make(workload(10000, 2000, len(fixed), 1), fixed),
	}
}

// BenchmarkSolve reports, besides the time to the end of the budget, the time of
// the first packing with its bound, and the costs of both over the bound.
func BenchmarkSolve(b *testing.B) {
	for name, p := range benchmarks() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var s, first *Solution
			var firstTime time.Duration
			for b.Loop() {
				q := *p
				q.Budget = 0
				start := time.Now()
				first = Solve(&q)
				firstTime += time.Since(start)
				q.Budget = p.Budget
				start = time.Now()
				q.Clock = meter.NewClock(func() time.Duration { return time.Since(start) })
				s = Solve(&q)
			}
			b.ReportMetric(firstTime.Seconds()*1e3/float64(b.N), "first-ms")
			b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N)-firstTime.Seconds()*1e3/float64(b.N), "final-ms")
			b.ReportMetric(ratio(first), "first/bound")
			b.ReportMetric(ratio(s), "final/bound")
		})
	}
}

func ratio(s *Solution) float64 { return float64(s.Cost) / float64(max(1, s.LowerBound)) }

func TestSolveNearBoundWithManySizes(t *testing.T) {
	limits := map[string]float64{
		"pods=100/classes=20": 1.05, "pods=1000/classes=100/spot": 1.03, "pods=10000/classes=200": 1.01,
		"pods=10000/classes=200/heavy": 1.02, "pods=50000/classes=400": 1.015, "pods=10000/classes=1": 1.01,
	}
	all := benchmarks()
	for name, limit := range limits {
		t.Run(name, func(t *testing.T) {
			all[name].Budget = 60 * time.Millisecond
			s := Solve(all[name])
			if err := verify(all[name], s); err != nil {
				t.Fatal(err)
			}
			if r := ratio(s); r > limit {
				t.Errorf("cost is %.4f of the bound, want at most %.3f", r, limit)
			}
		})
	}
}

func TestSolveWorkIsIndependentOfItemCount(t *testing.T) {
	steps := func(times int) int64 {
		bins := catalogue(64, false)
		classes := workload(2000, 50, len(bins), 1)
		for i := range classes {
			classes[i].Count *= times
		}
		return Solve(&Problem{Dims: 3, Classes: classes, Bins: bins}).Steps
	}
	if one, many := steps(10), steps(10000); many > 5*one {
		t.Errorf("%d steps for a thousand times the items, %d before", many, one)
	}
}
