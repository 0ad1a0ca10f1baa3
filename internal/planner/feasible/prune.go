package feasible

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// manyOptions is from how many options on NodePools are left out that no class can use.
// Below it all of them are compiled: they cost little, and say more exactly what keeps
// pods from them.
const manyOptions = 500_000

// explainingPools is how many NodePools are kept for classes which none suits, so that it
// can be said why.
const explainingPools = 8

// prune returns the NodePools that are worth compiling, in their order: those with nodes,
// those whose taints and labels admit a class, and a few of the others for classes which
// none admits. Of NodePools that differ only in their names, the first stands for all
// where neither limits nor pods tell them apart; ties break by name in any case.
func prune(p *model.Problem, order []int) []int {
	hasNodes := map[string]bool{}
	for i := range p.Nodes {
		hasNodes[p.Nodes[i].Pool] = true
	}
	rules := classRules(p)
	used, hopeless := make([]bool, len(p.Pools)), make([]bool, len(rules))
	for r := range rules {
		hopeless[r] = true
		for _, i := range order {
			if rules[r].admits(&p.Pools[i]) {
				used[i], hopeless[r] = true, false
			}
		}
	}
	spare := 0
	if slices.Contains(hopeless, true) {
		spare = explainingPools
	}
	byName := slices.ContainsFunc(p.Classes, func(c model.PodClass) bool { return namesPools(&c) })
	seen := map[string]bool{}
	var out []int
	for _, i := range order {
		pool := &p.Pools[i]
		keep := hasNodes[pool.Name]
		switch {
		case keep:
		case !used[i]:
			keep = spare > 0
			spare--
		case byName || len(pool.Limits) > 0 || pool.NodeLimit >= 0 || pool.CostLimit != nil:
			keep = true
		default:
			offer := string(model.AppendKey(nil, nameless(pool)))
			keep = !seen[offer]
			seen[offer] = true
		}
		if keep {
			out = append(out, i)
		}
	}
	return out
}

// nameless is a pool without what is its own alone.
func nameless(pool *model.Pool) *model.Pool {
	out := *pool
	out.Name, out.Labels, out.Usage, out.Nodes, out.Cost = "", nil, nil, 0, 0
	own := func(r model.Requirement) bool { return r.Key == model.LabelNodePool }
	out.Requirements = slices.DeleteFunc(slices.Clone(pool.Requirements), own)
	return &out
}

// namesPools reports whether pods ask for NodePools by name, or are spread over them.
func namesPools(c *model.PodClass) bool {
	names := func(rs model.Requirements) bool {
		return slices.ContainsFunc(rs, func(r model.Requirement) bool { return r.Key == model.LabelNodePool })
	}
	return names(c.NodeRequirements) || slices.ContainsFunc(c.NodeAlternatives, names) ||
		slices.ContainsFunc(c.NodePreferences, func(n model.NodePreference) bool { return names(n.Requirements) }) ||
		slices.ContainsFunc(c.Spread, func(s model.SpreadConstraint) bool { return s.TopologyKey == model.LabelNodePool }) ||
		slices.ContainsFunc(c.Affinity, func(t model.AffinityTerm) bool { return t.TopologyKey == model.LabelNodePool }) ||
		slices.ContainsFunc(c.AntiAffinity, func(t model.AffinityTerm) bool { return t.TopologyKey == model.LabelNodePool }) ||
		slices.ContainsFunc(c.Preferences, func(t model.AffinityPreference) bool { return t.Term.TopologyKey == model.LabelNodePool })
}

// nodeRules are what a class asks of NodePools.
type nodeRules struct {
	tolerations []model.Toleration
	// alternatives are requirements of which one list must hold.
	alternatives []model.Requirements
}

// classRules are the different rules of all classes, in the order of their first classes.
func classRules(p *model.Problem) []nodeRules {
	var out []nodeRules
	seen := map[string]bool{}
	for i := range p.Classes {
		c := &p.Classes[i]
		rules := nodeRules{tolerations: c.Tolerations, alternatives: []model.Requirements{c.NodeRequirements}}
		if len(c.NodeAlternatives) > 0 {
			rules.alternatives = nil
			for _, rs := range c.NodeAlternatives {
				rules.alternatives = append(rules.alternatives, slices.Concat(c.NodeRequirements, rs))
			}
		}
		key := string(model.AppendKey(nil, &rules))
		if !seen[key] {
			seen[key] = true
			out = append(out, rules)
		}
	}
	return out
}

// admits reports whether a pool may suit; where it is unsure, it says so.
func (r *nodeRules) admits(pool *model.Pool) bool {
	if model.Untolerated(pool.Taints, r.tolerations) != nil {
		return false
	}
	return slices.ContainsFunc(r.alternatives, func(asked model.Requirements) bool {
		return !slices.ContainsFunc(asked, func(a model.Requirement) bool { return excludes(pool, &a) })
	})
}

// excludes reports whether no value that the pool allows for a label meets what is asked
// of it.
func excludes(pool *model.Pool, asked *model.Requirement) bool {
	for i := range pool.Requirements {
		own := &pool.Requirements[i]
		if own.Key == asked.Key && own.Operator == model.In &&
			!slices.ContainsFunc(own.Values, func(v string) bool { return asked.Matches(v, true) }) {
			return true
		}
	}
	return false
}
