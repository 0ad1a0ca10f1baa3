package snapshot

import (
	"context"
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// shop sells one size at a price that can change, nothing at none, and counts how often it is asked.
type shop struct {
	price model.Money
	asked int
}

func (s *shop) Catalog(context.Context, string) (*fleet.Catalog, error) {
	s.asked++
	if s.price == 0 {
		return nil, errors.New("AKSNodeClass not found")
	}
	return &fleet.Catalog{Axes: model.NewAxes(), InstanceTypes: []model.InstanceType{{
		Name: "Standard_D4s_v5", Offerings: []model.Offering{{Zone: "eastus-1", CapacityType: model.OnDemand, Price: s.price, Available: true}},
	}}}, nil
}

// That a static NodePool buys for no pod is what it is for.
func TestStaticNodePoolsThatBuyForNoPodAreNotComplainedOf(t *testing.T) {
	for static, want := range map[bool]string{true: "", false: "it is being deleted"} {
		store, decisions := fleet.NewStore(), &Decisions{}
		store.Put(&fleet.Pool{Name: "fixed", NodeLimit: -1, Static: true})
		decisions.Decided(Decision{LeftOut: []model.LeftOut{{Pool: "fixed", Message: "it is being deleted", Static: static}}})
		collector := &Collector{
			Clock: clocktesting.NewFakeClock(time.Unix(0, 0)), Market: func() Market { return Market{} }, Health: func() (string, string) { return "", "" },
			Fleet: store.Snapshot, Decisions: decisions, Moves: &Moves{}, Catalogs: &shop{},
		}
		d := &Document{}
		if err := collector.Collect(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if got := d.Status.NodePools[0].Why; got != want {
			t.Errorf("static: %t: it buys nothing because %q, want %q", static, got, want)
		}
	}
}

// TestFleetAtRestIsSeldomLookedAt: what is told of it is the same as at the last look, until
// something changes or other prices may hold.
func TestFleetAtRestIsSeldomLookedAt(t *testing.T) {
	store, sells := fleet.NewStore(), &shop{price: model.USD(1)}
	clk := clocktesting.NewFakeClock(time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC))
	collector := &Collector{
		Clock: clk, Market: func() Market { return Market{} }, Health: func() (string, string) { return "", "" },
		Fleet: store.Snapshot, Decisions: &Decisions{}, Moves: &Moves{}, Catalogs: sells,
	}
	buy := func(name string) {
		store.Put(&fleet.Claim{
			Name: name, Pool: "general", ProviderID: "azure://" + name, Created: clk.Now(), Launched: clk.Now(), Paid: model.USD(1.5),
			Allocatable: fleet.Amounts{CPU: 4000},
			Labels:      map[string]string{model.LabelInstanceType: "Standard_D4s_v5", model.LabelZone: "eastus-1", model.LabelCapacityType: "on-demand"},
		})
	}
	store.Put(&fleet.Pool{Name: "general", NodeLimit: -1, Ready: true})
	buy("a")
	look := func(cost string, machines, asked int) {
		t.Helper()
		clk.Step(5 * time.Second)
		d := &Document{}
		if err := collector.Collect(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		s := &d.Status
		if s.NodePools[0].HourlyCost != cost || len(s.Machines) != machines || sells.asked != asked {
			t.Errorf("the NodePool costs %s with %d machines on their way after %d looks at the fleet, want %s, %d and %d",
				s.NodePools[0].HourlyCost, len(s.Machines), sells.asked, cost, machines, asked)
		}
	}
	look("1.000", 1, 1)
	for range 5 {
		look("1.000", 1, 1)
	}
	buy("b")
	look("2.000", 2, 2)
	sells.price = model.USD(3)
	for range 5 {
		look("2.000", 2, 2)
	}
	look("6.000", 2, 3)
	// Its AKSNodeClass is being deleted: what was paid is what its machines cost.
	clk.Step(fleetHolds)
	sells.price = 0
	look("3.000", 2, 4)
}

// TestMachinesSayWhatTheirNodeWaitsFor: a node that is not initialized is on its way.
func TestMachinesSayWhatTheirNodeWaitsFor(t *testing.T) {
	store := fleet.NewStore()
	taint := model.Taint{Key: "agent/not-ready", Effect: "NoSchedule"}
	store.Put(&fleet.Claim{Name: "general-a", Pool: "general", ProviderID: "azure://a", NodeName: "a", StartupTaints: []model.Taint{taint}})
	made := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	store.Put(&fleet.Node{Name: "a", ProviderID: "azure://a", Ready: true, Registered: true, Taints: []model.Taint{taint}, Created: made})
	// Every node waits for something in its first seconds.
	if machines, _ := Machines(store.Snapshot(), made.Add(fleet.InitializeWithin-time.Second)); machines[0].Trouble != "" {
		t.Errorf("a node that is not late has the trouble %q", machines[0].Trouble)
	}
	machines, _ := Machines(store.Snapshot(), made.Add(fleet.InitializeWithin))
	const want = "node a is not initialized: it still has the startup taint agent/not-ready:NoSchedule, which something else has to remove"
	if len(machines) != 1 || machines[0].Stage != "Registered" || machines[0].Trouble != want {
		t.Errorf("%+v, want one Registered with %q", machines, want)
	}
}
