package fleet

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// withoutCover is a catalogue with the prices of machines that nothing pays for in advance: which
// machines something does is counted by the snapshot.
func (c *poolCatalogs) withoutCover(catalog *Catalog) *Catalog {
	if catalog == nil || catalog.Advance == nil {
		return catalog
	}
	c.advance = cmp.Or(c.advance, catalog.Advance)
	if made := c.bare[catalog]; made != nil {
		return made
	}
	out := *catalog
	c.bare[catalog] = &out
	covered := func(o model.Offering) bool { return o.Uncovered != 0 }
	for i := range catalog.InstanceTypes {
		if of := catalog.InstanceTypes[i].Offerings; slices.ContainsFunc(of, covered) {
			if &out.InstanceTypes[0] == &catalog.InstanceTypes[0] {
				out.InstanceTypes = slices.Clone(catalog.InstanceTypes)
			}
			out.InstanceTypes[i].Offerings = bareOfferings(of)
		}
	}
	return &out
}

// bareOfferings are each offering once, for machines that nothing pays for in advance.
func bareOfferings(offerings []model.Offering) []model.Offering {
	var out []model.Offering
	for i := range offerings {
		o := offerings[i].WithoutCover()
		if !slices.ContainsFunc(out, func(x model.Offering) bool {
			return x.Zone == o.Zone && x.CapacityType == o.CapacityType && maps.Equal(x.Labels, o.Labels)
		}) {
			out = append(out, o)
		}
	}
	return out
}

// cover lets the machines of NodePools use up what is paid in advance, and gives those that do
// the price of it: first the machines that there are, of those of one size the oldest that do
// not leave, and then what is to be launched, where the plan has counted on it.
func (c *poolCatalogs) cover(nodes []*stateNode) {
	if c.advance == nil {
		return
	}
	var launched, expected []*stateNode
	machines := map[string]int{}
	for _, n := range nodes {
		switch {
		case n.unlaunched && n.state != model.NodeLeaving:
			expected = append(expected, n)
		case !n.unlaunched && n.usesAdvance():
			launched = append(launched, n)
			machines[n.boughtAs(model.LabelInstanceType)]++
		}
	}
	c.account = c.advance.Account(machines)
	slices.SortFunc(launched, func(a, b *stateNode) int {
		return cmp.Or(cmp.Compare(a.leaves(), b.leaves()), a.created().Compare(b.created()), cmp.Compare(a.name, b.name))
	})
	used := map[string]int{}
	for _, n := range launched {
		size := strings.ToLower(n.boughtAs(model.LabelInstanceType))
		if covers := c.account.Of(size); used[size] < len(covers) {
			n.cost.cover(covers[used[size]])
			used[size]++
		}
	}
	slices.SortFunc(expected, func(a, b *stateNode) int {
		return cmp.Or(cmp.Compare(a.beside(), b.beside()), a.created().Compare(b.created()), cmp.Compare(a.name, b.name))
	})
	for _, n := range expected {
		if catalog := c.byPool[n.pool]; catalog != nil {
			c.coverExpected(n, c.forecast(n.claim, catalog))
		}
	}
}

// usesAdvance reports whether a machine uses up what is paid in advance.
func (n *stateNode) usesAdvance() bool {
	return n.pool != "" && n.boughtAs(model.LabelCapacityType) == string(model.OnDemand) && n.boughtAs(model.LabelInstanceType) != ""
}

// leaves is 1 for a node that leaves and 0 for others.
func (n *stateNode) leaves() int {
	if n.state == model.NodeLeaving {
		return 1
	}
	return 0
}

// beside is 1 for a claim whose plan counted on nothing that is paid in advance, and 0 for others.
func (n *stateNode) beside() int {
	if n.claim.Planned > 0 && n.claim.Planned >= n.cost.price {
		return 1
	}
	return 0
}

// coverExpected states a node that is not launched as what it becomes if that is paid in advance
// and costs less so than anything else that it may become.
func (c *poolCatalogs) coverExpected(n *stateNode, f *forecast) {
	if f == nil {
		return
	}
	best, price := -1, n.cost.price
	for i, x := range f.coverable {
		covers := c.account.Next(x.kind.Name)
		if len(covers) == 0 {
			continue
		}
		if o, cheaper := x.offering.WithCover(covers[0]); cheaper && o.Price < price {
			best, price = i, o.Price
		}
	}
	if best < 0 {
		return
	}
	x := f.coverable[best]
	c.account.Take(x.kind.Name)
	n.cost.price, n.capacity, n.slots = price, named(x.kind.Capacity, c.byPool[n.pool].Axes), x.kind.VolumeSlots
}

// beyond is a catalogue with an offering of its own for what is left of what is paid in advance.
func (c *poolCatalogs) beyond(catalog *Catalog) *Catalog {
	if c.account == nil {
		return catalog
	}
	out := *catalog
	out.InstanceTypes = slices.Clone(catalog.InstanceTypes)
	for i := range out.InstanceTypes {
		t := &out.InstanceTypes[i]
		t.Offerings = c.account.Beyond(t.Name, t.Offerings)
	}
	return &out
}
