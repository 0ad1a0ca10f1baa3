package planner

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// ruling decides conflicts between pods that spread over domains and machines in
// further domains that are bought for others. The scheduler counts such a machine
// for the spread although the spread's pods cannot use it, and refuses pods beyond
// maxSkew over its domain.
//
//	web spreads over z1 and z2, where its size is sold; job is cheapest in z3
//	  shut     z3: job goes to z1 or z2 and nobody waits
//	  counted  z3: job goes there, and web stays at maxSkew pods per zone
type ruling struct {
	// shut are options that nobody may use; nil means none.
	shut feasible.Set
	// counted are the domains that spreads count besides their own.
	counted []topology.Domain
}

// maxRulings bounds the conflicts that are decided one by one; if there are more,
// spreads count every domain in which anything is sold.
const maxRulings = 12

// settle plans until no spread is in conflict with what is bought for others.
func (q *search) settle() outcome {
	first := q.builder(ruling{}, variant{})
	if q.exposed = len(first.exposures(q.space.Available)) > 0; !q.exposed {
		return q.ways(first, q.policy)
	}
	// Conflicts are looked for in quick plans, so that there is time to improve
	// the one that stands.
	quick := *q.policy
	quick.Budget = 0
	policy := &quick
	for range maxRulings {
		first.rehearsal = true
		o := q.ways(first, policy)
		conflict := o.b.conflict()
		switch {
		case len(conflict) > 0:
			first = q.builder(q.rule(o, conflict), variant{})
		case q.helps(o, o.b.missing()):
			first = q.builder(o.b.ruling.counting(o.b.missing()), variant{})
		case policy == q.policy || q.policy.Budget <= 0:
			return q.withoutIdle(o)
		default:
			policy = q.policy
			first = q.builder(o.b.ruling, variant{})
		}
	}
	last := ruling{counted: first.outside(q.space.Available)}
	return q.withoutIdle(q.ways(q.builder(last, variant{}), q.policy))
}

// withoutIdle takes back that spreads count domains in which nothing is bought in
// the end: if that gives more pods a place, or if pods have theirs only because such
// a domain made up for one that minDomains asks for. The domains are shut instead.
func (q *search) withoutIdle(o outcome) outcome {
	for {
		r := q.withoutIdleDomains(o.b)
		leaning := o.b.leaning(r.counted)
		if len(r.counted) == len(o.b.ruling.counted) || o.b.unplaced() == 0 && !leaning {
			return o
		}
		policy := *q.policy
		if !leaning {
			policy.Budget = 0
		}
		other := q.ways(q.builder(r, variant{}), &policy)
		if leaning && len(other.b.conflict()) > 0 {
			r = ruling{shut: feasible.NewSet(len(q.space.Options))}
			for _, d := range other.b.outside(q.space.Available) {
				r.shut.Or(other.b.inst.Topology.In(d))
			}
			return q.ways(q.builder(r, variant{}), &policy)
		}
		if !leaning && (!other.b.better(o.b) || len(other.b.conflict()) > 0) {
			return o
		}
		o = other
	}
}

// withoutIdleDomains is the ruling of a plan that shuts the domains which it counts
// and in which the plan buys nothing.
func (q *search) withoutIdleDomains(b *builder) ruling {
	bought := b.bought()
	r := ruling{shut: feasible.NewSet(len(q.space.Options))}
	if b.ruling.shut != nil {
		r.shut.Or(b.ruling.shut)
	}
	for _, d := range b.ruling.counted {
		if in := b.inst.Topology.In(d); in.Intersects(bought) {
			r.counted = append(r.counted, d)
		} else {
			r.shut.Or(in)
		}
	}
	return r
}

// leaning reports whether a spread has as many domains as its minDomains asks for
// only with counted ones that are not among those that stay.
func (b *builder) leaning(stay []topology.Domain) bool {
	if len(stay) == len(b.ruling.counted) {
		return false
	}
	for _, s := range b.spreads {
		if b.counts.Eligible.NeedsFurther(s, stay) {
			return true
		}
	}
	return false
}

// spreads yields the classes' spreads that hold when all preferences are given up.
func (b *builder) spreads(yield func(class int, s *topology.Spread) bool) {
	for i := range b.classes {
		if len(b.classes[i].Levels) == 0 {
			continue
		}
		rules := b.inst.HardRules(i)
		for j := range rules.Spread {
			if !yield(i, &rules.Spread[j]) {
				return
			}
		}
	}
}

