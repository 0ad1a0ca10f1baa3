package planner

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topo"
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
	counted []topo.Domain
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
		case policy == q.policy || q.policy.Budget <= 0:
			return o
		default:
			policy = q.policy
			first = q.builder(o.b.ruling, variant{})
		}
	}
	last := ruling{counted: first.outside(q.space.Available)}
	return q.ways(q.builder(last, variant{}), q.policy)
}

// rule decides the first of the conflicts. Whom the spread does not bind never
// waits for it: a domain is shut only if that leaves no class with more pods
// without a place than counting it.
func (q *search) rule(o outcome, conflict []topo.Domain) ruling {
	key, value := o.b.world.KeyOf(conflict[0]), conflict[0].Value
	old := o.b.ruling
	shut, counted := feasible.NewSet(len(q.space.Options)), ruling{shut: old.shut, counted: slices.Clone(old.counted)}
	if old.shut != nil {
		shut.Or(old.shut)
	}
	for _, d := range conflict {
		if o.b.world.KeyOf(d) == key && d.Value == value {
			shut.Or(o.b.world.In(d))
			counted.counted = append(counted.counted, d)
		}
	}
	quick := *q.policy
	quick.Budget = 0
	look := func(r ruling) outcome {
		b := q.builder(r, o.way)
		b.rehearsal = true
		return q.try(b, &quick)
	}
	without, with := look(ruling{shut, old.counted}), look(counted)
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

// exposure is a spread of a class, and domains that it does not count and in
// which others may buy machines that it has to count.
type exposure struct {
	class   int
	spread  *topo.Spread
	outside []int32
}

// exposures lists the spreads to which the options could add domains.
func (b *builder) exposures(options feasible.Set) []exposure {
	var out []exposure
	known := map[topo.Span][]int32{}
	for i := range b.classes {
		levels := b.classes[i].topo.Levels
		if len(levels) == 0 {
			continue
		}
		rules := &levels[len(levels)-1].Rules
		for j := range rules.Spread {
			s := &rules.Spread[j]
			span, shared := b.world.SpanOf(s)
			outside, ok := known[span]
			if !ok || !shared {
				outside = b.world.Outside(s, options)
				known[span] = outside
			}
			if len(outside) > 0 {
				out = append(out, exposure{i, s, outside})
			}
		}
	}
	return out
}

// outside are the domains that the options could add to spreads.
func (b *builder) outside(options feasible.Set) []topo.Domain {
	var out []topo.Domain
	for _, e := range b.exposures(options) {
		for _, value := range e.outside {
			if d := (topo.Domain{Counter: e.spread.Counter, Value: value}); !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}

// strained are those of the outside domains in which none of the options may be
// bought, since pods have places that the scheduler would then refuse.
func (b *builder) strained(options feasible.Set) []topo.Domain {
	byClass := map[int][]exposure{}
	for _, e := range b.exposures(options) {
		byClass[e.class] = append(byClass[e.class], e)
	}
	if len(byClass) == 0 {
		return nil
	}
	var out []topo.Domain
	for _, list := range [2][]*place{b.nodes, b.bins} {
		for _, pl := range list {
			for _, pc := range pl.pods {
				for _, e := range byClass[pc.class] {
					for _, value := range e.outside {
						d := topo.Domain{Counter: e.spread.Counter, Value: value}
						if b.world.Excess(e.spread, pl.Place, value) > 0 && !slices.Contains(out, d) {
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
func (b *builder) conflict() []topo.Domain {
	bought := feasible.NewSet(len(b.space.Options))
	for _, pl := range b.bins {
		bought.Add(pl.Option)
	}
	return b.strained(bought)
}

// dropStrains takes the offerings that would put a spread in conflict from the
// alternatives of all machines, but for those that minValues needs.
func (b *builder) dropStrains() {
	strains := feasible.NewSet(len(b.space.Options))
	for _, d := range b.strained(b.space.Available) {
		strains.Or(b.world.In(d))
	}
	if !strains.Any() {
		return
	}
	for _, pl := range b.bins {
		rest := pl.options.Clone()
		rest.AndNot(strains)
		if b.varied(b.space.Options[pl.Option].Pool, b.fixed(rest, pl.pods, pl.Option), b.used(pl)) {
			pl.options = rest
		}
	}
}
