package planner

import (
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topo"
)

// Solve plans the problem. It always returns a plan: whatever cannot be placed
// is in Unschedulable with its reason, and malformed pods, pools and catalogue
// entries are refused one by one without spoiling the rest.
func Solve(p *model.Problem) *model.Plan {
	s := feasible.New(p)
	q := &search{space: s, policy: &p.Policy, existing: existing(s)}
	q.classes, q.topos = compileClasses(s)
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

// explain says why pods have no place.
func (b *builder) explain(plan *model.Plan) {
	e := &explain.Explainer{Space: b.space, World: b.world, Ledger: b.ledger, Scant: (&loner{b: b}).scant, Shut: b.ruling.shut}
	for i := range plan.Unschedulable {
		u := &plan.Unschedulable[i]
		c := &b.classes[u.Class]
		if c.invalid != "" {
			u.Reason, u.Message = model.ReasonPodInvalid, c.invalid
			continue
		}
		e.Explain(u, c.spec, c.size(b.space), &c.topo.Levels[len(c.topo.Levels)-1].Rules)
	}
}

// search is what all tries to plan a problem have in common.
type search struct {
	space    *feasible.Space
	classes  []class
	topos    []topo.Class
	existing []*place
	policy   *model.Policy
	// exposed says that machines may be sold in domains that a spread has to count
	// and whose pods cannot use them.
	exposed bool
	// latest is the builder that was made last.
	latest *builder
}

// outcome is a plan, what is known of its packing, and the way to it.
type outcome struct {
	b   *builder
	res packResult
	way variant
}

// try grows the plan of a builder that has none yet.
func (q *search) try(b *builder, policy *model.Policy) outcome {
	if b.variant.alone {
		b.runAll()
		return outcome{b, packResult{first: b.cost()}, b.variant}
	}
	return outcome{b, b.planPooled(policy), b.variant}
}

// ways plans in every way that is worth trying, that of the given builder first,
// and returns the best plan.
func (q *search) ways(first *builder, policy *model.Policy) outcome {
	best := q.try(first, policy)
	// A quick look at every other way, without time to improve it.
	quick := *policy
	quick.Budget = 0
	for _, v := range first.otherWays(best.res) {
		other := q.try(q.builder(first.ruling, v), &quick)
		if other.res.entangled || !best.res.entangled && !other.b.better(best.b) {
			continue
		}
		best = other
	}
	if best.way.plain {
		best = q.honour(best, first.ruling, &quick)
	}
	if !best.way.alone && best.way != (variant{}) && policy.Budget > 0 {
		again := q.builder(first.ruling, best.way)
		again.honours = best.b.honours
		if longer := q.try(again, policy); !longer.res.entangled && longer.b.better(best.b) {
			best = longer
		}
	}
	return q.mend(best, policy)
}

// honour gives the classes their preferences back that cost nobody a place. The plan
// places more pods than one that honours all of them.
func (q *search) honour(o outcome, r ruling, policy *model.Policy) outcome {
	var classes []int
	for _, i := range o.b.sequence {
		if len(q.classes[i].levels) > 1 {
			classes = append(classes, i)
		}
	}
	// All of a group or, if that takes a place away, each half of it.
	var try func(group []int)
	try = func(group []int) {
		b := q.builder(r, o.way)
		b.honours = map[int]bool{}
		for i := range o.b.honours {
			b.honours[i] = true
		}
		for _, i := range group {
			b.honours[i] = true
		}
		if other := q.try(b, policy); !other.res.entangled && !o.b.placesMore(other.b) {
			o = other
			return
		}
		if half := len(group) / 2; half > 0 {
			try(group[:half])
			try(group[half:])
		}
	}
	try(classes)
	return o
}

// builder starts an empty plan.
func (q *search) builder(r ruling, v variant) *builder {
	if q.latest != nil {
		q.latest.await() // a new builder compiles the rules anew
	}
	b := newBuilder(q.space, q.classes, q.topos, q.existing, v)
	q.latest = b
	b.ruling = r
	b.world.Settle(r.counted)
	return b
}

// newBuilder starts an empty plan.
func newBuilder(s *feasible.Space, classes []class, topos []topo.Class, existing []*place, v variant) *builder {
	b := &builder{
		space: s, world: topo.NewWorld(s, topos), ledger: s.NewLedger(), classes: classes, variant: v,
		left: make([]int, len(classes)), minimums: minimums(s), picked: pickedKeys(s, classes), brim: map[int]feasible.Set{}, shelves: newShelves(),
	}
	for _, pl := range existing {
		b.nodes = append(b.nodes, pl.clone())
	}
	b.sequence = order(b)
	b.world.OnlyHard = b.spareKeys()
	b.world.SetOrder(topos, b.sequence)
	b.reduced = reduceOptions(s, b.world, classes, nil)
	for i := range classes {
		if classes[i].invalid == "" {
			b.left[i] = len(classes[i].spec.Pods)
		}
	}
	if v.thrifty {
		b.wanted = b.addUp()
	}
	return b
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
func (b *builder) another(c *class) bool {
	for l := range c.topo.Levels {
		if rules := &c.topo.Levels[l].Rules; b.world.Loose(rules) {
			if b.pooled || b.world.OnlyHard { // machines of pools with minValues cannot be tied down any more
				return false
			}
			b.world.Tie(rules)
			b.keys = nil
		}
	}
	return true
}

// runOut runs a class until that helps no more: pods that must join the first of
// their kind come before others fill its machine.
func (b *builder) runOut(c *class) {
	for before := 0; b.left[c.index] > 0 && b.left[c.index] != before; {
		before = b.left[c.index]
		b.run(c)
		if !c.together {
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
		t := missing[b.classes[i].spec.Priority]
		t.mine += b.left[i]
		t.theirs += o.left[i]
		missing[b.classes[i].spec.Priority] = t
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
