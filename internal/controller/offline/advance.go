package offline

import (
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/model"
)

// beyondAdvance adds, beside each offering of which some machines are paid in advance, the same
// at the prices of further ones: by a savings plan where the first are reserved, and then by no
// one. The controller has these prices after its next purchases, and a command makes one plan for
// all.
func beyondAdvance(types []model.InstanceType, book *price.Book) []model.InstanceType {
	if !slices.ContainsFunc(types, func(t model.InstanceType) bool {
		return slices.ContainsFunc(t.Offerings, func(o model.Offering) bool { return o.Uncovered != 0 })
	}) {
		return types
	}
	out := slices.Clone(types)
	for i := range out {
		t := &out[i]
		offerings := make([]model.Offering, 0, len(t.Offerings))
		for _, o := range t.Offerings {
			offerings = append(offerings, o)
			if o.Uncovered == 0 {
				continue
			}
			last := len(o.Quotas) - 1 // what is paid in advance
			machine, line, planned := book.Planned(t.Name)
			if by := machine + o.DiskPrice + o.NodePrice; planned && line.Quota != o.Quotas[last].Quota && by < o.Uncovered {
				second := o
				second.Price, second.Quotas = by, append(slices.Clone(o.Quotas[:last]), line)
				offerings = append(offerings, second)
			}
			o.Price, o.Uncovered, o.Quotas = o.Uncovered, 0, o.Quotas[:last:last]
			offerings = append(offerings, o)
		}
		t.Offerings = offerings
	}
	return out
}

// advanceNote says what becomes of reservations and savings plans, where there are any.
func advanceNote(has bool, told *Told) string {
	switch {
	case !has:
		return ""
	case !told.Advance:
		return "; reservations and savings plans are left out"
	case len(told.Machines) == 0:
		return "; reservations and savings plans count as unused, since no on-demand machine of a NodePool is known here"
	case len(told.Machines) == 1:
		return "; reservations and savings plans count, less what 1 on-demand machine of NodePools uses; others are assumed to use none"
	}
	return fmt.Sprintf("; reservations and savings plans count, less what %d on-demand machines of NodePools use; others are assumed "+
		"to use none", len(told.Machines))
}
