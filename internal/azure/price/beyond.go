package price

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Beyond adds, beside each offering of which some machines are paid in advance, the same at the
// prices of further ones: by a savings plan where the first are reserved, and then by no one.
// One plan may buy machines of all of these.
func (b *Book) Beyond(types []model.InstanceType) []model.InstanceType {
	covered := func(t model.InstanceType) bool {
		return slices.ContainsFunc(t.Offerings, func(o model.Offering) bool { return o.Uncovered != 0 })
	}
	if !slices.ContainsFunc(types, covered) {
		return types
	}
	out := slices.Clone(types)
	for i := range out {
		if t := &out[i]; covered(*t) {
			t.Offerings = b.beyond(t)
		}
	}
	return out
}

func (b *Book) beyond(t *model.InstanceType) []model.Offering {
	offerings := make([]model.Offering, 0, len(t.Offerings))
	for _, o := range t.Offerings {
		offerings = append(offerings, o)
		if o.Uncovered == 0 {
			continue
		}
		last := len(o.Quotas) - 1 // what is paid in advance
		machine, line, planned := b.Planned(t.Name)
		if by := machine + o.DiskPrice + o.NodePrice; planned && line.Quota != o.Quotas[last].Quota && by < o.Uncovered {
			second := o
			second.Price, second.Quotas = by, append(slices.Clone(o.Quotas[:last]), line)
			offerings = append(offerings, second)
		}
		o.Price, o.Uncovered, o.Quotas = o.Uncovered, 0, o.Quotas[:last:last]
		offerings = append(offerings, o)
	}
	return offerings
}
