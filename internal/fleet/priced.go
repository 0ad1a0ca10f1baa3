package fleet

import (
	"cmp"
	"context"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Place is a size of machines in a zone.
type Place struct{ InstanceType, Zone string }

// PricedOffering is an offering with its price per hour, in which the disk and what nodes
// cost besides are counted: the highest, where NodePools differ in these.
type PricedOffering struct {
	Place
	CapacityType model.CapacityType
	Price        model.Money
}

// Priced are the offerings of every capacity type of the places where the cluster has nodes
// of NodePools, and of further places, in order. What cannot be bought now is among them where
// its price is known. It fails only when ctx ends.
func (s *Snapshot) Priced(ctx context.Context, source Catalogs, further []Place) ([]PricedOffering, error) {
	catalogs, err := readCatalogs(ctx, s.Pools(), source, nil)
	if err != nil {
		return nil, err
	}
	asked := map[Place]bool{}
	for _, p := range further {
		asked[p] = true
	}
	for _, n := range joinNodes(s, &nodeDescriber{catalogs: catalogs, drivers: s.attaching.drivers, withoutClaims: s.withoutClaims()}).list {
		if size := n.boughtAs(model.LabelInstanceType); n.pool != "" && size != "" {
			asked[Place{size, n.boughtAs(model.LabelZone)}] = true
		}
	}
	prices := map[PricedOffering]model.Money{} // by offerings without a price
	for _, catalog := range catalogs.byPool {
		for place := range asked {
			t := catalogs.instanceType(catalog, place.InstanceType)
			if t == nil {
				continue
			}
			for i := range t.Offerings {
				o := &t.Offerings[i]
				if o.Zone == place.Zone && o.Price > 0 {
					at := PricedOffering{Place: place, CapacityType: o.CapacityType}
					prices[at] = max(prices[at], o.Price)
				}
			}
		}
	}
	var out []PricedOffering
	for at, price := range prices {
		at.Price = price
		out = append(out, at)
	}
	slices.SortFunc(out, func(x, y PricedOffering) int {
		return cmp.Or(cmp.Compare(x.InstanceType, y.InstanceType), cmp.Compare(x.Zone, y.Zone), cmp.Compare(x.CapacityType, y.CapacityType))
	})
	return out, nil
}
