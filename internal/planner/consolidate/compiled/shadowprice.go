package compiled

import (
	"math"

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

// smallestStep is the step of the coordinate search at which it ends, relative to a
// share.
const smallestStep = 1e-4

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
	demand := make([]float64, p.Dims())
	for i := range p.Classes {
		for d, v := range p.Classes[i].Size {
			demand[d] += float64(v) * float64(len(p.Planning.Classes[i].Pods))
		}
	}
	p.dims.shadow = make(shadowPrices, p.Dims())
	options := p.Options
	if len(options) == 0 {
		options = p.nodesAsOptions()
	}
	share := equalShares(demand)
	best := valueOf(share, demand, options, p.dims.shadow)
	trial, prices := make([]float64, p.Dims()), make(shadowPrices, p.Dims())
	for step := 0.5; step > smallestStep; {
		improved := false
		for d := range share {
			for _, sign := range [2]float64{1, -1} {
				copy(trial, share)
				trial[d] = max(0, trial[d]+sign*step*max(trial[d], 0.02))
				if demand[d] == 0 {
					continue
				}
				if v := valueOf(trial, demand, options, prices); v > best*(1+1e-9) {
					best, improved = v, true
					copy(share, trial)
					copy(p.dims.shadow, prices)
				}
			}
		}
		if !improved {
			step /= 2
		}
	}
	for i := range p.Classes {
		p.Classes[i].Value = p.dims.shadow.of(p.Classes[i].Size)
	}
	for i := range p.Options {
		p.Options[i].Value = p.dims.shadow.of(p.Options[i].Net)
	}
}

// equalShares gives each dimension that is in demand the same share of the value.
func equalShares(demand []float64) []float64 {
	carrying := 0
	for d := range demand {
		if demand[d] > 0 {
			carrying++
		}
	}
	share := make([]float64, len(demand))
	for d := range share {
		if demand[d] > 0 {
			share[d] = 1 / float64(carrying)
		}
	}
	return share
}

// valueOf prices the dimensions in proportion to their shares, as high as the options
// allow. It leaves the result in prices and returns what the demand is worth.
func valueOf(share, demand []float64, options []NodeOption, prices shadowPrices) float64 {
	for d := range prices {
		prices[d] = 0
		if demand[d] > 0 {
			prices[d] = share[d] / demand[d]
		}
	}
	scale := math.Inf(1)
	for i := range options {
		if sum := prices.of(options[i].Net); sum > 0 {
			scale = min(scale, float64(options[i].Price)/sum)
		}
	}
	if math.IsInf(scale, 1) {
		scale = 0
	}
	value := 0.0
	for d := range prices {
		prices[d] *= scale
		value += prices[d] * demand[d]
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
