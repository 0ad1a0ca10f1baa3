package noderules

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Anonymous is a class without what says which pods they are, and which ones its topology terms
// select.
func Anonymous(c *model.PodClass) model.PodClass {
	out := *c
	out.Pods, out.Owner, out.Namespace, out.Labels = nil, "", "", nil
	out.Spread = slices.Clone(c.Spread)
	for i := range out.Spread {
		out.Spread[i].Selector = nil
	}
	out.Affinity, out.AntiAffinity = withoutSelectors(c.Affinity), withoutSelectors(c.AntiAffinity)
	out.Preferences = slices.Clone(c.Preferences)
	for i := range out.Preferences {
		out.Preferences[i].Term = model.AffinityTerm{TopologyKey: c.Preferences[i].Term.TopologyKey}
	}
	return out
}

func withoutSelectors(terms []model.AffinityTerm) []model.AffinityTerm {
	out := make([]model.AffinityTerm, len(terms))
	for i := range terms {
		out[i].TopologyKey = terms[i].TopologyKey
	}
	return out
}
