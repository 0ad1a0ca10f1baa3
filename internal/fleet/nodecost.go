package fleet

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

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
