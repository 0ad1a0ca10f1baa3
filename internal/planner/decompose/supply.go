package decompose

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Suffices reports whether the quotas, the reservations and the limits of NodePools, on which
// all parts draw, suffice for a plan.
func Suffices(p *model.Problem, plan *model.Plan) bool {
	return NewSupply(p).Take(&Part{pools: allOf(len(p.Pools))}, plan)
}

// Supply is what plans of parts leave of the quotas, the reservations and the limits of
// NodePools of a problem.
type Supply struct {
	problem *model.Problem
	bought  purchases
}

// NewSupply is what a problem has.
func NewSupply(p *model.Problem) *Supply {
	return &Supply{p, purchases{
		pools: map[int]poolPurchases{}, quotas: map[string]int64{}, reserved: map[string]int{},
	}}
}

// purchases are machines that plans buy.
type purchases struct {
	// pools is by index in the problem, quotas and reserved are by name.
	pools    map[int]poolPurchases
	quotas   map[string]int64
	reserved map[string]int
}

// poolPurchases are those of a NodePool.
type poolPurchases struct {
	nodes    int
	cost     model.Money
	capacity model.Resources
}

// Take takes what the plan of a part buys, unless there is too little of something.
func (s *Supply) Take(t *Part, plan *model.Plan) bool {
	own := NewSupply(s.problem).bought
	for i := range plan.NewNodes {
		n := &plan.NewNodes[i]
		own.add(s.problem, t.pools[n.Pool], n.Best())
	}
	if !s.admits(&own) {
		return false
	}
	for i, more := range own.pools { // one by one: order does not matter
		had := s.bought.pools[i]
		s.bought.pools[i] = poolPurchases{had.nodes + more.nodes, had.cost + more.cost, had.capacity.Add(more.capacity)}
	}
	for name, amount := range own.quotas {
		s.bought.quotas[name] += amount
	}
	for name, n := range own.reserved {
		s.bought.reserved[name] += n
	}
	return true
}

// add counts a machine of a NodePool.
func (b *purchases) add(p *model.Problem, pool int, of model.OfferingRef) {
	t := &p.Catalogs[p.Pools[pool].Catalog].InstanceTypes[of.InstanceType]
	o := &t.Offerings[of.Offering]
	had := b.pools[pool]
	b.pools[pool] = poolPurchases{had.nodes + 1, had.cost + o.Price, had.capacity.Add(t.Capacity)}
	for _, q := range o.Quotas {
		b.quotas[q.Quota] += q.Amount
	}
	if o.CapacityType == model.Reserved && o.Reservation != "" {
		b.reserved[o.Reservation]++
	}
}

// admits reports whether there is enough of all that purchases draw on. What none of them draws
// on may be overdrawn already.
func (s *Supply) admits(own *purchases) bool {
	for i, more := range own.pools {
		if pool := s.pool(i); !limitsAdmit(&pool, &more) {
			return false
		}
	}
	short := func(q model.Quota) bool { return own.quotas[q.Name] > max(q.Left-s.bought.quotas[q.Name], 0) }
	if slices.ContainsFunc(s.problem.Quotas, short) {
		return false
	}
	if len(own.reserved) == 0 {
		return true
	}
	for c := range s.problem.Catalogs {
		for t := range s.problem.Catalogs[c].InstanceTypes {
			for _, o := range s.problem.Catalogs[c].InstanceTypes[t].Offerings {
				if n := own.reserved[o.Reservation]; n > 0 && n+s.bought.reserved[o.Reservation] > o.Remaining {
					return false
				}
			}
		}
	}
	return true
}

// sells reports whether one machine more may be bought as an offering of a NodePool.
func (s *Supply) sells(pool int, of model.OfferingRef) bool {
	own := NewSupply(s.problem).bought
	own.add(s.problem, pool, of)
	return s.admits(&own)
}

// pool is a NodePool with what was bought of it.
func (s *Supply) pool(i int) model.Pool {
	pool, had := s.problem.Pools[i], s.bought.pools[i]
	pool.Usage, pool.Nodes, pool.Cost = pool.Usage.Add(had.capacity), pool.Nodes+had.nodes, pool.Cost+had.cost
	return pool
}

// limitsAdmit reports whether a NodePool's limits have room.
func limitsAdmit(p *model.Pool, more *poolPurchases) bool {
	for _, l := range p.Limits {
		if bought := more.capacity.Get(l.Axis); bought > 0 && p.Usage.Get(l.Axis)+bought > l.Value {
			return false
		}
	}
	return (p.NodeLimit < 0 || p.Nodes+more.nodes <= p.NodeLimit) && (p.CostLimit == nil || p.Cost+more.cost <= *p.CostLimit)
}

// Reserved reports whether machines of a reservation were bought: what is left of it cannot be
// stated for another part.
func (s *Supply) Reserved() bool { return len(s.bought.reserved) > 0 }

// Left is a part with what is left.
func (s *Supply) Left(t *Part) *Part {
	out, own := *t, *t.Problem
	own.Pools, own.Quotas = slices.Clone(own.Pools), slices.Clone(own.Quotas)
	for i, pool := range t.pools {
		own.Pools[i] = s.pool(pool)
	}
	for i := range own.Quotas {
		own.Quotas[i].Left -= s.bought.quotas[own.Quotas[i].Name]
	}
	out.Problem = &own
	return &out
}

// LosesDomains reports whether the pods of a problem spread over other domains than hosts, and
// some offering can be bought no longer that could be before, with the same NodePools: spreads count
// domains in which a machine could be bought, and the problem does not know of these.
func LosesDomains(before, now *model.Problem) bool {
	if !slices.ContainsFunc(now.Classes, spreadsOverDomains) {
		return false
	}
	all, left := NewSupply(before), NewSupply(now)
	for i := range before.Pools {
		if before.Pools[i].Catalog < 0 {
			continue
		}
		types := before.Catalogs[before.Pools[i].Catalog].InstanceTypes
		for t := range types {
			for o := range types[t].Offerings {
				of := model.OfferingRef{InstanceType: t, Offering: o}
				if all.sells(i, of) && !left.sells(i, of) {
					return true
				}
			}
		}
	}
	return false
}

// spreadsOverDomains reports whether pods must spread over other domains than hosts.
func spreadsOverDomains(c model.PodClass) bool {
	return slices.ContainsFunc(c.Spread, func(s model.SpreadConstraint) bool { return s.Hard && s.TopologyKey != model.LabelHostname })
}
