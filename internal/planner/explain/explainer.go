package explain

import (
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// Explainer knows the state in which a plan left pods out.
type Explainer struct {
	Space  *feasible.Space
	Counts *topology.Counts
	Ledger *feasible.Ledger
	// Scant is the first label of which a machine of the option with just one pod
	// of the class, which is this load, keeps too few values for its pool's
	// minValues, or nil.
	Scant func(class, option int, load []int64) *Scant
	// Waits reports whether pods that a class must be near have no place either.
	Waits func(*topology.Rules) bool
	// Shut are options that were not bought because the spread of other pods,
	// which cannot use them, would then exceed its maxSkew; nil means none.
	Shut bitset.Set

	// prices are those of all options, side by side, once they are needed.
	prices []model.Money
	// fixes are the remedies of all reasons, once asked for.
	fixes map[model.Reason]string
	// sales are what was asked of catalogues already.
	sales map[saleQuestion]saleAnswer
}

// Scant is a label of which too few different values are left.
type Scant struct {
	Key        string
	Have, Want int
}

// Explain fills in why pods of the class have no place. Rules are the class's
// topology rules with all preferences given up.
//
// The answer is about one pod of the class in the state after planning. Every offering is
// counted once, under the first check that it fails; the reason is that of the nearest
// miss, where there is one.
// Precondition: the class is valid, and u has its index.
func (e *Explainer) Explain(u *model.Unschedulable, c *model.PodClass, rules *topology.Rules) {
	pod := e.Space.Pod(c)
	checks := e.Space.Checks(pod, e.Ledger)
	checks = append(checks, e.late(u.Class, pod, rules, checks)...)
	u.Pools = append(e.verdicts(checks), e.unusable(c)...)
	u.Nearest = e.nearest(pod, rules, checks)
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
	u.Message, u.LeftOut = verdict(e.Space.Problem, u), e.leftOut(c)
	e.blame(u, c)
}

// late are the checks that depend on the rest of the plan, in the order in which
// they are reported: what has run out meanwhile, minValues, and topology. They cost
// a question per option, where the early ones cost one per set, so that they are asked only
// about options that may come nearest: those of the fewest changes, until what was asked
// makes none that was not asked one of these.
func (e *Explainer) late(class int, pod *feasible.Pod, rules *topology.Rules, early []feasible.Check) []feasible.Check {
	checks := slices.Clone(early)
	for _, c := range early {
		if feasible.RunsOut(c.Reason) {
			checks = append(checks, feasible.Check{Reason: c.Reason, Figures: c.Figures})
		}
	}
	checks = append(checks, feasible.Check{
		Reason: model.ReasonMinValues, Figures: func(o int) feasible.Miss { return e.scant(class, o, pod) },
	})
	for _, reason := range []model.Reason{model.ReasonSpread, model.ReasonAffinity, model.ReasonAntiAffinity} {
		checks = append(checks, feasible.Check{Reason: reason, Figures: func(o int) feasible.Miss { return e.apart(rules, o) }})
	}
	remove := func(o int, reason model.Reason) {
		if slices.ContainsFunc(early, func(c feasible.Check) bool { return c.Reason == reason && c.Pass != nil && !c.Pass.Has(o) }) {
			return // it counts as a change already
		}
		late := checks[len(early):]
		c := &late[slices.IndexFunc(late, func(c feasible.Check) bool { return c.Reason == reason })]
		if c.Pass == nil {
			c.Pass = bitset.Full(len(e.Space.Options))
			c.Changes = []bitset.Set{c.Pass}
		}
		c.Pass.Remove(o)
	}
	asked, within := bitset.New(len(e.Space.Options)), e.reachable(pod)
	for {
		ask := leastChanged(within, checks)
		ask.AndNot(asked)
		if !ask.Any() {
			return checks[len(early):]
		}
		for o := range ask.All {
			asked.Add(o)
			if line := e.exhausted(o); line >= 0 {
				remove(o, e.Space.Supply.Lines[line].Reason)
			}
			if e.Scant(class, o, pod.Size) != nil {
				remove(o, model.ReasonMinValues)
			}
			if reason := e.refuses(rules, o); reason != "" {
				remove(o, reason)
			}
		}
	}
}

// scant puts into figures that too few values of a label are left. The figures are empty
// if enough are.
func (e *Explainer) scant(class, option int, pod *feasible.Pod) feasible.Miss {
	short := e.Scant(class, option, pod.Size)
	if short == nil {
		return feasible.Miss{}
	}
	pool := e.Space.Problem.Pools[e.Space.Options[option].Pool].Name
	return feasible.Miss{
		Have: fmt.Sprintf("%s of %s among the offerings that hold the pod", plural(short.Have, "value"), short.Key),
		Want: fmt.Sprintf("%d (minValues of NodePool %s)", short.Want, pool),
	}
}

// apart puts into figures why topology keeps pods of a class off an option.
func (e *Explainer) apart(rules *topology.Rules, option int) feasible.Miss {
	r := e.refusal(rules, option)
	if r == nil {
		return feasible.Miss{}
	}
	return feasible.Miss{Have: r.Have, Want: r.Want, Fix: r.Fix}
}

// refuses is why topology keeps pods of a class off a machine of the option, if it
// does: the reason of the first rule, or the empty one. It asks the same as refusal, which
// is slower because it makes texts.
func (e *Explainer) refuses(rules *topology.Rules, option int) model.Reason {
	if reason := e.Counts.Refuses(rules, bought(option)); reason != "" {
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
func (e *Explainer) refusal(rules *topology.Rules, option int) *topology.Refusal {
	if r := e.Counts.Refusal(rules, bought(option)); r != nil {
		return r
	}
	if r := e.chance(rules, option); r != nil {
		return r
	}
	if e.Shut != nil && e.Shut.Has(option) {
		return &topology.Refusal{
			Reason: model.ReasonSpread, Have: "other pods spread that cannot go there", Want: "a domain that they can use too",
		}
	}
	return nil
}

// bought is a new machine of an option.
func bought(option int) topology.Place { return topology.Place{ID: -1, Node: -1, Option: option} }

// chance refuses machines whose domain is not known beforehand,
// because their pool says of a label only that it exists.
func (e *Explainer) chance(rules *topology.Rules, option int) *topology.Refusal {
	refusal := func(key int, reason model.Reason) *topology.Refusal {
		if !e.Space.Labels.ByChance(key, option) {
			return nil
		}
		return &topology.Refusal{Reason: reason, Have: "any value of " + e.Space.Labels.Keys()[key], Want: "a NodePool that names the values"}
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
	for _, a := range rules.AntiAffinity {
		if r := refusal(a.Key, model.ReasonAntiAffinity); r != nil {
			return r
		}
	}
	return nil
}

// exhausted returns the first line that leaves no room for one more machine of
// the option, or -1.
func (e *Explainer) exhausted(option int) int {
	for _, u := range e.Space.Uses(option) {
		if u.Amount > e.Ledger.Left(u.Line) {
			return u.Line
		}
	}
	return -1
}

// verdicts counts, per pool of the problem, what each check removed first. Invalid pools
// come first and have their error instead of counts. What the pool's own requirements
// leave out of its catalogue counts as removed by these.
//
// Postcondition: for a valid pool, the counts add up to its offerings less those that
// passed every check.
func (e *Explainer) verdicts(checks []feasible.Check) []model.PoolVerdict {
	s := e.Space
	out := make([]model.PoolVerdict, 0, len(s.Problem.Pools))
	for i := range s.Problem.Pools {
		if msg, bad := s.PoolErrors[i]; bad {
			out = append(out, model.PoolVerdict{Pool: i, Removed: []model.ReasonCount{{Reason: model.ReasonPoolInvalid, Detail: msg}}})
		}
	}
	for i, v := range count(s, checks) {
		out = append(out, v)
		for _, other := range s.Pools[i].Alike {
			v.Pool = other
			out = append(out, v)
		}
	}
	return out
}

// unusable are the verdicts on the pools that the plan did not look at because no class can
// use them: the rules on the pod alone keep it from all that they sell.
func (e *Explainer) unusable(c *model.PodClass) []model.PoolVerdict {
	if len(e.Space.Unused) == 0 {
		return nil
	}
	whole := e.Space.Whole()
	if whole == e.Space {
		return nil // there are too many
	}
	return slices.DeleteFunc(count(whole, whole.Checks(whole.Pod(c), whole.NewLedger())), func(v model.PoolVerdict) bool {
		return !slices.Contains(e.Space.Unused, v.Pool)
	})
}

// count counts per pool of the space, by the same index, what each check removed first.
func count(s *feasible.Space, checks []feasible.Check) []model.PoolVerdict {
	alive := bitset.Full(len(s.Options))
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
				addCount(&perPool[i], c.Reason, n)
			}
			before[i] = now
		}
	}
	return perPool
}

// addCount adds to what a reason has removed of a pool. What runs out is checked twice: as
// it was before the plan, and as the plan leaves it.
func addCount(v *model.PoolVerdict, reason model.Reason, n int) {
	at := slices.IndexFunc(v.Removed, func(r model.ReasonCount) bool { return r.Reason == reason })
	if at < 0 {
		v.Removed = append(v.Removed, model.ReasonCount{Reason: reason, Count: n})
		return
	}
	v.Removed[at].Count += n
}

// mostChanges is up to how many changes are counted; what takes more is all the same.
const mostChanges = 4

// fewestChanges returns those of the options within a set that take the fewest changes to hold the
// pod, where up to least are all the same, and of more than mostChanges all. The caller owns the
// set.
func fewestChanges(within bitset.Set, checks []feasible.Check, least int) bitset.Set {
	// more[k] are the options that take more than k changes.
	var more [mostChanges + 1]bitset.Set
	for k := range more {
		more[k] = make(bitset.Set, len(within))
	}
	for _, c := range checks {
		for _, without := range c.Changes {
			for w := range within {
				fail := within[w] &^ without[w]
				if fail == 0 {
					continue
				}
				for k := mostChanges; k > 0; k-- {
					more[k][w] |= more[k-1][w] & fail
				}
				more[0][w] |= fail
			}
		}
	}
	for k := least; k <= mostChanges; k++ {
		few := within.Clone()
		few.AndNot(more[k])
		if few.Any() {
			return few
		}
	}
	return within.Clone()
}

// reachable are the options in the places of the pod's volumes. Where none is there, they are all
// options. A volume cannot be moved, so that no change helps an option elsewhere.
func (e *Explainer) reachable(pod *feasible.Pod) bitset.Set {
	if there := e.Space.AtVolumes(pod); there.Any() {
		return there
	}
	return bitset.Full(len(e.Space.Options))
}
