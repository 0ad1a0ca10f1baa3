package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// leftOut are the NodePools that buy nothing and would take pods of a class, by requirements,
// taints and what is on sale.
func (e *Explainer) leftOut(c *model.PodClass) []int {
	var out []int
	for i := range e.Space.Problem.LeftOut {
		if e.wouldTake(&e.Space.Problem.LeftOut[i], c) {
			out = append(out, i)
		}
	}
	return out
}

func (e *Explainer) wouldTake(pool *model.LeftOut, c *model.PodClass) bool {
	if model.Untolerated(pool.Taints, c.Tolerations) != nil || pool.Catalog >= 0 && soldOut(&e.Space.Problem.Catalogs[pool.Catalog]) {
		return false
	}
	meets := func(rs model.Requirements) bool { return e.meet(pool, rs) }
	return meets(c.NodeRequirements) && (len(c.NodeAlternatives) == 0 || slices.ContainsFunc(c.NodeAlternatives, meets))
}

// soldOut reports whether nothing of the sizes of a catalogue is on sale. One without sizes
// is not: that is why its NodePool is left out.
func soldOut(c *model.Catalog) bool {
	return len(c.InstanceTypes) > 0 &&
		!slices.ContainsFunc(c.InstanceTypes, func(t model.InstanceType) bool { return len(t.Offerings) > 0 })
}

// meet reports whether machines of the NodePool may meet each of a pod's requirements. That
// one machine meets them all is not looked at.
func (e *Explainer) meet(pool *model.LeftOut, rs model.Requirements) bool {
	return !slices.ContainsFunc(rs, func(r model.Requirement) bool { return !e.mayMeet(pool, r) })
}

// mayMeet reports whether a machine of the NodePool may meet one requirement of a pod. Labels
// that the NodePool does not name come with the machine or are absent.
func (e *Explainer) mayMeet(pool *model.LeftOut, r model.Requirement) bool {
	if r.Key == model.LabelNodePool {
		return r.Matches(pool.Pool, true)
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
	decided, met := e.sold(pool.Catalog, r)
	return met || named && !decided
}

// saleQuestion is whether something in a catalogue meets a requirement.
type saleQuestion struct {
	catalog     int
	requirement string
}

// saleAnswer is what [Explainer.sold] returns.
type saleAnswer struct{ decided, met bool }

// sold reports whether the catalogue decides the label of a requirement, and whether
// something in it meets the requirement. Where the catalogue is not known (-1), one of the
// others does: all are of one region. Without any, machines bring what is of the cloud's or
// Kubernetes' domains.
func (e *Explainer) sold(catalog int, r model.Requirement) (decided, met bool) {
	all := e.Space.Problem.Catalogs
	if len(all) == 0 {
		return false, ofMachine(r.Key) || r.Matches("", false)
	}
	ask := saleQuestion{catalog, r.String()}
	answer, known := e.sales[ask]
	if !known {
		if catalog >= 0 {
			all = all[catalog : catalog+1]
		}
		for i := range all {
			answer.decided = answer.decided || decides(&all[i], r.Key)
			answer.met = answer.met || offered(&all[i], r)
		}
		if e.sales == nil {
			e.sales = map[saleQuestion]saleAnswer{}
		}
		e.sales[ask] = answer
	}
	return answer.decided, answer.met
}

// decides reports whether machines of a catalogue carry a label, or lack it whatever a
// NodePool asks for.
func decides(c *model.Catalog, key string) bool {
	return slices.Contains(c.LabelKeys, key) || slices.ContainsFunc(c.InstanceTypes, func(t model.InstanceType) bool {
		_, own := t.Labels[key]
		return own || len(t.Choices[key]) > 0 || slices.ContainsFunc(t.Offerings, func(o model.Offering) bool { return o.Labels[key] != "" })
	})
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
// what is in the way is then the NodePool that would and buys nothing.
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
// the first that is left out, or else the first whose requirements nothing on sale meets.
func (e *Explainer) blame(u *model.Unschedulable, c *model.PodClass) {
	if !elsewhere(u.Reason) {
		return
	}
	if len(u.LeftOut) > 0 {
		blameLeftOut(e.Space.Problem, u)
		return
	}
	for _, p := range e.Space.Pools {
		if pool := &e.Space.Problem.Pools[p.Index]; e.Space.Offerings(&p, bitset.Full(len(e.Space.Options))) == 0 &&
			e.wouldTake(&model.LeftOut{Pool: pool.Name, Requirements: pool.Requirements, Taints: pool.Taints, Catalog: pool.Catalog}, c) {
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

// blameLeftOut makes the first NodePool that would take the pods and buys nothing the reason.
func blameLeftOut(p *model.Problem, u *model.Unschedulable) {
	pool := &p.LeftOut[u.LeftOut[0]]
	u.Reason, u.Nearest = pool.Reason, nil
	u.Message = fmt.Sprintf("NodePool %s, which would take it, buys nothing: %s", pool.Pool, pool.Message)
}
