package portfolio

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/construct"
	"github.com/nodeautoprovision/nap/internal/planner/domainconflict"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
	"github.com/nodeautoprovision/nap/internal/planner/nodechoice"
	"github.com/nodeautoprovision/nap/internal/planner/offers"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// mostDecisions bounds the conflicts that are decided one by one. If there are more,
// spread constraints count every domain in which an option can be bought.
const mostDecisions = 12

// Search plans an instance on its existing nodes until no spread constraint is in
// conflict with what is bought for others. Proofs run in the prover; the clock measures the
// budget of the policy.
//
// Where that leaves pods out which are spread, it may plan a second time, with a little more
// time, and let pods wait for a constraint that binds them. Dry runs cannot tell whether more
// pods have a place in the end, so the better of the two finished plans stands.
func (f *Portfolio) Search(in *instance.Instance, nodes []*placement.Place, prover *nodechoice.Prover, clock meter.Clock) Outcome {
	quick := *in.Policy()
	quick.Budget = 0
	q := &search{in: in, portfolio: f, nodes: nodes, policy: in.Policy(), quick: &quick, prover: prover, clock: clock, offers: offers.New(in)}
	empty := q.begin(attempt{})
	if q.exposed = domainconflict.Possible(empty.State); !q.exposed {
		return q.run(empty, attempt{}, q.policy)
	}
	o, refused := q.settle(empty)
	if !refused || !q.leavesSpreadPods(o.Plan.State) {
		return o
	}
	again := *q
	again.yields, again.policy = true, shortened(q.policy, -q.policy.Budget/4)
	if other, _ := again.settle(again.begin(attempt{})); other.Plan.State.Better(o.Plan.State) {
		return other
	}
	return o
}

// settle plans from an empty plan until no spread constraint is in conflict. It also reports
// whether a domain was counted only because the search does not yield.
func (q *search) settle(empty *construct.Constructor) (o Outcome, refused bool) {
	// Conflicts are looked for in quick plans, so that there is time to improve the one
	// that stands.
	policy, decision := q.quick, placement.Decision{}
	for range mostDecisions {
		o = q.run(empty, attempt{decision: decision, dry: true}, policy)
		s := o.Plan.State
		conflicts := domainconflict.Conflicts(s)
		switch {
		case len(conflicts) > 0:
			var r bool
			decision, r = q.decide(&o, conflicts)
			refused = refused || r
		case q.helps(&o, domainconflict.Missing(s)):
			decision = counting(s.Decision, domainconflict.Missing(s))
		case policy == q.policy || q.policy.Budget <= 0:
			return q.withoutIdle(o), refused
		default:
			policy, decision = q.policy, s.Decision
		}
		empty = q.begin(attempt{decision: decision})
	}
	last := placement.Decision{Counted: domainconflict.Outside(empty.State)}
	return q.withoutIdle(q.plan(last, q.policy)), refused
}

// leavesSpreadPods reports whether pods have no place whose class has a hard spread constraint.
func (q *search) leavesSpreadPods(s *placement.State) bool {
	for i, left := range s.Left {
		if left > 0 && slices.ContainsFunc(q.in.HardRules(i).Spread, func(s topology.Spread) bool { return s.Hard }) {
			return true
		}
	}
	return false
}

// withoutIdle takes back that spread constraints count domains in which no node is bought
// in the end: if that gives more pods a place, or if pods have theirs only because such a
// domain made up for one that minDomains asks for. The domains are shut instead.
func (q *search) withoutIdle(o Outcome) Outcome {
	for {
		s := o.Plan.State
		d := domainconflict.ShutIdle(s)
		needed := domainconflict.NeedsCounted(s, d.Counted)
		if len(d.Counted) == len(s.Decision.Counted) || s.Unplaced() == 0 && !needed {
			return o
		}
		policy := *q.policy
		if !needed {
			policy.Budget = 0
		}
		other := q.plan(d, &policy)
		conflicts := len(domainconflict.Conflicts(other.Plan.State)) > 0
		if needed && conflicts {
			d = placement.Decision{Shut: bitset.New(len(q.in.Space.Options))}
			for _, domain := range domainconflict.Outside(other.Plan.State) {
				d.Shut.Or(q.in.Topology.In(domain))
			}
			return q.plan(d, &policy)
		}
		if !needed && (!other.Plan.State.Better(s) || conflicts) {
			return o
		}
		o = other
	}
}

// plan plans by every strategy under a decision.
func (q *search) plan(d placement.Decision, policy *model.Policy) Outcome {
	a := attempt{decision: d}
	return q.run(q.begin(a), a, policy)
}

// decide decides the first of the conflicts. No pods wait for a constraint: a domain is shut
// only if that leaves no class with more pods without a place than counting it. If the search
// yields, this does not hold for classes that the constraint binds: once the others run, the
// next plan may find a place for their pods. It also reports whether the domain is counted only
// because the search does not yield.
func (q *search) decide(o *Outcome, conflicts []topology.Domain) (d placement.Decision, refused bool) {
	t, old := q.in.Topology, o.Plan.State.Decision
	key, value := t.KeyOf(conflicts[0].Counter), conflicts[0].Value
	shut := bitset.New(len(q.in.Space.Options))
	var shared []topology.Domain
	if old.Shut != nil {
		shut.Or(old.Shut)
	}
	for _, d := range conflicts {
		if t.KeyOf(d.Counter) == key && d.Value == value {
			shut.Or(t.In(d))
			shared = append(shared, d)
		}
	}
	counted := counting(old, shared)
	without, with := q.dryRun(placement.Decision{Shut: shut, Counted: old.Counted}, o.strategy), q.dryRun(counted, o.strategy)
	var waits, waitsUnbound bool // more pods of a class do, with the domain shut
	for i, left := range without.Left {
		if left > with.Left[i] {
			waits, waitsUnbound = true, waitsUnbound || !q.binds(shared, i)
		}
	}
	switch {
	case waitsUnbound || with.Better(without):
		return counted, false
	case waits && !q.yields:
		return counted, true
	}
	return without.Decision, false
}

// binds reports whether a hard spread constraint of a class counts some of the domains.
func (q *search) binds(domains []topology.Domain, class int) bool {
	return slices.ContainsFunc(q.in.HardRules(class).Spread, func(s topology.Spread) bool {
		return s.Hard && slices.ContainsFunc(domains, func(d topology.Domain) bool { return d.Counter == s.Counter })
	})
}

// dryRun is a plan without time, only to compare it.
func (q *search) dryRun(d placement.Decision, s construct.Strategy) *placement.State {
	return q.try(attempt{params: construct.Params{Strategy: s}, decision: d, dry: true}, q.quick).Plan.State
}

// helps reports whether more pods get a place, or the same at a lower price, when spread
// constraints count these domains.
func (q *search) helps(o *Outcome, domains []topology.Domain) bool {
	s := o.Plan.State
	return len(domains) > 0 && q.dryRun(counting(s.Decision, domains), o.strategy).Better(s)
}

// counting is the decision with some counted domains more.
func counting(d placement.Decision, domains []topology.Domain) placement.Decision {
	return placement.Decision{Shut: d.Shut, Counted: slices.Concat(d.Counted, domains)}
}
