package fleet

import (
	"maps"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// A NodeClaim may be seen later than its Node. Both are one machine then, too: two would have
// room for twice the pods, and one of them would belong to no command.
func TestLateClaimAndItsNodeAreOneMachine(t *testing.T) {
	for name, c := range map[string]struct {
		claim Claim
		node  Node
		want  int
	}{
		"by provider ID":                      {Claim{ProviderID: "azure:///A"}, Node{ProviderID: "azure:///a"}, 1},
		"by node name":                        {Claim{NodeName: "node"}, Node{}, 1},
		"by owner, before its status is seen": {Claim{}, Node{ProviderID: "azure:///a", Claim: "claim"}, 1},
		"another claim's node":                {Claim{}, Node{ProviderID: "azure:///a", Claim: "other"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c.claim.Name, c.claim.Pool, c.node.Name, c.node.Registered = "claim", "general", "node", true
			for expected, put := range map[bool]func(*Store){
				false: func(s *Store) { s.Put(&c.claim) }, true: func(s *Store) { s.Expect(&c.claim) },
			} {
				store := NewStore()
				store.Put(&Pool{Name: "general", Ready: true, NodeLimit: -1})
				store.Put(&c.node)
				put(store)
				in, err := store.Snapshot().Problem(t.Context(), noCatalogs{}, Options{})
				if err != nil {
					t.Fatal(err)
				}
				if got := len(in.Problem.Nodes); got != c.want {
					t.Errorf("%d machines, want %d (expected by nap itself: %v)", got, c.want, expected)
				}
			}
		})
	}
}

// Of NodeClaims that say to have the same machine, the first by name has it, in whichever order
// they are found.
func TestMachineHasOneClaim(t *testing.T) {
	for name, second := range map[string]Claim{
		"by node name and provider ID":        {ProviderID: "azure:///A", NodeName: "node"},
		"by provider ID":                      {ProviderID: "azure:///a"},
		"by node name, without a provider ID": {NodeName: "node"},
		"by the provider ID, not the name":    {ProviderID: "AZURE:///a", NodeName: "other"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // maps are read in any order
				first := Claim{Name: "a", ProviderID: "azure:///a", NodeName: "node"}
				second.Name = "b"
				store := NewStore()
				store.Put(&first)
				store.Put(&second)
				store.Put(&Node{Name: "node", ProviderID: "azure:///A", Registered: true})
				store.Put(&Node{Name: "other", ProviderID: "azure:///b", Registered: true})
				views, err := store.Snapshot().Views(t.Context(), noCatalogs{})
				if err != nil || len(views) != 2 || views[0].Claim != "a" || views[1].Claim != "" {
					t.Fatalf("%+v, %v; want the node of claim a, and one without a claim", views, err)
				}
			}
		})
	}
}

// A node that starts lists no driver yet. Its size says how many disks it can attach meanwhile; a
// driver that is listed without a number has no limit.
func TestDriversThatNodesDoNotListHaveTheSizesLimits(t *testing.T) {
	for name, c := range map[string]struct {
		listed DriverLimits
		want   map[string]int
	}{
		"no driver":                    {DriverLimits{}, map[string]int{"disk": 4}},
		"another driver":               {DriverLimits{Limits: map[string]int{"nfs": 9}, Unlimited: []string{"file"}}, map[string]int{"disk": 4, "nfs": 9}},
		"the driver":                   {DriverLimits{Limits: map[string]int{"disk": 3}}, map[string]int{"disk": 3}},
		"the driver, without a number": {DriverLimits{Unlimited: []string{"disk"}}, map[string]int{}},
	} {
		store := NewStore()
		store.Put(&Pool{Name: "general", Ready: true, NodeLimit: -1})
		store.Put(&Node{
			Name: "a", Ready: true, Allocatable: Amounts{CPU: 1000, Pods: 10},
			Labels: map[string]string{model.LabelNodePool: "general", model.LabelInstanceType: "d2"},
		})
		c.listed.Node = "a"
		store.Put(&c.listed)
		catalog := &Catalog{InstanceTypes: []model.InstanceType{{Name: "d2", VolumeSlots: map[string]int{"disk": 4}}}}
		in, err := store.Snapshot().Problem(t.Context(), byPool{"general": catalog}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := in.Problem.Nodes[0].VolumeSlots; !maps.Equal(got, c.want) {
			t.Errorf("%s: the node has slots for %v, want %v", name, got, c.want)
		}
	}
}
