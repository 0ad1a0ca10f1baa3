package noderules

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Rules are what a class asks of NodePools and nodes.
type Rules struct {
	tolerations []model.Toleration
	// alternatives are requirements of which one list must hold.
	alternatives []model.Requirements
}

// Of are the rules of a class.
func Of(c *model.PodClass) Rules {
	rules := Rules{tolerations: c.Tolerations, alternatives: []model.Requirements{c.NodeRequirements}}
	if len(c.NodeAlternatives) > 0 {
		rules.alternatives = nil
		for _, rs := range c.NodeAlternatives {
			rules.alternatives = append(rules.alternatives, slices.Concat(c.NodeRequirements, rs))
		}
	}
	return rules
}

// OfDaemon are the rules of a DaemonSet.
func OfDaemon(d *model.Daemon) Rules {
	rules := Rules{tolerations: d.Tolerations, alternatives: d.Requirements}
	if len(rules.alternatives) == 0 {
		rules.alternatives = []model.Requirements{nil}
	}
	return rules
}

// Alternatives are lists of requirements of which one must hold.
func (r *Rules) Alternatives() []model.Requirements { return r.alternatives }

// Key is the same for equal rules alone.
func (r *Rules) Key() string { return string(model.AppendKey(nil, r)) }

// Admits reports whether a pool may suit; where it is unsure, it says so.
func (r *Rules) Admits(pool *model.Pool, cloud *CloudLabels) bool {
	if model.Untolerated(pool.Taints, r.tolerations) != nil {
		return false
	}
	return slices.ContainsFunc(r.alternatives, func(asked model.Requirements) bool {
		return !slices.ContainsFunc(asked, func(a model.Requirement) bool { return cloud.excludes(pool, &a) })
	})
}

// AdmitsNode reports whether a node may suit.
func (r *Rules) AdmitsNode(n *model.Node) bool {
	if model.Untolerated(n.Taints, r.tolerations) != nil {
		return false
	}
	return slices.ContainsFunc(r.alternatives, func(asked model.Requirements) bool {
		return !slices.ContainsFunc(asked, func(a model.Requirement) bool {
			value, present := NodeLabel(n, a.Key)
			return !a.Matches(value, present)
		})
	})
}

// Without are the rules without tolerations (every taint is tolerated then) or without
// requirements.
func (r *Rules) Without(taints, requirements bool) Rules {
	out := *r
	if taints {
		out.tolerations = []model.Toleration{{Exists: true}}
	}
	if requirements {
		out.alternatives = []model.Requirements{nil}
	}
	return out
}

// Demanded calls yield for each requirement that must hold in any case.
func (r *Rules) Demanded(yield func(*model.Requirement)) {
	if len(r.alternatives) == 1 {
		r.Asked(yield)
	}
}

// Asked calls yield for each requirement of the rules.
func (r *Rules) Asked(yield func(*model.Requirement)) {
	for _, rs := range r.alternatives {
		for i := range rs {
			yield(&rs[i])
		}
	}
}
