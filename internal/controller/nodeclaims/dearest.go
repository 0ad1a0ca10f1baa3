package nodeclaims

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// affordable tells the offerings of a node that the limit in dollars leaves from the
// others, in their order, and sets aside what the dearest machine that the claim allows
// costs beyond the best one. A claim states sizes, zones and capacity types each by
// itself: with spot machines of one size and pay-as-you-go machines of another it allows
// those of both in both ways, so that all of these must be within the limit.
func (h *limitHeadroom) affordable(n *model.NewNode, refs []model.OfferingRef) (kept, cut []model.OfferingRef) {
	best := n.Best().Price
	most := best + max(0, h.dollars[n.Pool])
	reach := &reach{types: h.problem.Catalogs[h.problem.Pools[n.Pool].Catalog].InstanceTypes, refused: map[way]bool{}}
	for i, ref := range refs {
		if i > 0 && (ref.Price > most || !reach.allows(ref, most)) {
			cut = append(cut, ref)
			continue
		}
		reach.add(ref)
		kept = append(kept, ref)
	}
	h.dollars[n.Pool] -= max(0, reach.dearest-best)
	return kept, cut
}

// way is how a machine is sold.
type way struct {
	zone     string
	capacity model.CapacityType
}

// reach is what a claim with some offerings allows to be bought.
type reach struct {
	types []model.InstanceType
	// sizes index types; zones and capacities are the values that the claim would state.
	sizes      []int
	zones      []string
	capacities []model.CapacityType
	// dearest is the highest price of what it allows.
	dearest model.Money
	// refused are the ways of being sold that made sizes too dear before. More sizes do not
	// make them cheaper.
	refused map[way]bool
}

// allows reports whether nothing costs more than most when the offering is added.
func (r *reach) allows(ref model.OfferingRef, most model.Money) bool {
	o := &r.types[ref.InstanceType].Offerings[ref.Offering]
	as := way{o.Zone, o.CapacityType}
	if r.refused[as] {
		return false
	}
	zones, capacities := r.zones, r.capacities
	widened := !slices.Contains(zones, as.zone) || !slices.Contains(capacities, as.capacity)
	zones, capacities = appendNew(slices.Clip(zones), as.zone), appendNew(slices.Clip(capacities), as.capacity)
	if widened {
		for _, size := range r.sizes {
			if r.priceOf(size, zones, capacities) > most {
				r.refused[as] = true
				return false
			}
		}
	}
	return r.priceOf(ref.InstanceType, zones, capacities) <= most
}

// add adds an offering.
func (r *reach) add(ref model.OfferingRef) {
	o := &r.types[ref.InstanceType].Offerings[ref.Offering]
	before := len(r.zones) + len(r.capacities)
	r.zones, r.capacities = appendNew(r.zones, o.Zone), appendNew(r.capacities, o.CapacityType)
	r.sizes = appendNew(r.sizes, ref.InstanceType)
	look := r.sizes
	if len(r.zones)+len(r.capacities) == before {
		look = []int{ref.InstanceType}
	}
	for _, size := range look {
		r.dearest = max(r.dearest, r.priceOf(size, r.zones, r.capacities))
	}
}

// priceOf is the highest price at which a size is sold in the zones as the capacity types.
// The zone "" stands for all: a claim that allows machines without a zone states none.
func (r *reach) priceOf(size int, zones []string, capacities []model.CapacityType) model.Money {
	dearest := model.Money(0)
	for i := range r.types[size].Offerings {
		o := &r.types[size].Offerings[i]
		if slices.Contains(capacities, o.CapacityType) && (slices.Contains(zones, o.Zone) || slices.Contains(zones, "")) {
			dearest = max(dearest, o.Price)
		}
	}
	return dearest
}
