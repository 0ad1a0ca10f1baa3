package price

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Unmatched names the entries of the terms, as in reservations[0].size "Standard_D4", that are
// about none of these sizes, and so have no effect: sizes are written in any case.
func (t *Terms) Unmatched(sizes []string) []string {
	known := make(map[string]bool, len(sizes))
	for _, size := range sizes {
		known[strings.ToLower(size)] = true
	}
	var out []string
	say := func(is bool, field, value string) {
		if !is {
			out = append(out, fmt.Sprintf("%s %q", field, value))
		}
	}
	matches := func(pattern string) bool {
		return slices.ContainsFunc(sizes, func(size string) bool { return applies(pattern, "", size, "") })
	}
	for i, p := range t.Prices {
		say(known[strings.ToLower(p.Size)], fmt.Sprintf("prices[%d].size", i), p.Size)
	}
	for i, d := range t.Discounts {
		say(matches(d.Sizes), fmt.Sprintf("discounts[%d].sizes", i), d.Sizes)
	}
	for i, r := range t.Reservations {
		say(known[strings.ToLower(r.Size)], fmt.Sprintf("reservations[%d].size", i), r.Size)
	}
	for i, p := range t.SavingsPlans {
		for _, size := range slices.Sorted(maps.Keys(p.Prices)) {
			say(known[strings.ToLower(size)], fmt.Sprintf("savingsPlans[%d].prices", i), size)
		}
	}
	for i, n := range t.PerNode {
		say(matches(n.Sizes), fmt.Sprintf("perNode[%d].sizes", i), n.Sizes)
	}
	return out
}
