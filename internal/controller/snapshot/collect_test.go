package snapshot

import (
	"context"
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
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

// TestMovesAreDoneWhenTheirNodesAreGone: until then they say what these wait for, in the words of
// the nodes that leave.
func TestMovesAreDoneWhenTheirNodesAreGone(t *testing.T) {
	const volumes = "a: it is drained and waits for its VolumeAttachments to be gone"
	leaves := func(name string, of *fleet.Command) *fleet.Claim {
		since := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
		return &fleet.Claim{Name: "general-" + name, Pool: "general", NodeName: name, Leaving: true, LeavingSince: since, Command: of}
	}
	volume := func(c *fleet.Claim) *fleet.Claim { c.Detaching = true; return c }
	ending := &fleet.Pod{
		Ref: model.PodRef{Namespace: "shop", Name: "db"}, Node: "ending", Labels: &fleet.Labels{}, Spec: &fleet.PodSpec{},
		Terminating: true, Leaving: &fleet.Leaving{GoneBy: time.Unix(0, 0).Add(time.Hour)},
	}
	move, other := &fleet.Command{ID: "xyz"}, &fleet.Command{ID: "abc"}
	for name, tt := range map[string]struct {
		claims     []*fleet.Claim
		was        v1alpha1.Move
		stage, why string
	}{
		"all are gone":         {was: v1alpha1.Move{ID: "xyz", Stage: "Done"}, stage: "Done"},
		"volumes are attached": {[]*fleet.Claim{volume(leaves("a", move))}, v1alpha1.Move{ID: "xyz", Stage: "Done"}, "Leaving", volumes},
		"machine is deleted": {[]*fleet.Claim{leaves("a", move)}, v1alpha1.Move{ID: "xyz", Stage: "Done"}, "Leaving",
			"a: its deletion was asked for, and nothing is known to be in the way"},
		"a pod is terminating": {[]*fleet.Claim{leaves("ending", move)}, v1alpha1.Move{ID: "xyz", Stage: "Done"}, "Leaving",
			"ending: it waits for pod shop/db, which is terminating and has until 1970-01-01T01:00:00Z to end"},
		"what blocks comes first": {[]*fleet.Claim{leaves("0", move), leaves("1", move), volume(leaves("a", move))},
			v1alpha1.Move{ID: "xyz", Stage: "Done"}, "Leaving", volumes + "; and 2 more of its nodes"},
		"nodes of others": {[]*fleet.Claim{volume(leaves("a", other)), volume(leaves("b", nil))}, v1alpha1.Move{ID: "xyz", Stage: "Done"}, "Done", ""},
		"rolled back": {[]*fleet.Claim{volume(leaves("a", move))}, v1alpha1.Move{ID: "xyz", Stage: "RolledBack", Why: "quota"},
			"RolledBack", "quota"},
	} {
		store, moves := fleet.NewStore(), &Moves{}
		moves.Ended(&tt.was)
		for _, c := range tt.claims {
			store.Put(c)
		}
		store.Put(ending)
		collector := &Collector{
			Clock: clocktesting.NewFakeClock(time.Unix(0, 0)), Market: func() Market { return Market{} }, Health: func() (string, string) { return "", "" },
			Fleet: store.Snapshot, Decisions: &Decisions{}, Moves: moves, Catalogs: &shop{},
		}
		for range 2 { // what is told does not change what is remembered
			d := &Document{}
			if err := collector.Collect(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			if m := d.Status.LastMoves[0]; m.Stage != tt.stage || m.Why != tt.why {
				t.Errorf("%s: %s, %q; want %s, %q", name, m.Stage, m.Why, tt.stage, tt.why)
			}
			store.Put(&fleet.Pool{Name: "another", NodeLimit: -1})
		}
	}
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
