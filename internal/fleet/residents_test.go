package fleet

import (
	"context"
	"fmt"
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

// What a move was to save is owed for its pods, not for those that have ended.
func TestAMachineOwesWhatItWasToSaveForThePodsThatItStillHas(t *testing.T) {
	for name, c := range map[string]struct {
		requests Amounts
		pods     int
		want     model.Money
	}{
		"all are there":               {Amounts{CPU: 400, Memory: 4 << 30}, 4, model.USD(0.2)},
		"half are there":              {Amounts{CPU: 400, Memory: 4 << 30}, 2, model.USD(0.1)},
		"more than it was bought for": {Amounts{CPU: 200, Memory: 2 << 30}, 4, model.USD(0.2)},
		"nobody said what for":        {Amounts{}, 1, model.USD(0.2)},
	} {
		store := NewStore()
		store.Put(&Pool{Name: "general", Ready: true, NodeLimit: -1})
		store.Put(&Claim{Name: "general-1", Pool: "general", ProviderID: "a", NodeName: "node-1", Earned: model.USD(0.2), Requests: c.requests})
		store.Put(&Node{Name: "node-1", ProviderID: "a", Registered: true, Initialized: true, Ready: true})
		for i := range c.pods {
			store.Put(&Pod{
				Ref: model.PodRef{Namespace: "default", Name: fmt.Sprint("web-", i)}, Node: "node-1", EvictionCost: 1,
				Spec: &PodSpec{Key: "web", Requests: Amounts{CPU: 100, Memory: 1 << 30, Pods: 1}}, Labels: &Labels{},
			})
		}
		in, err := store.Snapshot().Fleet(t.Context(), noCatalogs{}, DisruptionOptions{Terms: model.DefaultMoveTerms()})
		if err != nil {
			t.Fatal(err)
		}
		if got := in.Fleet.Tenancies[0].Earned; got != c.want {
			t.Errorf("%s: the machine owes %s, want %s", name, got, c.want)
		}
	}
}
