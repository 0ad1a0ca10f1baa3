package fleet

import "testing"

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
