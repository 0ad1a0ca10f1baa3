package poollint

import (
	"maps"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// quotaOfRegion is the name of the limit of all vCPUs of a region. Machines of every family
// draw on it, spot machines do not.
const quotaOfRegion = "cores"

// Room is how many vCPUs the quotas of a region let a NodePool have in all, together with
// what others have; negative where nothing that is known limits it. limits are in vCPUs, by
// name; of are the names of those that decide, in order.
func Room(p *fleet.Pool, c *fleet.Catalog, limits map[string]int64) (vcpus int64, of []string) {
	return room(choices(p, c), limits)
}

// room adds up the limits of the families, which the limit of the region bounds, and that
// of spot machines.
func room(choices []choice, limits map[string]int64) (vcpus int64, of []string) {
	known := map[string]int64{} // by lower-case name, as Azure compares them
	for name, limit := range limits {
		known[strings.ToLower(name)] = limit
	}
	whole, bounded := known[quotaOfRegion]
	families, others, open := map[string]int64{}, map[string]int64{}, false
	for _, c := range choices {
		lines, ofRegion := others, false
		for _, use := range c.offering.Quotas {
			ofRegion = ofRegion || strings.EqualFold(use.Quota, quotaOfRegion)
		}
		if ofRegion {
			lines = families
		}
		limited := false
		for _, use := range c.offering.Quotas {
			if limit, has := known[strings.ToLower(use.Quota)]; has && !strings.EqualFold(use.Quota, quotaOfRegion) {
				lines[use.Quota], limited = limit, true
			}
		}
		switch {
		case limited:
		case ofRegion && bounded:
			open = true // by the region alone
		default:
			return -1, nil
		}
	}
	ofFamilies, names := sum(families), slices.Collect(maps.Keys(families))
	if bounded && (open || whole < ofFamilies) {
		ofFamilies, names = whole, []string{quotaOfRegion}
	}
	if names = append(names, slices.Collect(maps.Keys(others))...); len(names) == 0 {
		return -1, nil
	}
	slices.Sort(names)
	return ofFamilies + sum(others), names
}

func sum(limits map[string]int64) int64 {
	total := int64(0)
	for _, limit := range limits {
		total += limit
	}
	return total
}
