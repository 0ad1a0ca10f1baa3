package planner_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

// A malformed pod, pool, type, offering or node is refused by itself: the plan
// for everything else is the one that it would be without it.
func TestSolveMalformedInputAffectsNothingElse(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := &dice{T: rt}
		p := d.problem()
		want := planner.Solve(p)
		classes, rejected := len(p.Classes), len(want.Rejected)
		for range 1 + d.upTo(2) {
			d.spoil(p)
		}
		got := planner.Solve(p)
		if diff := cmp.Diff(want.NewNodes, got.NewNodes); diff != "" {
			rt.Fatalf("other machines: without\n%swith, rejecting %v\n%s", describe(p, want), got.Rejected, describe(p, got))
		}
		if diff := cmp.Diff(want.Placements, got.Placements); diff != "" {
			rt.Fatalf("other placements: without\n%swith, rejecting %v\n%s", describe(p, want), got.Rejected, describe(p, got))
		}
		refused := len(got.Rejected) - rejected
		for _, u := range got.Unschedulable {
			if u.Class >= classes {
				refused++
				if u.Reason != model.ReasonPodInvalid || u.Message == "" {
					rt.Fatalf("class %d is refused with %q, %q", u.Class, u.Reason, u.Message)
				}
			}
		}
		if refused == 0 {
			rt.Fatal("nothing was refused")
		}
	})
}

// spoil appends something malformed.
func (d *dice) spoil(p *model.Problem) {
	badRequirement := pick(d,
		model.Requirement{Key: "k", Operator: "Near", Values: []string{"1"}},
		model.Requirement{Key: "k", Operator: model.In},
		model.Requirement{Key: "k", Operator: model.Gt, Values: []string{"many"}},
		model.Requirement{Operator: model.Exists},
	)
	bad := model.PodClass{Pods: []model.PodRef{{Name: "bad"}}, Requests: model.Resources{100, gi, 0, 1}}
	switch d.upTo(9) {
	case 0:
		bad.Requests[model.CPU] = pick(d, int64(-1), math.MinInt64, math.MaxInt64)
	case 1:
		bad.NodeRequirements = model.Requirements{badRequirement}
	case 2:
		bad.Spread = []model.SpreadConstraint{{TopologyKey: model.LabelZone, MaxSkew: int32(-d.upTo(1)), Hard: true}}
	case 3:
		bad.Affinity = []model.AffinityTerm{{Selector: &model.Selector{}}}
	case 4:
		bad.AntiAffinity = []model.AffinityTerm{{
			TopologyKey: model.LabelZone, Selector: &model.Selector{Requirements: model.Requirements{badRequirement}},
		}}
	case 5:
		p.Pools = append(p.Pools, model.Pool{Name: pick(d, "", "pool0"), NodeLimit: -1})
		return
	case 6:
		p.Pools = append(p.Pools, model.Pool{Name: "bad", Catalog: pick(d, -1, 7), NodeLimit: -1})
		return
	case 7:
		p.Pools = append(p.Pools, model.Pool{Name: "bad", Requirements: model.Requirements{badRequirement}, NodeLimit: -1})
		return
	case 8:
		types := &p.Catalogs[0].InstanceTypes
		*types = append(*types, pick(d,
			model.InstanceType{Name: "d2", Capacity: model.Resources{9000, gi}},
			model.InstanceType{Name: "none"},
			model.InstanceType{Name: "less", Capacity: model.Resources{-1000, gi}},
			model.InstanceType{Name: "vast", Capacity: model.Resources{math.MaxInt64, math.MaxInt64}},
		))
		return
	case 9:
		p.Nodes = append(p.Nodes, model.Node{
			Name: "bad", State: model.NodeReady, Allocatable: model.Resources{math.MaxInt64}, Used: model.Resources{math.MinInt64},
		})
		return
	}
	p.Classes = append(p.Classes, bad)
}

// FuzzGenerated lets the fuzzer steer the generator of the properties.
func FuzzGenerated(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(rt *rapid.T) {
		p := (&dice{T: rt}).problem()
		judge(rt, p, planner.Solve(p))
	}))
}
