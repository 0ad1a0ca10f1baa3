package planner

import (
	"sync"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
)

// Solve plans the problem. It always returns a plan: whatever cannot be placed
// is in Unschedulable with its reason, and malformed pods, pools and catalogue
// entries are refused one by one without spoiling the rest.
func Solve(p *model.Problem) *model.Plan {
	s := feasible.New(p)
	q := newSearch(s)
	q.existing = existing(s)
	o := q.settle()
	b, res := o.b, o.res
	defer func() { q.latest.await() }()
	if q.exposed {
		b.dropStrains()
	}
	plan := b.finish()
	plan.Stats.FirstCost = max(res.first, plan.Cost)
	plan.Stats.Rounds = res.rounds
	if res.free && res.unplaced == 0 {
		plan.LowerBound = min(res.bound, plan.Cost)
	} else {
		plan.LowerBound = min(b.bound(&p.Policy), plan.Cost)
	}
	b.explain(plan)
	return plan
}

// explain says why pods have no place, in two goroutines, each for every second class:
// some are quickly said and others not.
func (b *builder) explain(plan *model.Plan) {
	if len(plan.Unschedulable) == 0 {
		return
	}
	half := func(from int) {
		own := *b // with storage of its own
		own.keys, own.scratch, own.shelves, own.brim = nil, nil, newShelves(), map[int]feasible.Set{}
		e := &explain.Explainer{Space: b.space, Counts: b.counts, Ledger: b.ledger, Scant: scantOf(&loner{b: &own}), Shut: b.ruling.shut}
		for i := from; i < len(plan.Unschedulable); i += 2 {
			u := &plan.Unschedulable[i]
			c := &b.classes[u.Class]
			if c.Invalid != "" {
				u.Reason, u.Message = model.ReasonPodInvalid, c.Invalid
				continue
			}
			e.Explain(u, c.Spec, c.Levels[len(c.Levels)-1].Rules)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { half(1) })
	half(0)
	wg.Wait()
}

// scantOf puts what a loner answers in the explainer's words.
func scantOf(a *loner) func(class, option int, load []int64) *explain.Scant {
	return func(class, option int, load []int64) *explain.Scant {
		if s := a.scant(class, option, load); s != nil {
			return &explain.Scant{Key: s.Key, Have: s.Have, Want: s.Want}
		}
		return nil
	}
}

// runAll places all classes in order, and then those again that found nothing
// at first, for as long as that helps: what they wait for may have come since.
func (b *builder) runAll() {
	for {
		b.turns++
		before := b.unplaced()
		for _, i := range b.sequence {
			if c := &b.classes[i]; b.left[i] > 0 && (b.turns == 1 || b.another(c)) {
				b.runOut(c)
			}
		}
		if after := b.unplaced(); after == 0 || after == before && (b.pooled || !b.shrink()) {
			return
		}
	}
}

// another gets ready for pods of a class that has had its turn, and reports whether they
// may have another. Those whose spreads no longer mattered to whoever came after them
// wait until the packer has decided where these are, and matter from then on.
func (b *builder) another(c *instance.Class) bool {
	for l := range c.Levels {
		if rules := c.Levels[l].Rules; b.order.ReadsEarly(rules) {
			if b.pooled || b.order.HardOnly() { // machines of pools with minValues cannot be tied down any more
				return false
			}
			b.order = b.order.Reading(rules)
			b.keys = nil
		}
	}
	return true
}

// runOut runs a class until that helps no more: pods that must join the first of
// their kind come before others fill its machine.
func (b *builder) runOut(c *instance.Class) {
	for before := 0; b.left[c.Index] > 0 && b.left[c.Index] != before; {
		before = b.left[c.Index]
		b.run(c)
		if !c.Colocated {
			return
		}
	}
}

func (b *builder) unplaced() int {
	n := 0
	for _, k := range b.left {
		n += k
	}
	return n
}

// planPooled places what nodes and per-machine affinity decide, and leaves the
// choice of machines for the rest to the packer.
func (b *builder) planPooled(policy *model.Policy) packResult {
	b.pooled = true
	b.runAll()
	b.pooled = false
	res := b.pack(policy)
	b.runAll()
	return res
}

// better reports whether b leaves fewer pods without a place than o, those of
// the highest priority first, or is cheaper at the same number.
func (b *builder) better(o *builder) bool {
	if c := b.compareMissing(o); c != 0 {
		return c < 0
	}
	return b.cost() < o.cost()
}

// placesMore is better without a look at the price.
func (b *builder) placesMore(o *builder) bool { return b.compareMissing(o) < 0 }

// compareMissing compares how many pods have no place, those of the highest priority
// first; below zero b leaves fewer of them out than o.
func (b *builder) compareMissing(o *builder) int {
	type tally struct{ mine, theirs int }
	missing := map[int32]tally{}
	for i := range b.classes {
		t := missing[b.classes[i].Spec.Priority]
		t.mine += b.left[i]
		t.theirs += o.left[i]
		missing[b.classes[i].Spec.Priority] = t
	}
	var at int32
	differ := false
	for priority, t := range missing { // the highest that differs: order does not matter
		if t.mine != t.theirs && (!differ || priority > at) {
			at, differ = priority, true
		}
	}
	return missing[at].mine - missing[at].theirs
}

func (b *builder) cost() model.Money {
	var sum model.Money
	for _, pl := range b.bins {
		sum += b.space.Options[pl.Option].Price
	}
	return sum
}
