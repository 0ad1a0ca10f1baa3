package planner

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// mender improves a plan: it empties some of its places, lets the pods of the others
// enter again one after the other, so that every rule is looked at anew, and places
// those that have no place now in another order or another way.
type mender struct {
	// blank has placed nobody yet. All tries are forks of it.
	blank  *builder
	offers *alternatives
	dice   *rand.Rand
	// best is the best plan so far, now the one that tries start from: as good, but
	// maybe another.
	best, now *builder
	// watched says that spreads may come into conflict with what is bought for others,
	// and that the first plan has no such conflict.
	watched bool
	// quick is the policy without time.
	quick model.Policy
}

// How much is tried: as often as fits into the budget if a try lasts mendTime, and as
// much longer for each further mendClasses, but so often at least while the clock, if
// there is one, allows it; and so often in vain before it is given up.
const (
	leastTries = 32
	patience   = 300
	mendTime   = 200 * time.Microsecond
	// mendClasses is for how many classes.
	mendClasses = 100
)

// mend improves the best plan of all ways, where few pods and nodes are concerned, as
// long as there is time: pods that wait though there may be a place for them are tried
// to place, and a lower price is looked for.
func (q *search) mend(o outcome, policy *model.Policy) outcome {
	if policy.Budget <= 0 || q.space.Problem.PodCount() > largeProblem {
		return o
	}
	stranded := o.b.stranded()
	// Where the packer's problem was no stricter than the rules, it has looked itself.
	cheaper := q.space.Problem.PodCount() <= smallProblem && q.space.Tiers == 1 && !o.res.free && o.b.cost() > 0
	if !cheaper && len(stranded)+len(o.hard) == 0 {
		return o
	}
	m := &mender{blank: q.builder(o.b.ruling, variant{}), best: o.b, dice: rand.New(rand.NewPCG(policy.Seed, 1))}
	if m.blank.getReady(); len(m.blank.nodes) > largeProblem {
		return o
	}
	m.quick = *policy
	m.quick.Budget = 0
	m.blank.late = func() bool { return late(policy, 0) }
	m.offers = newAlternatives(m.blank)
	m.watched = q.exposed && len(o.b.conflict()) == 0
	m.offers.b = o.b
	o.b.trim(m.offers)
	m.guide(stranded)
	displaced := q.space.Tiers == 1 && (m.best != o.b || len(o.hard) > 0)
	if displaced {
		m.around(slices.Concat(stranded, o.hard))
	}
	if cheaper || displaced || len(m.best.stranded()) > 0 {
		m.search(policy)
	}
	o.b = m.best
	return o
}

// stranded lists the classes with pods that wait and for which there are machines or
// nodes, as far as everything but other pods goes, in the order of placing.
func (b *builder) stranded() []int {
	var out []int
	for _, i := range b.sequence {
		if b.left[i] == 0 || b.lonely(i) {
			continue
		}
		if b.allowed(b.inst.LastLevel(i).Options).Any() || slices.ContainsFunc(b.nodes, func(pl *Place) bool { return b.suits(i, pl) }) {
			out = append(out, i)
		}
	}
	return out
}

// suits reports whether a place would hold a pod of a class if nobody else were there.
func (b *builder) suits(class int, pl *Place) bool {
	last := b.inst.LastLevel(class)
	if pl.Node < 0 {
		return last.Options.Has(pl.Option)
	}
	return last.Nodes.Has(pl.Node) && count(b.classes[class].Own, nil, b.space.NodeFree(pl.Node)) > 0
}

// lonely reports whether pods of a class have to be near others that are not there and
// will not come.
func (b *builder) lonely(class int) bool {
	return slices.ContainsFunc(b.inst.HardRules(class).Affinity, func(a topology.Affinity) bool {
		return b.counts.Total(a.Counter) == 0 && !slices.ContainsFunc(b.sequence, func(i int) bool {
			return slices.Contains(b.inst.Topology.Adds(i), a.Counter)
		})
	})
}

// getReady prepares a builder that has placed nobody for pods that come in any order,
// and leaves out nodes without room for any of them.
func (b *builder) getReady() {
	b.nodes = slices.DeleteFunc(b.nodes, func(pl *Place) bool {
		return !slices.ContainsFunc(b.sequence, func(i int) bool {
			return b.inst.LastLevel(i).Nodes.Has(pl.Node) && b.capacity(&b.classes[i], pl, pl.Free) > 0
		})
	})
	b.order = b.order.Repeated()
	b.keys, b.shelves = nil, newShelves()
	b.rehearsal = true
}

// fork is a builder of its own at the same point.
func (b *builder) fork() *builder {
	f := *b
	f.counts, f.ledger, f.left = b.counts.Fork(), b.ledger.Fork(), slices.Clone(b.left)
	f.ahead, f.demands = nil, nil
	f.nodes, f.bins = fork(b.nodes), fork(b.bins)
	return &f
}

func fork(places []*Place) []*Place {
	out := make([]*Place, len(places))
	for i, pl := range places {
		own := pl.clone()
		own.Ports, own.Attached = slices.Clip(pl.Ports), slices.Clip(pl.Attached)
		own.Pods, own.Options = slices.Clone(pl.Pods), pl.Options.Clone()
		out[i] = own
	}
	return out
}

// spot is what a place of a plan holds.
type spot struct {
	pl   *Place
	pods []instance.PodCount
}

// spots lists the places of a plan that hold pods.
func (b *builder) spots() []spot {
	var out []spot
	for _, list := range [2][]*Place{b.nodes, b.bins} {
		for _, pl := range list {
			if len(pl.Pods) > 0 {
				out = append(out, spot{pl, slices.Clone(pl.Pods)})
			}
		}
	}
	return out
}

// retrace lets the pods of the spots enter again, in an order in which each finds its
// rules met. Those that find no such moment stay without a place.
func (b *builder) retrace(spots []spot) {
	at := make([]*Place, len(spots))
	for progress := true; progress; {
		progress = false
		for _, i := range b.sequence {
			for s := range spots {
				for k := range spots[s].pods {
					pc := &spots[s].pods[k]
					for pc.Class == i && pc.Count > 0 {
						if at[s] == nil {
							at[s] = b.counterpart(spots[s].pl)
						}
						n := b.enter(pc, at[s])
						if n == 0 {
							if len(at[s].Pods) == 0 {
								at[s] = nil
							}
							break
						}
						pc.Count -= n
						b.left[i] -= n
						progress = true
					}
				}
			}
		}
	}
}

// counterpart is the place of b that stands for one of another builder's. A machine
// is yet to be bought.
func (b *builder) counterpart(pl *Place) *Place {
	if pl.Node >= 0 {
		return b.nodes[slices.IndexFunc(b.nodes, func(own *Place) bool { return own.Node == pl.Node })]
	}
	own := b.empty(pl.Option)
	own.Open = pl.Open
	return own
}

// enter puts as many of some pods on a place as may come now.
func (b *builder) enter(pc *instance.PodCount, pl *Place) int {
	c := &b.classes[pc.Class]
	n := min(pc.Count, b.counts.Room(c.Levels[pc.Level].Rules, pl.Place, topology.Everything))
	if n > 0 {
		n = b.roomOn(c, pc.Level, n, pl)
	}
	if n == 0 {
		return 0
	}
	if pl.Node < 0 && len(pl.Pods) == 0 {
		b.bins = append(b.bins, pl)
		b.ledger.Take(pl.Option, 1)
	}
	b.put(c, pc.Level, n, pl)
	if pl.Node < 0 {
		pl.Options.And(c.Levels[pc.Level].Options)
	}
	return n
}
