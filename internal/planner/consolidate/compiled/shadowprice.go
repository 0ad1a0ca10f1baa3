package compiled

import (
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// shadowPrices has the price per hour of a unit of each dimension.
type shadowPrices []float64

// of is the value of a vector. Dimensions without a limit have none.
func (s shadowPrices) of(v []int64) float64 {
	sum := 0.0
	for d, amount := range v {
		if feasible.Limited(amount) {
			sum += s[d] * float64(amount)
		}
	}
	return sum
}

// ValueOf is the shadow price of a vector, in Money per hour.
func (p *Problem) ValueOf(v []int64) float64 { return p.dims.shadow.of(v) }

// ValueOfPods is the shadow price of the movable pods of a node.
func (p *Problem) ValueOfPods(n *Node) float64 {
	sum := 0.0
	for _, g := range n.Pods {
		sum += p.Classes[g.Class].Value * float64(g.Count)
	}
	return sum
}

// findShadowPrices finds the prices under which all pods together are worth the most
// while no node option is worth more than it costs. That is the dual of the linear
// program which buys capacity in arbitrary fractions:
//
//	maximize   sum_d price_d * demand_d
//	subject to sum_d price_d * net_od <= cost_o   for every option o
//	           price_d >= 0
//
// A coordinate search over the share of the total value that each dimension carries
// solves it well enough. The prices are feasible for the dual at every step, so they
// never overrate an option; how near the maximum they are only affects how good the
// guidance of the search is. Nothing is proved with them.
func (p *Problem) findShadowPrices() {
	s := p.newPriceSearch()
	s.run()
	p.dims.shadow = make(shadowPrices, p.Dims())
	for i, d := range s.dims {
		p.dims.shadow[d] = s.best[i]
	}
	for i := range p.Classes {
		p.Classes[i].Value = p.dims.shadow.of(p.Classes[i].Size)
	}
	for i := range p.Options {
		p.Options[i].Value = p.dims.shadow.of(p.Options[i].Net)
	}
}

// smallestStep is the step of the coordinate search at which it ends, relative to a
// share.
const smallestStep = 1e-4

// mostPricing is how many amounts of options a coordinate search may multiply with prices, which
// takes less than a tenth of a second. The usual four dimensions take a small part of that.
const mostPricing = 20_000_000

// priceSearch is the coordinate search for shadow prices. It knows only the dimensions
// that are in demand and that some option has: the others have no price, as nothing bounds it.
type priceSearch struct {
	// dims index the dimensions of the problem; all vectors here are parallel to them.
	dims   []int
	demand []float64
	// costs are those of the options, nets what they have, one after the other: 0 where it
	// is without a limit.
	costs, nets []float64
	// share is how much of the total value each dimension carries, best are the best prices
	// so far, and trial those that are tried.
	share, best, trial []float64
	// multiplied counts up to mostPricing.
	multiplied int
}

func (p *Problem) newPriceSearch() *priceSearch {
	options := p.Options
	if len(options) == 0 {
		options = p.nodesAsOptions()
	}
	s := &priceSearch{}
	for d, amount := range p.demand() {
		has := func(o NodeOption) bool { return o.Net[d] > 0 && feasible.Limited(o.Net[d]) }
		if amount > 0 && slices.ContainsFunc(options, has) {
			s.dims, s.demand = append(s.dims, d), append(s.demand, amount)
		}
	}
	s.costs, s.nets = make([]float64, 0, len(options)), make([]float64, 0, len(options)*len(s.dims))
	for i := range options {
		s.costs = append(s.costs, float64(options[i].Price))
		for _, d := range s.dims {
			amount := options[i].Net[d]
			if !feasible.Limited(amount) {
				amount = 0
			}
			s.nets = append(s.nets, float64(amount))
		}
	}
	n := len(s.dims)
	s.share, s.best, s.trial = make([]float64, n), make([]float64, n), make([]float64, n)
	return s
}

// demand is what all pods take together. Pods that wait and that no machine holds take nothing.
func (p *Problem) demand() []float64 {
	demand := make([]float64, p.Dims())
	for i := range p.Classes {
		if i < p.FirstMovable && !p.Classes[i].hasPlace() {
			continue
		}
		for d, v := range p.Classes[i].Size {
			demand[d] += float64(v) * float64(len(p.Planning.Classes[i].Pods))
		}
	}
	return demand
}

// hasPlace reports whether some node or option may hold a pod of the class.
func (c *Class) hasPlace() bool {
	return slices.ContainsFunc(c.Levels, func(l planner.PreparedLevel) bool { return l.Options.Any() || l.Nodes.Any() })
}

// run begins with equal shares, and ends where no step pays or mostPricing is used up.
func (s *priceSearch) run() {
	for d := range s.share {
		s.share[d] = 1 / float64(len(s.dims))
	}
	value, share := s.price(s.share, s.best), make([]float64, len(s.dims))
	for step := 0.5; step > smallestStep; {
		improved := false
		for d := range s.share {
			for _, sign := range [2]float64{1, -1} {
				if s.multiplied >= mostPricing {
					return
				}
				copy(share, s.share)
				share[d] = max(0, share[d]+sign*step*max(share[d], 0.02))
				if v := s.price(share, s.trial); v > value*(1+1e-9) {
					value, improved = v, true
					s.share, share = share, s.share
					s.best, s.trial = s.trial, s.best
				}
			}
		}
		if !improved {
			step /= 2
		}
	}
}

// price prices the dimensions in proportion to their shares, as high as the options
// allow. It leaves the result in prices and returns what the demand is worth.
func (s *priceSearch) price(share, prices []float64) float64 {
	for d := range prices {
		prices[d] = share[d] / s.demand[d]
	}
	scale, nets := math.Inf(1), s.nets
	for _, cost := range s.costs {
		sum := 0.0
		for d, price := range prices {
			sum += price * nets[d]
		}
		if nets = nets[len(prices):]; sum > 0 {
			scale = min(scale, cost/sum)
		}
	}
	s.multiplied += len(s.nets)
	if math.IsInf(scale, 1) {
		scale = 0
	}
	value := 0.0
	for d := range prices {
		prices[d] *= scale
		value += prices[d] * s.demand[d]
	}
	return value
}

// nodesAsOptions are the nodes with a price, for problems in which nothing can be
// bought.
func (p *Problem) nodesAsOptions() []NodeOption {
	var out []NodeOption
	for n := range p.Planning.Nodes {
		if node := &p.Planning.Nodes[n]; node.Price > 0 {
			out = append(out, NodeOption{Price: node.Price, Net: p.Project(p.Space.Dims.Vector(node.Allocatable, nil))})
		}
	}
	return out
}
