package fewer

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/offers"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
)

// How much is tried. Shapes are nodes with equal options and pods, the cheapest first.
const (
	mostShapes = 200
	mostRounds = 8
	// mostTrials is how many pairs of shapes are looked at closely in one round.
	mostTrials = 2_000
)

// Possible reports whether machines of a plan may be replaced: it buys two or more of a
// NodePool whose catalogue says what nodes cost.
func Possible(s *placement.State) bool {
	counts := map[int]int{}
	for _, pl := range s.NewNodes {
		counts[int(s.Instance.Space.Options[pl.Option].Pool)]++
	}
	for pool, n := range counts {
		if n > 1 && statesCost(s, pool) {
			return true
		}
	}
	return false
}

// statesCost reports whether the catalogue of a pool says what its nodes cost.
func statesCost(s *placement.State, pool int) bool {
	p := s.Instance.Space.Problem
	return p.Catalogs[p.Pools[pool].Catalog].StatesNodeCost()
}

// Replace replaces new nodes of a state by fewer ones, and says what that has cost. The
// bound is one on the price of all plans that place the same pods; zero is none.
//
// Postcondition: the state holds the same pods, at the same levels of preferences, on
// fewer new nodes or the same ones. The ID of a new node no longer follows from its index.
func Replace(s *placement.State, bound model.Money) model.FewerMachines {
	a := offers.New(s.Instance)
	a.RightSize(s)
	j := &joiner{s: s, offers: a, before: s.Cost(), stands: map[*placement.Place]model.Money{}, stated: map[int]bool{}}
	nodes := len(s.NewNodes)
	j.most = j.before + slack(s, j.before, bound)
	for range mostRounds {
		if !j.round() {
			break
		}
	}
	out := model.FewerMachines{Machines: nodes - len(s.NewNodes), Paid: max(0, s.Cost()-j.before)}
	if out.Paid == 0 {
		out.Machines = 0
	}
	return out
}

// slack is how much more than now a plan may cost for fewer machines.
func slack(s *placement.State, cost, bound model.Money) model.Money {
	near := model.NearBound
	for i, n := range s.PlacedCounts() {
		if n > 0 && s.Instance.HardRules(i).Bound() {
			near = model.NearBoundSpread
			break
		}
	}
	return max(0, min(model.Money(model.NearTie*float64(cost)), model.Money((1+near)*float64(bound))-cost))
}

// joiner joins nodes of a state.
type joiner struct {
	s      *placement.State
	offers *offers.Alternatives
	// before is what the plan cost at first, most what it may cost.
	before, most model.Money
	// stands is, for a joint node, the price of the nodes for which it stands.
	stands map[*placement.Place]model.Money
	// stated says of pools, once asked for, whether their catalogues say what nodes cost.
	stated map[int]bool
}

// shape is new nodes with equal options and pods.
type shape struct {
	nodes []*placement.Place
	used  []int64
}

// pair is two shapes of which a node each may be joined, and by how much that raises the
// cost.
type pair struct {
	x, y *shape
	rise model.Money
}

// round joins the pairs that raise the cost least, each node once, and reports whether it
// has joined any.
func (j *joiner) round() bool {
	pairs := j.pairs()
	joined := false
	for _, p := range pairs {
		for {
			x, y := p.nodes()
			if x == nil || !j.join(x, y) {
				break
			}
			for _, of := range [2]*shape{p.x, p.y} { // they may be the same
				of.nodes = slices.DeleteFunc(of.nodes, func(pl *placement.Place) bool { return pl == x || pl == y })
			}
			joined = true
		}
	}
	return joined
}

// nodes are one node of each shape, nil if there are no two.
func (p *pair) nodes() (x, y *placement.Place) {
	switch {
	case p.x == p.y && len(p.x.nodes) > 1:
		return p.x.nodes[0], p.x.nodes[1]
	case p.x != p.y && len(p.x.nodes) > 0 && len(p.y.nodes) > 0:
		return p.x.nodes[0], p.y.nodes[0]
	}
	return nil, nil
}

// pairs lists the pairs of shapes that may be joined now, those first that raise the cost
// least.
func (j *joiner) pairs() []pair {
	shapes := j.shapes()
	room, left := j.roomiest(), j.left()
	var out []pair
	trials := 0
	for i, x := range shapes {
		for _, y := range shapes[i:] {
			p := pair{x: x, y: y}
			a, b := p.nodes()
			if a == nil || !room.holds(x.used, y.used, j.mostFor(a, b, left)) {
				continue
			}
			if trials++; trials > mostTrials {
				break
			}
			if o := j.offers.Joint(j.s, a, b, j.mostFor(a, b, left)); o >= 0 {
				p.rise = j.price(o) - j.price(a.Option) - j.price(b.Option)
				out = append(out, p)
			}
		}
	}
	slices.SortStableFunc(out, func(x, y pair) int { return cmp.Compare(x.rise, y.rise) })
	return out
}

func (j *joiner) price(option int) model.Money { return j.s.Instance.Space.Options[option].Price }

// left is how much more than now the plan may cost.
func (j *joiner) left() model.Money { return j.most - j.s.Cost() }

// mostFor is the most that a machine may cost which stands for two nodes, if so much is left.
func (j *joiner) mostFor(x, y *placement.Place, left model.Money) model.Money {
	limit := model.Money(float64(j.standsFor(x)+j.standsFor(y)) * (1 + model.LeastSplit))
	return min(limit-1, j.price(x.Option)+j.price(y.Option)+left)
}

// standsFor is the price of the nodes for which a node stands: of itself, if it is not a
// joint one.
func (j *joiner) standsFor(pl *placement.Place) model.Money {
	if sum, ok := j.stands[pl]; ok {
		return sum
	}
	return j.price(pl.Option)
}

// shapes groups the nodes that may be joined, the cheapest first.
func (j *joiner) shapes() []*shape {
	nodes := slices.DeleteFunc(slices.Clone(j.s.NewNodes), func(pl *placement.Place) bool {
		pool := int(j.s.Instance.Space.Options[pl.Option].Pool)
		stated, known := j.stated[pool]
		if !known {
			stated = statesCost(j.s, pool)
			j.stated[pool] = stated
		}
		return !stated
	})
	slices.SortStableFunc(nodes, j.compare)
	var out []*shape
	for _, pl := range nodes {
		if last := len(out) - 1; last >= 0 && j.compare(out[last].nodes[0], pl) == 0 {
			out[last].nodes = append(out[last].nodes, pl)
			continue
		}
		out = append(out, &shape{nodes: []*placement.Place{pl}, used: j.s.Used(pl)})
	}
	return out[:min(len(out), mostShapes)]
}

// compare orders nodes by price, option, pods and the price for which they stand.
func (j *joiner) compare(x, y *placement.Place) int {
	return cmp.Or(cmp.Compare(j.price(x.Option), j.price(y.Option)), cmp.Compare(x.Option, y.Option),
		slices.CompareFunc(x.Pods, y.Pods, func(a, b podCount) int {
			return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Level, b.Level), cmp.Compare(a.Count, b.Count))
		}), cmp.Compare(j.standsFor(x), j.standsFor(y)))
}
