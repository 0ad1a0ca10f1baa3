package decompose

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// onSale is a problem with one size, which a NodePool with a label of its own buys in a zone.
func onSale() *model.Problem {
	return &model.Problem{
		Axes: model.NewAxes(),
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{{
			Name: "d2", Capacity: model.Resources{2000, 8 << 30, 0, 110}, VolumeSlots: map[string]int{"disk": 8},
			Offerings: []model.Offering{
				{Zone: "z1", CapacityType: model.OnDemand, Price: 5, Available: true, Quotas: []model.QuotaUse{{Quota: "family", Amount: 2}}},
				{Zone: "z2", CapacityType: model.Reserved, Reservation: "held", Remaining: 3, Available: true},
			},
		}}}},
		Pools: []model.Pool{{
			Name: "pool", NodeLimit: -1,
			Requirements: model.Requirements{{Key: "team", Operator: model.In, Values: []string{"red"}}, {Key: "rack", Operator: model.Exists}},
		}},
		Quotas: []model.Quota{{Name: "family", Left: 10}},
	}
}

// What a plan leaves has its machines with their pods, labels and disks, and less of what they took.
func TestAfterHasTheMachinesOfAPlan(t *testing.T) {
	p := onSale()
	p.Classes = []model.PodClass{{
		Pods: make([]model.PodRef, 3), PodShape: model.PodShape{Namespace: "default"},
		Requests: model.Resources{100, 1 << 20}, // no pod slot, as objects in files may have none
		Volumes:  []model.Volume{{Driver: "disk"}, {Driver: "disk"}, {ID: "shared", Driver: "disk"}},
	}}
	machine := func(offering int, pods ...int) model.NewNode {
		return model.NewNode{
			Offerings: []model.OfferingRef{{Offering: offering, Price: p.Catalogs[0].InstanceTypes[0].Offerings[offering].Price}},
			Pods:      []model.ClassPods{{Class: 0, Pods: pods}},
		}
	}
	plan := &model.Plan{NewNodes: []model.NewNode{machine(0, 0, 1), machine(1, 2)}}
	after := After(p, plan)
	n := &after.Nodes[0]
	if n.Used.Get(model.Pods) != 2 || n.Used.Get(model.CPU) != 200 || n.Labels["team"] != "red" || n.Labels[model.LabelZone] != "z1" {
		t.Errorf("the machine is %+v", n)
	}
	if _, known := n.Labels["rack"]; known {
		t.Errorf("it has a rack that nothing says: %v", n.Labels)
	}
	// Two pods have disks of their own, which the volumes without a name stand for, and share one.
	if got := n.VolumeSlots["disk"]; got != 8-2-1 {
		t.Errorf("%d disks may still be attached, want 5", got)
	}
	if after.Pools[0].Nodes != 2 || after.Quotas[0].Left != 8 || after.Catalogs[0].InstanceTypes[0].Offerings[1].Remaining != 2 {
		t.Errorf("left are %d nodes, quota %d, reserved %d", after.Pools[0].Nodes, after.Quotas[0].Left,
			after.Catalogs[0].InstanceTypes[0].Offerings[1].Remaining)
	}
	if p.Catalogs[0].InstanceTypes[0].Offerings[1].Remaining != 3 || p.Quotas[0].Left != 10 || p.Pools[0].Nodes != 0 {
		t.Error("the problem itself was changed")
	}
	phase := Part{classes: []int{0}}
	if alone := phase.Alone(p, after, &plan.NewNodes[0]); alone.Pools[0].Nodes != 1 || alone.Quotas[0].Left != 10 || alone.Pools[0].Cost != 0 {
		t.Errorf("beside one machine are %+v, quota %d", alone.Pools[0], alone.Quotas[0].Left)
	}
	if alone := phase.Alone(p, after, &plan.NewNodes[1]); alone.Catalogs[0].InstanceTypes[0].Offerings[1].Remaining != 3 {
		t.Errorf("beside the reserved one are %d reserved", alone.Catalogs[0].InstanceTypes[0].Offerings[1].Remaining)
	}
}

// A spread counts domains in which a machine could be bought, as long as it could.
func TestDomainsAreLostWithWhatIsUsedUp(t *testing.T) {
	spread := func(key string, hard bool) []model.SpreadConstraint {
		return []model.SpreadConstraint{{TopologyKey: key, Hard: hard, MaxSkew: 1}}
	}
	for name, c := range map[string]struct {
		spread []model.SpreadConstraint
		left   int64
		want   bool
	}{
		"a zone that is sold out":           {spread(model.LabelZone, true), 1, true},
		"a zone with something left":        {spread(model.LabelZone, true), 2, false},
		"hosts, which are always more":      {spread(model.LabelHostname, true), 1, false},
		"zones that are not required":       {spread(model.LabelZone, false), 1, false},
		"pods that are spread over nothing": {nil, 1, false},
	} {
		before, now := onSale(), onSale()
		now.Quotas[0].Left = c.left
		now.Classes = []model.PodClass{{Spread: c.spread}}
		if got := LosesDomains(before, now); got != c.want {
			t.Errorf("%s: lost %v, want %v", name, got, c.want)
		}
	}
}
