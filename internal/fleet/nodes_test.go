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
