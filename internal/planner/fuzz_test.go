package planner_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

// No input makes the planner panic, and whatever it plans breaks no rule that
// can be checked machine by machine. Problems come as JSON, so that the fuzzer
// can bend every field.
func FuzzSolve(f *testing.F) {
	for _, seed := range []string{
		`{}`,
		`{"Axes":["cpu","memory","ephemeral-storage","pods"],"Catalogs":[{"InstanceTypes":[{"Name":"a","Capacity":[2000,8000,0,10],"Offerings":[{"Zone":"z1","CapacityType":"on-demand","Price":100,"Available":true}]}]}],
		  "Pools":[{"Name":"p","NodeLimit":-1}],"Classes":[{"Pods":[{"Namespace":"n","Name":"x"},{"Namespace":"n","Name":"y"}],"Requests":[500,100,0,1]}]}`,
		`{"Axes":["cpu","memory","ephemeral-storage","pods"],"Catalogs":[{"InstanceTypes":[{"Name":"a","Labels":{"k":"v"},"Choices":{"c":["x","y"]},"Capacity":[2000,8000,0,10],"Overhead":[-1],"Offerings":[{"Zone":"z1","CapacityType":"reserved","Price":-1,"Available":true,"Remaining":-3}]}]}],
		  "Pools":[{"Name":"p","Weight":-7,"NodeLimit":1,"Catalog":0,"Requirements":[{"Key":"c","Operator":"Gt","Values":["9223372036854775807"],"MinValues":3}],"Limits":[{"Axis":0,"Value":1}],"Daemons":[{"Name":"d","Requests":[100]}]},{"Name":"p","Catalog":9}],
		  "Nodes":[{"Name":"n","State":"Ready","Allocatable":[9223372036854775807,1],"Used":[-9223372036854775808],"Bound":[{"Shape":5,"Count":-2}]}],
		  "Shapes":[{"AntiAffinity":[{"TopologyKey":""}]}],
		  "Classes":[{"Pods":[{"Namespace":"n","Name":"x"}],"Requests":[9223372036854775807],"Priority":-2147483648,"Spread":[{"TopologyKey":"","MaxSkew":0,"Hard":true}],"Affinity":[{"TopologyKey":"kubernetes.io/hostname","Selector":{},"AllNamespaces":true}],"NodeAlternatives":[null,[]]}],
		  "Quotas":[{"Name":"q","Left":-5},{"Name":"q","Left":5}]}`,
		`{"Axes":["cpu","memory","ephemeral-storage","pods"],"Catalogs":[{"InstanceTypes":[{"Name":"a","Capacity":[2000,8000,0,10],"Offerings":[{"Zone":"z1","CapacityType":"on-demand","Price":100,"Available":true}]}]}],
		  "Pools":[{"Name":"p","NodeLimit":-1,"Taints":[{"Key":"t","Value":"p","Effect":"NoSchedule"}]},{"Name":"q","NodeLimit":-1,"Taints":[{"Key":"t","Value":"q","Effect":"NoSchedule"}]},{"Name":"p","Catalog":9}],
		  "Nodes":[{"Name":"n","State":"Ready","Bound":[{"Shape":7,"Count":1}]}],"Shapes":[{"Namespace":"n"}],
		  "Classes":[{"Pods":[{"Namespace":"n","Name":"x"}],"Requests":[500,100,0,1],"Tolerations":[{"Key":"t","Value":"p"}],"Affinity":[{"TopologyKey":"kubernetes.io/hostname","Selector":{},"Namespaces":["n"]}]},
		  {"Pods":[{"Namespace":"m","Name":"y"}],"Requests":[500,100,0,1],"Tolerations":[{"Key":"t","Value":"q"}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var p model.Problem
		if err := json.Unmarshal(data, &p); err != nil || p.PodCount() > 2000 {
			return
		}
		p.Policy.Budget = min(p.Policy.Budget, time.Millisecond)
		for _, plan := range []*model.Plan{planner.Solve(&p), planner.SolveInParts(&p)} {
			for i := range plan.Unschedulable {
				if explain.Describe(&p, &plan.Unschedulable[i]).Why == "" {
					t.Errorf("class %d is left out without a word", plan.Unschedulable[i].Class)
				}
			}
			for _, v := range verify.CheckPlaces(&p, plan) {
				t.Errorf("%s", v)
			}
		}
	})
}
