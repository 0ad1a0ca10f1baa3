// Package poollint says what is unwise about NodePools where the object alone does not
// tell: it takes the catalogue, the quota and the other NodePools. It serves nap lint,
// nap doctor and the controller.
//
// Start with [Lint].
package poollint

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// choice is an offering that a NodePool may buy.
type choice struct {
	size     *model.InstanceType
	offering *model.Offering
}

// choices lists what the requirements of a NodePool leave of a catalogue, available now
// or not. A label that no size has is the NodePool's own: its nodes carry it.
func choices(p *fleet.Pool, c *fleet.Catalog) []choice {
	return slices.Collect(eachChoice(p, c))
}

// eachChoice yields what choices lists.
func eachChoice(p *fleet.Pool, c *fleet.Catalog) iter.Seq[choice] {
	asked := asks(p, c)
	return func(yield func(choice) bool) {
		for i := range c.InstanceTypes {
			t := &c.InstanceTypes[i]
			for j := range t.Offerings {
				if o := &t.Offerings[j]; offersAll(t, o, asked) && !yield(choice{t, o}) {
					return
				}
			}
		}
	}
}

// asks are the requirements of a NodePool that some size of a catalogue decides.
func asks(p *fleet.Pool, c *fleet.Catalog) model.Requirements {
	return slices.DeleteFunc(slices.Clone(p.Requirements), func(r model.Requirement) bool { return !decides(c, r.Key) })
}

func offersAll(t *model.InstanceType, o *model.Offering, asked model.Requirements) bool {
	for i := range asked {
		if !offers(t, o, &asked[i]) {
			return false
		}
	}
	return true
}

// decides reports whether some size of a catalogue has a label, or lets its buyer choose it.
func decides(c *fleet.Catalog, key string) bool {
	switch key {
	case model.LabelInstanceType, model.LabelZone, model.LabelCapacityType:
		return true
	}
	for i := range c.InstanceTypes {
		t := &c.InstanceTypes[i]
		if _, has := t.Labels[key]; has {
			return true
		}
		if _, choice := t.Choices[key]; choice {
			return true
		}
		for j := range t.Offerings {
			if _, has := t.Offerings[j].Labels[key]; has {
				return true
			}
		}
	}
	return false
}

// offers reports whether an offering can have a label as a requirement wants it.
func offers(t *model.InstanceType, o *model.Offering, r *model.Requirement) bool {
	if value, has := o.Labels[r.Key]; has {
		return r.Matches(value, true)
	}
	if values, has := t.Choices[r.Key]; has {
		return slices.ContainsFunc(values, func(v string) bool { return r.Matches(v, true) })
	}
	switch r.Key {
	case model.LabelInstanceType:
		return r.Matches(t.Name, true)
	case model.LabelZone:
		return r.Matches(o.Zone, true)
	case model.LabelCapacityType:
		return r.Matches(string(o.CapacityType), true)
	}
	value, has := t.Labels[r.Key]
	return r.Matches(value, has)
}

// Nothing says why a NodePool can buy nothing of a catalogue; empty where it can. advice
// says of a requirement what to write instead, or "".
func Nothing(p *fleet.Pool, c *fleet.Catalog, advice func(model.Requirement) string) string {
	if p.Invalid != "" {
		return p.Invalid
	}
	for range eachChoice(p, c) {
		return ""
	}
	for _, r := range p.Requirements {
		if text := advice(r); text != "" {
			return text
		}
	}
	asked := slices.DeleteFunc(slices.Clone(p.Requirements), func(r model.Requirement) bool {
		return !decides(c, r.Key) || r.Key == model.LabelMode && r.Operator == model.NotIn
	})
	return "no offering of the region has " + asked.String()
}

// Advice says of a requirement that no offering can meet why, and what to write instead;
// empty where the requirement alone does not tell. The catalogue is the one of the
// NodePool; what is known of sizes that it lacks is the rest.
func Advice(c *fleet.Catalog, lacking Lacking) func(model.Requirement) string {
	return func(r model.Requirement) string {
		if r.Operator != model.In {
			return ""
		}
		switch r.Key {
		case model.LabelInstanceType, "karpenter.azure.com/sku-name":
			return sizeAdvice(r, c, lacking)
		case model.LabelZone:
			return zoneAdvice(r, c)
		}
		return ""
	}
}

// sizeAdvice says why the sizes of a requirement cannot be bought.
func sizeAdvice(r model.Requirement, c *fleet.Catalog, lacking Lacking) string {
	var out []string
	for _, name := range r.Values {
		if has(c, name) {
			return ""
		}
		out = append(out, lacking.unbought(name))
	}
	return strings.Join(out, "; ")
}

// has reports whether a catalogue has a size.
func has(c *fleet.Catalog, size string) bool {
	return slices.ContainsFunc(c.InstanceTypes, func(t model.InstanceType) bool { return strings.EqualFold(t.Name, size) })
}

// Lacking is what is known of sizes that a catalogue lacks.
type Lacking struct {
	// Excluded says why a size that the region sells is left out of the catalogue, or ""; nil
	// where nothing is known of that.
	Excluded func(size string) string
	// Unknown reports whether the catalogue lacks a size that the region may sell all the same,
	// as nap's built-in table does; nil for a catalogue of all that the region sells.
	Unknown func(size string) bool
}

// unbought says why a size that the catalogue lacks cannot be bought.
func (l Lacking) unbought(size string) string {
	if l.Excluded != nil {
		if why := l.Excluded(size); why != "" {
			return "size " + size + " cannot be bought: " + why
		}
	}
	if l.Unknown != nil && l.Unknown(size) {
		return "nap's built-in table lacks size " + size + " and does not tell whether the region sells it"
	}
	return "size " + size + " cannot be bought: the region sells none of that name that AKS takes, which has at least 2 vCPUs"
}

// namesSizes reports whether a requirement names sizes.
func namesSizes(r model.Requirement) bool {
	return r.Operator == model.In && (r.Key == model.LabelInstanceType || r.Key == "karpenter.azure.com/sku-name")
}

// UnknownSizes are the sizes that a NodePool names, which its catalogue lacks and of which
// nothing is known.
func UnknownSizes(p *Pool) []string {
	var out []string
	for _, r := range p.Requirements {
		for _, name := range r.Values {
			if namesSizes(r) && !has(p.Catalog, name) && p.Unknown != nil && p.Unknown(name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// noZone is the zone of machines that are in none.
const noZone = "0"

// zoneAdvice names the zones that there are.
func zoneAdvice(r model.Requirement, c *fleet.Catalog) string {
	zones := map[string]bool{}
	for i := range c.InstanceTypes {
		for j := range c.InstanceTypes[i].Offerings {
			if zone := c.InstanceTypes[i].Offerings[j].Zone; zone != noZone {
				zones[zone] = true
			}
		}
	}
	if slices.ContainsFunc(r.Values, func(v string) bool { return zones[v] }) {
		return ""
	}
	return fmt.Sprintf("no zone is called %s; zones are %s", strings.Join(r.Values, ", "), strings.Join(slices.Sorted(maps.Keys(zones)), ", "))
}
