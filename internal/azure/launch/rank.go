package launch

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Candidate is one way to buy a machine.
type Candidate struct {
	Type     *model.InstanceType
	Offering *model.Offering
	SKU      *instancetype.SKU
}

// attempt is the candidate as the cache of unavailable offerings knows it.
func (c Candidate) attempt() unavailable.Attempt {
	return unavailable.Attempt{SKU: c.SKU, Zone: c.Offering.Zone, CapacityType: c.Offering.CapacityType}
}

// matching lists every way to buy a machine that meets the requirements and holds
// the requests, whether it is available or not.
func matching(built *instancetype.Built, requirements model.Requirements, requests model.Resources) []Candidate {
	known := instancetype.KnownLabels()
	var out []Candidate
	for i := range built.Catalog.InstanceTypes {
		t := &built.Catalog.InstanceTypes[i]
		if !requests.Fits(t.Allocatable()) || !typeMeets(t, requirements, known) {
			continue
		}
		sku, ok := built.SKU(t.Name)
		if !ok {
			continue
		}
		for j := range t.Offerings {
			if o := &t.Offerings[j]; offeringMeets(t, o, requirements) {
				out = append(out, Candidate{t, o, sku})
			}
		}
	}
	return out
}

// WhyNone says why Rank finds nothing, in one sentence.
func WhyNone(built *instancetype.Built, requirements model.Requirements, requests model.Resources) string {
	all := matching(built, requirements, requests)
	if len(all) == 0 {
		return fmt.Sprintf("none of the %d sizes that the node class allows meets the requirements (%v) and holds the requests (%s)",
			len(built.Catalog.InstanceTypes), requirements, requests.Format(built.Axes()))
	}
	first := all[0].Offering
	return fmt.Sprintf("%d offerings would do and none is for sale, for example %s %s in zone %s: %s",
		len(all), all[0].Type.Name, first.CapacityType, first.Zone, first.Unavailable)
}

// Rank lists every available way to buy a machine that meets the requirements
// and holds the requests, best first: by price, then spot before on-demand,
// zonal before regional, by size name. Zones that are equal in all of that take
// turns from claim to claim, so that a fleet spreads over them.
func Rank(built *instancetype.Built, requirements model.Requirements, requests model.Resources, claim string) []Candidate {
	return inOrder(slices.DeleteFunc(matching(built, requirements, requests), func(c Candidate) bool { return !c.Offering.Available }), claim)
}

// WithoutCover are candidates in the order of Rank with their prices for machines that are not
// paid in advance.
func WithoutCover(candidates []Candidate, claim string) []Candidate {
	out := slices.Clone(candidates)
	for i := range out {
		out[i] = out[i].withoutCover()
	}
	return inOrder(out, claim)
}

func (c Candidate) withoutCover() Candidate {
	if c.Offering.Uncovered != 0 {
		bare := c.Offering.WithoutCover()
		c.Offering = &bare
	}
	return c
}

func inOrder(out []Candidate, claim string) []Candidate {
	turn := fnv.New32a()
	turn.Write([]byte(claim))
	first := int(turn.Sum32() % 3)
	slices.SortFunc(out, func(a, b Candidate) int {
		return cmp.Or(
			cmp.Compare(a.Offering.Price, b.Offering.Price),
			cmp.Compare(later(a.Offering.CapacityType != model.Spot), later(b.Offering.CapacityType != model.Spot)),
			cmp.Compare(later(a.Offering.Zone == instancetype.RegionalZone), later(b.Offering.Zone == instancetype.RegionalZone)),
			cmp.Compare(a.Type.Name, b.Type.Name),
			cmp.Compare(turnOf(a.Offering.Zone, first), turnOf(b.Offering.Zone, first)),
			cmp.Compare(a.Offering.Zone, b.Offering.Zone),
		)
	})
	return out
}

// Prefer orders what costs the same and is sold in the same way by a score,
// better ones first. Prices stay in charge.
func Prefer(candidates []Candidate, score func(Candidate) int) {
	slices.SortStableFunc(candidates, func(a, b Candidate) int {
		return cmp.Or(
			cmp.Compare(a.Offering.Price, b.Offering.Price),
			cmp.Compare(later(a.Offering.CapacityType != model.Spot), later(b.Offering.CapacityType != model.Spot)),
			cmp.Compare(score(b), score(a)),
		)
	})
}

func later(b bool) int {
	if b {
		return 1
	}
	return 0
}

// turnOf orders zones from a starting point; zones are numbered from 1 to 3, and 0 is none.
func turnOf(zone string, first int) int {
	if zone == "" { // a catalogue from elsewhere must not end the controller
		return 0
	}
	return (int(zone[len(zone)-1]-'0') + first) % 3
}

// typeMeets rules out types by the labels that all their offerings share.
func typeMeets(t *model.InstanceType, requirements model.Requirements, known map[string]bool) bool {
	for _, r := range requirements {
		if value, ok := t.Labels[r.Key]; ok {
			if !r.Matches(value, true) {
				return false
			}
			continue
		}
		if _, choice := t.Choices[r.Key]; choice || !known[r.Key] || offeringLabel(t, r.Key) {
			continue
		}
		if !r.Matches("", false) {
			return false
		}
	}
	return true
}

// offeringLabel reports whether offerings of the type decide the label.
func offeringLabel(t *model.InstanceType, key string) bool {
	for i := range t.Offerings {
		if _, ok := t.Offerings[i].Labels[key]; ok {
			return true
		}
	}
	return false
}

// offeringMeets checks what the offering adds, and that open choices can be made.
func offeringMeets(t *model.InstanceType, o *model.Offering, requirements model.Requirements) bool {
	for key, values := range t.Choices {
		if _, decided := o.Labels[key]; decided {
			continue
		}
		if !slices.ContainsFunc(values, func(v string) bool { return allMatch(requirements, key, v) }) {
			return false
		}
	}
	for _, r := range requirements {
		if value, ok := o.Labels[r.Key]; ok && !r.Matches(value, true) {
			return false
		}
	}
	return true
}

// allMatch reports whether every requirement on the key accepts the value.
func allMatch(requirements model.Requirements, key, value string) bool {
	for _, r := range requirements {
		if r.Key == key && !r.Matches(value, true) {
			return false
		}
	}
	return true
}
