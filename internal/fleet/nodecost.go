package fleet

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// costOfOffering is what a machine costs that was bought as an offering: as the offering does
// now, but with the disk that the machine was made with, for it keeps that when its node class
// asks for another one. Where the offering's price is not known, it is what the machine was
// bought at, or nothing, so that no saving is made of a guess. claim is nil for a node that has
// none.
func costOfOffering(o *model.Offering, claim *Claim) nodeCost {
	if o.Unpriced {
		return unpricedCost(o, claim)
	}
	cost := nodeCost{price: o.Price, priced: true, diskPrice: o.DiskPrice, nodePrice: o.NodePrice}
	if claim != nil && claim.DiskPrice != nil {
		cost.price, cost.diskPrice = o.PriceWithDisk(claim.DiskPrice), *claim.DiskPrice
	}
	return cost
}

// costWithoutLabels is what a node of an instance type costs whose zone or capacity type is not
// known: what all its offerings cost that it may have been bought as. Where these differ, it is
// what the machine was bought at if that is no less than the lowest and no more than the highest
// of them, or else nothing.
func (n *stateNode) costWithoutLabels(t *model.InstanceType) nodeCost {
	zone, capacityType := n.boughtAs(model.LabelZone), n.boughtAs(model.LabelCapacityType)
	var low, high nodeCost
	for i := range t.Offerings {
		o := &t.Offerings[i]
		if zone != "" && o.Zone != zone || capacityType != "" && string(o.CapacityType) != capacityType {
			continue
		}
		cost := costOfOffering(o, n.claim)
		if !cost.priced {
			return nodeCost{}
		}
		if !low.priced || cost.price < low.price {
			low = cost
		}
		if !high.priced || cost.price > high.price {
			high = cost
		}
	}
	if low.price == high.price {
		return low
	}
	if n.claim == nil || n.claim.Bought() < low.price || n.claim.Bought() > high.price {
		return nodeCost{}
	}
	low.price = n.claim.Bought()
	return low
}

// cover gives a machine that is paid in advance the price of that, where it is lower.
func (c *nodeCost) cover(by model.Cover) {
	if c.priced {
		c.price = min(c.price, by.Price+c.diskPrice+c.nodePrice)
	}
}

// unpricedCost is the cost of a machine that was bought as an offering whose price is not known.
// What it was bought at is a guess, too, where that is no less than the offering's price, unless
// a NodeOverlay states it.
func unpricedCost(o *model.Offering, claim *Claim) nodeCost {
	var cost nodeCost
	if claim == nil {
		return cost
	}
	if bought := claim.Bought(); bought < o.MachinePrice() || o.PriceOverlaid {
		cost.price = bought
	}
	if claim.DiskPrice != nil {
		cost.diskPrice = min(*claim.DiskPrice, cost.price)
	}
	return cost
}

// shown is the cost that people are told: for a bought machine whose offering the catalogue does
// not have (any more), what it cost when it was bought.
func (n *stateNode) shown() nodeCost {
	cost := n.cost
	if cost.priced || n.unlaunched || n.claim == nil {
		return cost
	}
	cost.price = n.claim.Bought()
	if disk := n.claim.DiskPrice; disk != nil {
		cost.diskPrice = min(*disk, cost.price)
	}
	return cost
}

// Bought is what a machine cost per hour when it was bought, or else by its plan; zero where the
// claim says neither.
func (c *Claim) Bought() model.Money { return cmp.Or(c.Paid, c.Planned) }

// costKey names a catalogue with a cost per node added to it.
type costKey struct {
	catalog *Catalog
	cost    model.Money
}

// withCost is the catalogue with what every node of a NodePool costs beside, per hour,
// added to each price. NodePools with the same catalogue and cost share the result; the
// catalogue itself stays as it is.
func (c *poolCatalogs) withCost(catalog *Catalog, cost model.Money) *Catalog {
	if cost == 0 || catalog == nil {
		return catalog
	}
	key := costKey{catalog, cost}
	if made := c.costed[key]; made != nil {
		return made
	}
	out := *catalog
	out.InstanceTypes = slices.Clone(catalog.InstanceTypes)
	for i := range out.InstanceTypes {
		t := &out.InstanceTypes[i]
		t.Offerings = slices.Clone(t.Offerings)
		for j := range t.Offerings {
			t.Offerings[j].Price += cost
			t.Offerings[j].NodePrice += cost
		}
	}
	c.costed[key] = &out
	return &out
}
