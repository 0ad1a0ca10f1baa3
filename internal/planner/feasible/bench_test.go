package feasible

import (
	"fmt"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// manyPools is a problem of one pod and NodePools of tenants, which share a catalogue of 600
// sizes in three zones, on demand and spot, and have limits.
func manyPools(pools int) *model.Problem {
	axes := model.NewAxes()
	amounts := func(cpu int64) model.Resources {
		r := make(model.Resources, len(axes))
		r[model.CPU], r[model.Memory], r[model.Pods] = cpu*1000, cpu<<32, 110
		return r
	}
	p := &model.Problem{Axes: axes, Catalogs: make([]model.Catalog, 1)}
	for f := range 60 {
		family := fmt.Sprintf("family-%d", f)
		p.Quotas = append(p.Quotas, model.Quota{Name: family, Left: 1000})
		for s := range 10 {
			cpu := int64(2 << (s % 7))
			t := model.InstanceType{Name: fmt.Sprintf("%s-%d", family, s), Capacity: amounts(cpu)}
			for z := range 3 {
				for _, c := range []model.CapacityType{model.OnDemand, model.Spot} {
					t.Offerings = append(t.Offerings, model.Offering{
						Zone: fmt.Sprintf("eastus-%d", z+1), CapacityType: c, Price: model.USD(float64(cpu) * 0.05), Available: true,
						Quotas: []model.QuotaUse{{Quota: family, Amount: cpu}, {Quota: "all", Amount: cpu}},
					})
				}
			}
			p.Catalogs[0].InstanceTypes = append(p.Catalogs[0].InstanceTypes, t)
		}
	}
	p.Quotas = append(p.Quotas, model.Quota{Name: "all", Left: 10000})
	for i := range pools {
		p.Pools = append(p.Pools, model.Pool{
			Name: fmt.Sprintf("tenant-%03d", i), NodeLimit: -1, Limits: []model.Limit{{Axis: model.CPU, Value: 1 << 40}},
			Labels: map[string]string{"tenant": fmt.Sprint(i)},
		})
	}
	p.Classes = []model.PodClass{{Pods: []model.PodRef{{Namespace: "default", Name: "one"}}, Requests: amounts(1)}}
	return p
}

// BenchmarkNew compiles the problem of one pod in a cluster of 60 NodePools.
func BenchmarkNew(b *testing.B) {
	p := manyPools(60)
	b.ReportAllocs()
	for b.Loop() {
		s := New(p, nil)
		b.ReportMetric(float64(len(s.Options)), "options")
	}
}
