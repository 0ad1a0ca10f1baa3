package price

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Beyond adds, beside each offering of which some machines are paid in advance, the same at the
// prices of further ones: by a savings plan where the first are reserved, and then by none.
// One plan may buy machines of all of these.
func (b *Book) Beyond(types []model.InstanceType) []model.InstanceType {
	covered := func(o model.Offering) bool { return o.Uncovered != 0 }
	if !slices.ContainsFunc(types, func(t model.InstanceType) bool { return slices.ContainsFunc(t.Offerings, covered) }) {
		return types
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	out := slices.Clone(types)
	for i := range out {
		t := &out[i]
		if !slices.ContainsFunc(t.Offerings, covered) {
			continue
		}
		bare := make([]model.Offering, len(t.Offerings))
		for j := range t.Offerings {
			bare[j] = t.Offerings[j].WithoutCover()
		}
		t.Offerings = b.machines.account.Beyond(t.Name, bare)
	}
	return out
}
