package consolidate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

// A machine that a plan has bought in place of two, for little money, is not replaced by
// the two afterwards, even where a replacement need not save a minimum and evictions cost
// nothing. Where the catalogue does not say what a node costs, it is.
func TestMachineThatStandsForTwoStays(t *testing.T) {
	for _, disk := range []float64{0.02, 0} {
		t.Run(fmt.Sprint("disk of $", disk), func(t *testing.T) {
			p := nearTie(0.02)
			plan := planner.Solve(p)
			if plan.Fewer.Machines != 1 || plan.Fewer.Paid != model.USD(0.01) {
				t.Fatalf("%d machines fewer for %s, expected 1 for $0.010", plan.Fewer.Machines, plan.Fewer.Paid)
			}
			f := bought(p, plan)
			f.Terms = model.ConsolidationTerms{Payback: time.Hour}
			f.Problem.Catalogs = nearTie(disk).Catalogs
			f.Problem.Policy.Budget = 10 * time.Millisecond // in steps: there is no clock
			moves := consolidate.Plan(f)
			for _, v := range verify.CheckMoves(f, moves) {
				t.Error(v)
			}
			if stays := disk > 0; stays != (len(moves.Commands) == 0) {
				t.Errorf("%d commands: %+v", len(moves.Commands), moves.Commands)
			}
		})
	}
}

// nearTie is pods that fill machines, and two pods for which one machine costs a cent more
// than two.
func nearTie(disk float64) *model.Problem {
	p := &model.Problem{Axes: model.NewAxes(), Pools: []model.Pool{{Name: "general", NodeLimit: -1}}, Catalogs: make([]model.Catalog, 1)}
	for _, t := range []struct {
		name          string
		cores, memory int64
		price         float64
	}{{"d8", 8, 32, 0.42}, {"e2", 2, 16, 0.15}, {"f4", 4, 8, 0.19}, {"m6", 6, 24, 0.35}} {
		p.Catalogs[0].InstanceTypes = append(p.Catalogs[0].InstanceTypes, model.InstanceType{
			Name: t.name, Capacity: model.Resources{1000 * t.cores, t.memory * gi, 0, 110},
			Offerings: []model.Offering{{
				Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(t.price), DiskPrice: model.USD(disk), Available: true,
			}},
		})
	}
	for _, c := range []struct {
		name                string
		pods, cores, memory int
	}{{"full", 40, 8, 32}, {"cache", 1, 2, 16}, {"batch", 1, 4, 4}} {
		class := model.PodClass{Requests: model.Resources{int64(1000 * c.cores), int64(c.memory) * gi, 0, 1}}
		class.Namespace = "default"
		for i := range c.pods {
			class.Pods = append(class.Pods, model.PodRef{Namespace: "default", Name: fmt.Sprint(c.name, "-", i)})
		}
		p.Classes = append(p.Classes, class)
	}
	return p
}

// bought is the fleet in which a plan's machines run its pods, quiet for long.
func bought(p *model.Problem, plan *model.Plan) *model.DisruptionProblem {
	empty := *p
	empty.Classes = nil
	allowed := map[model.DisruptionReason]int{model.DisruptEmpty: 100, model.DisruptUnderutilized: 100}
	f := &model.DisruptionProblem{Problem: &empty, Now: time.Unix(1e9, 0), Policies: []model.DisruptionPolicy{{
		Pool: "general", Consolidation: model.WhenEmptyOrUnderutilized, Allowed: allowed, Budgeted: allowed,
	}}}
	for _, class := range p.Classes {
		f.Movable = append(f.Movable, model.MovableClass{PodClass: class, EvictionCost: 1})
	}
	return apply(f, &model.Commands{Commands: []model.Command{{New: plan.NewNodes}}})
}
