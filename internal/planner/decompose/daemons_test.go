package decompose

import (
	"slices"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// A part has the DaemonSets that may run on its NodePools, so that those of others cost it nothing. A
// malformed one stays with all NodePools, which are refused for it.
func TestPartsHaveTheDaemonSetsOfTheirNodePools(t *testing.T) {
	on := func(name string, alternatives ...model.Requirements) model.Daemon {
		return model.Daemon{Name: name, Requests: model.Resources{10}, Requirements: alternatives}
	}
	of := func(tenants ...string) model.Requirements {
		return model.Requirements{{Key: "tenant", Operator: model.In, Values: tenants}}
	}
	tolerant := on("tolerant")
	tolerant.Tolerations = []model.Toleration{{Exists: true}}
	malformed := on("malformed", of("t0"))
	malformed.Requests = model.Resources{-1}
	p := tenants()
	p.Pools[1].Taints = []model.Taint{{Key: "tenant", Effect: model.NoSchedule}}
	p.Classes[1].Tolerations = []model.Toleration{{Exists: true}}
	daemons := []model.Daemon{
		on("everywhere"), tolerant, on("t0", of("t0")), on("t1", of("t1")), on("both", of("t0"), of("t1")), on("either", of("t0", "t1")),
		on("size", model.Requirements{{Key: model.LabelInstanceType, Operator: model.In, Values: []string{"d2"}}}),
		on("unlike", model.Requirements{{Key: "tenant", Operator: model.NotIn, Values: []string{"t0"}}}), malformed,
	}
	for i := range daemons {
		if name := daemons[i].Name; name == "t1" || name == "either" {
			daemons[i].Tolerations = tolerant.Tolerations
		}
	}
	for i := range p.Pools {
		p.Pools[i].Daemons = daemons
	}
	want := [][]string{
		{"everywhere", "tolerant", "t0", "both", "either", "size", "malformed"},
		{"tolerant", "t1", "either", "malformed"},
	}
	parts := Split(p, 4)
	if len(parts) != len(want) {
		t.Fatalf("got %d parts", len(parts))
	}
	for i := range parts {
		var names []string
		for _, d := range parts[i].Problem.Pools[0].Daemons {
			names = append(names, d.Name)
		}
		if !slices.Equal(names, want[i]) {
			t.Errorf("part %d has %v, want %v", i, names, want[i])
		}
	}
	if len(p.Pools[0].Daemons) != len(daemons) {
		t.Error("the problem itself was changed")
	}
}
