package fleet

import (
	"context"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

type noCatalogs struct{}

func (noCatalogs) Catalog(context.Context, string) (*Catalog, error) { return nil, nil }

// A node that is tainted for a move has its pods among those that need a place;
// to look at the move again they must be residents once more.
func TestTheNodesOfAMoveAreStatedAsIfItHadNotBegun(t *testing.T) {
	store := NewStore()
	store.Put(&Pool{Name: "general", Ready: true, NodeLimit: -1})
	store.Put(&Claim{Name: "general-1", Pool: "general", ProviderID: "a", NodeName: "node-1"})
	store.Put(&Node{Name: "node-1", ProviderID: "a", Registered: true, Initialized: true, Ready: true, Disrupted: true})
	store.Put(&Pod{
		Ref: model.PodRef{Namespace: "default", Name: "web"}, Node: "node-1", EvictionCost: 1,
		Spec: &PodSpec{Key: "web", Requests: Amounts{CPU: 100, Pods: 1}}, Labels: &Labels{},
	})
	for name, own := range map[string]map[string]bool{"begun": nil, "own": {"node-1": true}} {
		in, err := store.Snapshot().Fleet(t.Context(), noCatalogs{}, DisruptionOptions{Own: own})
		if err != nil {
			t.Fatal(err)
		}
		waiting, residents := in.Problem.PodCount(), len(in.Movable(in.Fleet.Tenancies[0].Pods))
		if begun := name == "begun"; in.Fleet.Tenancies[0].Marked != begun || (waiting == 1) != begun || (residents == 1) == begun {
			t.Errorf("%s: marked %v, %d pods wait, %d live on the node", name, in.Fleet.Tenancies[0].Marked, waiting, residents)
		}
	}
}
