package planner

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Tenants whose pods are alike buy machines of the same offerings, which are kept once.
func TestPartsKeepEqualListsOfOfferingsOnce(t *testing.T) {
	p := &model.Problem{Axes: model.NewAxes(), Catalogs: []model.Catalog{bigCatalog()}}
	for i := range 120 {
		p.Pools = append(p.Pools, tenant(i))
		p.Classes = append(p.Classes, ofTenant(i, 3, int64(1000+4000*(i%2))))
	}
	if parts := Parts(p); parts != len(p.Pools) {
		t.Fatalf("%d parts, want %d", parts, len(p.Pools))
	}
	kept := map[*model.OfferingRef]bool{}
	for _, node := range Solve(p).NewNodes {
		kept[unsafe.SliceData(node.Offerings)] = true
		i := node.Pool
		alone := *p
		alone.Pools, alone.Classes = p.Pools[i:i+1], p.Classes[i:i+1]
		if i < 4 && !slices.Equal(node.Offerings, SolveWhole(&alone).NewNodes[0].Offerings) {
			t.Errorf("tenant %d has other offerings than alone", i)
		}
	}
	if len(kept) != 2 {
		t.Errorf("%d lists are kept, want one for small pods and one for large ones", len(kept))
	}
}

func TestListsOfOfferingsThatDifferAreKeptApart(t *testing.T) {
	var lists offeringLists
	a, b, c := model.OfferingRef{Price: 1}, model.OfferingRef{Offering: 1}, model.OfferingRef{InstanceType: 1}
	for _, list := range [][]model.OfferingRef{{a}, {b}, {c}, {a, b}, {b, a}, {a, b, c}, {a}} {
		if got := lists.one(slices.Clone(list)); !slices.Equal(got, list) {
			t.Errorf("got %v for %v", got, list)
		}
	}
	if len(lists.known) != 6 {
		t.Errorf("%d lists, want 6", len(lists.known))
	}
}