// rule decides the first of the conflicts. Whom the spread does not bind never
// waits for it: a domain is shut only if that leaves no class with more pods
// without a place than counting it.
func (q *search) rule(o outcome, conflict []topology.Domain) ruling {
	key, value := o.b.inst.Topology.KeyOf(conflict[0].Counter), conflict[0].Value
	old := o.b.ruling
	shut := feasible.NewSet(len(q.space.Options))
	var shared []topology.Domain
	if old.shut != nil {
		shut.Or(old.shut)
	}
	for _, d := range conflict {
		if o.b.inst.Topology.KeyOf(d.Counter) == key && d.Value == value {
			shut.Or(o.b.inst.Topology.In(d))
			shared = append(shared, d)
		}
	}
	counted := old.counting(shared)
	without, with := q.look(ruling{shut, old.counted}, o.way), q.look(counted, o.way)
	for i, left := range without.b.left {
		if left > with.b.left[i] {
			return counted
		}
	}
	if with.b.better(without.b) {
		return counted
	}
	return without.b.ruling
}

// look is a quick plan, only to compare it.
func (q *search) look(r ruling, way variant) outcome {
	quick := *q.policy
	quick.Budget = 0
	b := q.builder(r, way)
	b.rehearsal = true
	return q.try(b, &quick)
}

// helps reports whether more pods get a place, or the same at a lower price, when
// spreads count these domains.
func (q *search) helps(o outcome, domains []topology.Domain) bool {
	return len(domains) > 0 && q.look(o.b.ruling.counting(domains), o.way).b.better(o.b)
}

// counting is the ruling with some domains more.
func (r ruling) counting(domains []topology.Domain) ruling {
	return ruling{r.shut, slices.Concat(r.counted, domains)}
}

// missing are domains in which the plan buys and which would make up for those
// that the minDomains of a spread lack, where pods of the spread have no place.
func (b *builder) missing() []topology.Domain {
	if b.unplaced() == 0 {
		return nil
	}
	var out []topology.Domain
	for _, e := range b.exposures(b.bought()) {
		if b.left[e.class] > 0 && b.counts.Eligible.TooFew(e.spread) {
			out = append(out, e.domains()...)
		}
	}
	return out
}

// exposure is a spread of a class, and domains that it does not count and in
// which others may buy machines that it has to count.
type exposure struct {
	class   int
	spread  *topology.Spread
	outside []int32
}

// exposures lists the spreads to which the options could add domains.
func (b *builder) exposures(options feasible.Set) []exposure {
	var out []exposure
	known := map[topology.OutsideKey][]int32{}
	for i, s := range b.spreads {
		span, shared := b.counts.Eligible.OutsideKey(s)
		outside, ok := known[span]
		if !ok || !shared {
			outside = b.counts.Eligible.Outside(s, options)
			known[span] = outside
		}
		if len(outside) > 0 {
			out = append(out, exposure{i, s, outside})
		}
	}
	return out
}

// outside are the domains that the options could add to spreads.
func (b *builder) outside(options feasible.Set) []topology.Domain {
	var out []topology.Domain
	for _, e := range b.exposures(options) {
		for _, d := range e.domains() {
			if !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}

// domains are the outside domains with the spread's counter.
func (e *exposure) domains() []topology.Domain {
	out := make([]topology.Domain, len(e.outside))
	for i, value := range e.outside {
		out[i] = topology.Domain{Counter: e.spread.Counter, Value: value}
	}
	return out
}

// strained are those of the outside domains in which none of the options may be
// bought, since pods have places that the scheduler would then refuse.
func (b *builder) strained(options feasible.Set) []topology.Domain {
	byClass := map[int][]exposure{}
	for _, e := range b.exposures(options) {
		byClass[e.class] = append(byClass[e.class], e)
	}
	if len(byClass) == 0 {
		return nil
	}
	var out []topology.Domain
	for _, list := range [2][]*Place{b.nodes, b.bins} {
		for _, pl := range list {
			for _, pc := range pl.Pods {
				for _, e := range byClass[pc.Class] {
					for _, d := range e.domains() {
						if b.counts.Excess(e.spread, pl.Place, d.Value) > 0 && !slices.Contains(out, d) {
							out = append(out, d)
						}
					}
				}
			}
		}
	}
	return out
}

// conflict are the strained domains in which the plan buys.
func (b *builder) conflict() []topology.Domain { return b.strained(b.bought()) }

// bought are the options of all machines.
func (b *builder) bought() feasible.Set {
	bought := feasible.NewSet(len(b.space.Options))
	for _, pl := range b.bins {
		bought.Add(pl.Option)
	}
	return bought
}

// dropStrains takes the offerings that would put a spread in conflict from the
// alternatives of all machines, but for those that minValues needs.
func (b *builder) dropStrains() {
	strains := feasible.NewSet(len(b.space.Options))
	for _, d := range b.strained(b.space.Available) {
		strains.Or(b.inst.Topology.In(d))
	}
	if !strains.Any() {
		return
	}
	for _, pl := range b.bins {
		rest := pl.Options.Clone()
		rest.AndNot(strains)
		if b.inst.MinValues.Met(b.space.Options[pl.Option].Pool, b.inst.MinValues.Fixed(rest, pl.Pods, pl.Option), b.used(pl)) {
			pl.Options = rest
		}
	}
}
