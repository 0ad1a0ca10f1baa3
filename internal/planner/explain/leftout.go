package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// closed are the closed pools that pods of a class would take, by their requirements and
// taints; which sizes they could buy is not looked at.
func closed(p *model.Problem, c *model.PodClass) []int {
	var out []int
	for i := range p.Closed {
		if wouldTake(&p.Closed[i], c) {
			out = append(out, i)
		}
	}
	return out
}

func wouldTake(pool *model.ClosedPool, c *model.PodClass) bool {
	if model.Untolerated(pool.Taints, c.Tolerations) != nil {
		return false
	}
	meets := func(rs model.Requirements) bool { return meet(pool, rs) }
	return meets(c.NodeRequirements) && (len(c.NodeAlternatives) == 0 || slices.ContainsFunc(c.NodeAlternatives, meets))
}

// meet reports whether a machine of the pool may meet all requirements of a pod.
func meet(pool *model.ClosedPool, rs model.Requirements) bool {
	return !slices.ContainsFunc(rs, func(r model.Requirement) bool { return !mayMeet(pool, r) })
}

// mayMeet reports whether a machine of the pool may meet one requirement of a pod. Labels
// that the pool does not name come from the machine where they are of the cloud's or
// Kubernetes' domains, and are absent elsewhere.
func mayMeet(pool *model.ClosedPool, r model.Requirement) bool {
	if r.Key == model.LabelNodePool {
		return r.Matches(pool.Name, true)
	}
	named := false
	for _, own := range pool.Requirements {
		if own.Key != r.Key {
			continue
		}
		named = true
		if !overlap(own, r) {
			return false
		}
	}
	return named || ofMachine(r.Key) || r.Matches("", false)
}

// overlap reports whether a value may meet both; of two that name no values it is assumed.
func overlap(x, y model.Requirement) bool {
	if x.Operator != model.In {
		x, y = y, x
	}
	if x.Operator != model.In {
		return true
	}
	return slices.ContainsFunc(x.Values, func(v string) bool { return y.Matches(v, true) })
}

// ofMachine reports whether a label is of a domain whose labels machines bring.
func ofMachine(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	for _, d := range []string{"kubernetes.io", "karpenter.sh", "karpenter.azure.com", "azure.com"} {
		if domain == d || strings.HasSuffix(domain, "."+d) {
			return true
		}
	}
	return false
}

// elsewhere are the reasons for which no other pool would take a pod whatever it could buy:
// what is in the way is then the closed pool that would.
func elsewhere(r model.Reason) bool {
	switch r {
	case model.ReasonPodRequirement, model.ReasonTaint, model.ReasonPoolRequirement, model.ReasonNothingCompatible,
		model.ReasonNoPool, model.ReasonPoolInvalid:
		return true
	default:
		return false
	}
}

// blame makes the pool that would take the pods the reason, where no pool that can buy would:
// the first closed one, or else the first whose requirements nothing on sale meets.
func (e *Explainer) blame(u *model.Unschedulable, c *model.PodClass) {
	if !elsewhere(u.Reason) {
		return
	}
	if len(u.Closed) > 0 {
		blameClosed(e.Space.Problem, u)
		return
	}
	for _, p := range e.Space.Pools {
		if pool := &e.Space.Problem.Pools[p.Index]; e.Space.Offerings(&p, feasible.Full(len(e.Space.Options))) == 0 &&
			wouldTake(&model.ClosedPool{Name: pool.Name, Requirements: pool.Requirements, Taints: pool.Taints}, c) {
			blameEmpty(e.Space.Problem, u, p.Index)
			return
		}
	}
}

// blameEmpty makes a pool the reason whose requirements nothing on sale meets. Its verdict
// becomes the first.
func blameEmpty(p *model.Problem, u *model.Unschedulable, pool int) {
	at := slices.IndexFunc(u.Pools, func(v model.PoolVerdict) bool { return v.Pool == pool })
	own := u.Pools[at]
	u.Pools = slices.Insert(slices.Delete(slices.Clone(u.Pools), at, at+1), 0, own)
	u.Reason, u.Nearest, u.Message = model.ReasonPoolRequirement, nil, matchesNothing(p, &own)
}

// blameClosed makes the first closed pool that would take the pods the reason.
func blameClosed(p *model.Problem, u *model.Unschedulable) {
	pool := &p.Closed[u.Closed[0]]
	u.Reason, u.Nearest = pool.Reason, nil
	u.Message = fmt.Sprintf("NodePool %s, which would take it, buys nothing: %s", pool.Name, pool.Message)
}
