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
	classes, topos := compileClasses(s)
	existing := existing(s)
	try := func(v variant, policy *model.Policy) (*builder, packResult) {
		b := newBuilder(s, classes, topos, existing, v)
		if v.alone {
			b.runAll()
			return b, packResult{first: b.cost()}
		}
		return b, b.planPooled(policy)
	}
	way := variant{}
	b, res := try(way, &p.Policy)
	defer b.await()
	ways := b.otherWays(res)
	if len(ways) > 0 {
		b.await() // another way compiles the rules anew
	}
	for _, v := range ways {
		// A quick look at every other way, without time to improve it.
		quick := p.Policy
		quick.Budget = 0
		other, otherRes := try(v, &quick)
		if otherRes.entangled || !res.entangled && !other.better(b) {
			continue
		}
		b, res, way = other, otherRes, v
	}
	if !way.alone && way != (variant{}) && p.Policy.Budget > 0 {
		if longer, longerRes := try(way, &p.Policy); !longerRes.entangled && longer.better(b) {
			b, res = longer, longerRes
		}
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
	e := &explain.Explainer{Space: b.space, World: b.world, Ledger: b.ledger, Varied: b.variedAlone}
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

// newBuilder starts an empty plan.
func newBuilder(s *feasible.Space, classes []class, topos []topo.Class, existing []*place, v variant) *builder {
	b := &builder{
		space: s, world: topo.NewWorld(s, topos), ledger: s.NewLedger(), classes: classes, variant: v,
		left: make([]int, len(classes)), minimums: minimums(s), picked: pickedKeys(s), brim: map[int]feasible.Set{}, shelves: newShelves(),
	}
	for _, pl := range existing {
		b.nodes = append(b.nodes, pl.clone())
	}
	b.sequence = order(b)
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
		before := b.unplaced()
		for _, i := range b.sequence {
			if b.left[i] > 0 {
				b.run(&b.classes[i])
			}
		}
		if after := b.unplaced(); after == 0 || after == before && (b.pooled || !b.shrink()) {
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
	if differ {
		return missing[at].mine < missing[at].theirs
	}
	return b.cost() < o.cost()
}

func (b *builder) cost() model.Money {
	var sum model.Money
	for _, pl := range b.bins {
		sum += b.space.Options[pl.Option].Price
	}
	return sum
}
