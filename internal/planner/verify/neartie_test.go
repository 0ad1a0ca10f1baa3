package verify_test

import (
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

func TestCheckHoldsFewerMachinesToTheirLimits(t *testing.T) {
	for name, c := range map[string]struct {
		disk, bound float64
		fewer       model.FewerMachines
		anti        bool
		want        string
	}{
		"half a percent":             {0.02, 0.995, model.FewerMachines{Machines: 1, Paid: model.USD(0.004)}, false, ""},
		"nothing paid":               {0, 0.5, model.FewerMachines{}, false, ""},
		"more than half a percent":   {0.02, 1, model.FewerMachines{Machines: 1, Paid: model.USD(0.006)}, false, "is paid for 1 machines fewer"},
		"far from the bound":         {0.02, 0.985, model.FewerMachines{Machines: 1, Paid: model.USD(0.004)}, false, "far above the bound"},
		"two percent with topology":  {0.02, 0.985, model.FewerMachines{Machines: 1, Paid: model.USD(0.004)}, true, ""},
		"no machine fewer":           {0.02, 1, model.FewerMachines{Paid: model.USD(0.004)}, false, "0 machines fewer"},
		"a catalogue without a disk": {0, 1, model.FewerMachines{Machines: 1, Paid: model.USD(0.004)}, false, "no catalogue says"},
	} {
		t.Run(name, func(t *testing.T) {
			class := model.PodClass{Requests: model.Resources{1000, 1, 0, 1}, Pods: []model.PodRef{{Namespace: "default", Name: "web"}}}
			if c.anti {
				class.AntiAffinity = []model.AffinityTerm{{TopologyKey: model.LabelHostname, Selector: &model.Selector{}}}
			}
			offering := model.Offering{
				Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(1), DiskPrice: model.USD(c.disk), Available: true,
			}
			p := &model.Problem{
				Axes: model.NewAxes(), Pools: []model.Pool{{Name: "general", NodeLimit: -1}}, Classes: []model.PodClass{class},
				Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{{
					Name: "d2", Capacity: model.Resources{2000, 8 << 30, 0, 110}, Offerings: []model.Offering{offering},
				}}}},
			}
			plan := &model.Plan{
				Cost: model.USD(1), LowerBound: model.USD(c.bound), Fewer: c.fewer,
				NewNodes: []model.NewNode{{
					Offerings: []model.OfferingRef{{Price: model.USD(1)}}, Requests: class.Requests, Pods: []model.ClassPods{{Pods: []int{0}}},
				}},
			}
			var got []string
			for _, v := range verify.CheckPlaces(p, plan) {
				got = append(got, v.String())
			}
			if text := strings.Join(got, "\n"); c.want == "" && text != "" || !strings.Contains(text, c.want) {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}
