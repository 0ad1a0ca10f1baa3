package explain

import (
	"math/bits"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// Explainer knows the state in which a plan left pods out.
type Explainer struct {
	Space  *feasible.Space
	World  *topology.World
	Ledger *feasible.Ledger
	// Scant is the first label of which a machine of the option with just one pod
	// of the class, which is this load, keeps too few values for its pool's
	// minValues, or nil.
	Scant func(class, option int, load []int64) *Scant
	// Shut are options that were not bought because the spread of other pods,
	// which cannot use them, would then exceed its maxSkew; nil means none.
	Shut feasible.Set

	// prices are those of all options, side by side, once somebody has asked.
	prices []model.Money
}

// Scant is a label of which too few different values are left.
type Scant struct {
	Key        string
	Have, Want int
}

// Explain fills in why pods of the class have no place. Size is one pod, rules
// are the class's topology rules with all preferences given up.
func (e *Explainer) Explain(u *model.Unschedulable, c *model.PodClass, size []int64, rules *topology.Rules) {
	checks := e.Space.Checks(c, size)
	checks = append(checks, e.late(u.Class, size, rules, checks)...)
	u.Pools = e.verdicts(checks)
	u.Nearest = e.nearest(u.Class, c, size, rules, checks)
	switch {
	case len(e.Space.Problem.Pools) == 0:
		u.Reason = model.ReasonNoPool
	case len(e.Space.Pools) == 0:
		u.Reason = model.ReasonPoolInvalid
	case u.Nearest != nil:
		u.Reason = u.Nearest.Reason
	case len(e.Space.Options) == 0:
		u.Reason = model.ReasonPoolRequirement
	default:
		u.Reason = model.ReasonNothingCompatible
	}
	u.Message = Line(e.Space.Problem, u)
}

// late are the checks that depend on the rest of the plan: what has run out
// meanwhile, minValues, and topology. They are asked only of options that
// passed everything else.
func (e *Explainer) late(class int, size []int64, rules *topology.Rules, early []feasible.Check) []feasible.Check {
	n := len(e.Space.Options)
	alive := feasible.Full(n)
	for _, c := range early {
		if c.Pass != nil {
			alive.And(c.Pass)
		}
	}
	if !alive.Any() {
		return nil
	}
	reasons := []model.Reason{
		model.ReasonQuota, model.ReasonReservation, model.ReasonLimit, model.ReasonNodeLimit,
		model.ReasonMinValues, model.ReasonSpread, model.ReasonAffinity, model.ReasonAntiAffinity,
	}
	pass := map[model.Reason]feasible.Set{}
	remove := func(o int, reason model.Reason) {
		if pass[reason] == nil {
			pass[reason] = feasible.Full(n)
		}
		pass[reason].Remove(o)
	}
	for o := range alive.All {
		if line := e.exhausted(o); line >= 0 {
			remove(o, e.Space.Lines[line].Reason)
		}
		if e.Scant(class, o, size) != nil {
			remove(o, model.ReasonMinValues)
		}
		if reason := e.refuses(class, rules, o); reason != "" {
			remove(o, reason)
		}
	}
	var out []feasible.Check
	for _, r := range reasons {
		out = append(out, feasible.Check{Reason: r, Pass: pass[r]})
	}
	return out
}

// refuses is why topology keeps pods of a class off a machine of the option, if it
// does: the reason of the first rule.
func (e *Explainer) refuses(class int, rules *topology.Rules, option int) model.Reason {
	if reason := e.World.Refuses(class, rules, bought(option)); reason != "" {
		return reason
	}
	if r := e.chance(rules, option); r != nil {
		return r.Reason
	}
	if e.Shut != nil && e.Shut.Has(option) {
		return model.ReasonSpread
	}
	return ""
}

// refusal puts what refuses returns into figures, or is nil.
func (e *Explainer) refusal(class int, rules *topology.Rules, option int) *topology.Refusal {
	if r := e.World.Refusal(class, rules, bought(option)); r != nil {
		return r
	}
	if r := e.chance(rules, option); r != nil {
		return r
	}
	if e.Shut != nil && e.Shut.Has(option) {
		return &topology.Refusal{Reason: model.ReasonSpread, Have: "other pods spread that cannot go there", Want: "a domain that they can use too"}
	}
	return nil
}

// bought is a new machine of an option.
func bought(option int) topology.Place { return topology.Place{ID: -1, Node: -1, Option: option} }

// chance refuses machines of which nobody knows in which domain they will be,
// because their pool says of a label only that it exists.
func (e *Explainer) chance(rules *topology.Rules, option int) *topology.Refusal {
	refusal := func(key int, reason model.Reason) *topology.Refusal {
		if !e.Space.ByChance(key, option) {
			return nil
		}
		return &topology.Refusal{Reason: reason, Have: "any value of " + e.Space.Keys()[key], Want: "a NodePool that names the values"}
	}
	for i := range rules.Spread {
		if r := refusal(rules.Spread[i].Key, model.ReasonSpread); r != nil {
			return r
		}
	}
	for i := range rules.Affinity {
		if r := refusal(rules.Affinity[i].Key, model.ReasonAffinity); r != nil {
			return r
		}
	}
	for _, c := range rules.Empty {
		if r := refusal(e.World.KeyOf(topology.Domain{Counter: c}), model.ReasonAntiAffinity); r != nil {
			return r
		}
	}
	return nil
}

// exhausted returns the first line that leaves no room for one more machine of
// the option, or -1.
func (e *Explainer) exhausted(option int) int {
	for _, u := range e.Space.Options[option].Uses {
		if u.Amount > e.Ledger.Left(u.Line) {
			return u.Line
		}
	}
	return -1
}

// verdicts counts, per pool of the problem, what each check removed first.
func (e *Explainer) verdicts(checks []feasible.Check) []model.PoolVerdict {
	s := e.Space
	out := make([]model.PoolVerdict, 0, len(s.Problem.Pools))
	for i := range s.Problem.Pools {
		if msg, bad := s.PoolErrors[i]; bad {
			out = append(out, model.PoolVerdict{Pool: i, Removed: []model.ReasonCount{{Reason: model.ReasonPoolInvalid, Detail: msg}}})
		}
	}
	alive := feasible.Full(len(s.Options))
	perPool := make([]model.PoolVerdict, len(s.Pools))
	before := make([]int, len(s.Pools))
	for i, p := range s.Pools {
		raw := s.OfferingCount(p.Index)
		perPool[i] = model.PoolVerdict{Pool: p.Index, Offerings: raw}
		before[i] = s.Offerings(&s.Pools[i], alive)
		if n := raw - before[i]; n > 0 {
			perPool[i].Removed = append(perPool[i].Removed, model.ReasonCount{Reason: model.ReasonPoolRequirement, Count: n})
		}
	}
	for _, c := range checks {
		if c.Pass == nil {
			continue
		}
		alive.And(c.Pass)
		for i := range s.Pools {
			if before[i] == 0 {
				continue
			}
			now := s.Offerings(&s.Pools[i], alive)
			if n := before[i] - now; n > 0 {
				perPool[i].Removed = append(perPool[i].Removed, model.ReasonCount{Reason: c.Reason, Count: n})
			}
			before[i] = now
		}
	}
	return append(out, perPool...)
}

// fewestFailures returns the options that fail the fewest checks.
func fewestFailures(n int, checks []feasible.Check) feasible.Set {
	// failures[k] are the options that fail more than k checks.
	var failures [3]feasible.Set
	for k := range failures {
		failures[k] = feasible.NewSet(n)
	}
	full := feasible.Full(n)
	for _, c := range checks {
		if c.Pass == nil {
			continue
		}
		for w := range full {
			fail := full[w] &^ c.Pass[w]
			if bits.OnesCount64(fail) == 0 {
				continue
			}
			failures[2][w] |= failures[1][w] & fail
			failures[1][w] |= failures[0][w] & fail
			failures[0][w] |= fail
		}
	}
	for k := 1; k < len(failures); k++ {
		few := full.Clone()
		few.AndNot(failures[k])
		if few.Any() {
			return few
		}
	}
	return full
}
