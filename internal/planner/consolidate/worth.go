package consolidate

import (
	"math"

	"github.com/nodeautoprovision/nap/internal/model"
)

// priceRoom finds what a unit of each dimension is worth: the prices under which
// all movable pods together are worth the most while no ware is worth more than
// it costs. That is the dual of buying room as a liquid, solved well enough by
// searching along its few dimensions; it only guides and proves nothing.
func (s *site) priceRoom() {
	demand := make([]float64, s.d)
	for i := range s.kinds {
		for d, v := range s.kinds[i].own {
			demand[d] += float64(v) * float64(len(s.problem.Classes[i].Pods))
		}
	}
	s.worth = make([]float64, s.d)
	wares := s.menu
	if len(wares) == 0 {
		wares = s.nodesAsWares()
	}
	share := make([]float64, s.d) // of the value that each dimension carries
	carrying := 0
	for d := range share {
		if demand[d] > 0 {
			carrying++
		}
	}
	for d := range share {
		if demand[d] > 0 {
			share[d] = 1 / float64(carrying)
		}
	}
	best := valueOf(share, demand, wares, s.worth)
	trial, prices := make([]float64, s.d), make([]float64, s.d)
	for step := 0.5; step > 1e-4; {
		improved := false
		for d := range share {
			for _, sign := range [2]float64{1, -1} {
				copy(trial, share)
				trial[d] = max(0, trial[d]+sign*step*max(trial[d], 0.02))
				if demand[d] == 0 {
					continue
				}
				if v := valueOf(trial, demand, wares, prices); v > best*(1+1e-9) {
					best, improved = v, true
					copy(share, trial)
					copy(s.worth, prices)
				}
			}
		}
		if !improved {
			step /= 2
		}
	}
	for i := range s.kinds {
		s.kinds[i].worth = s.worthOf(s.kinds[i].own)
	}
	for i := range s.menu {
		s.menu[i].worth = s.worthOf(s.menu[i].net)
	}
}

// valueOf prices the dimensions in proportion to their shares, as high as the
// wares allow, leaves the prices and returns what the demand is worth.
func valueOf(share, demand []float64, wares []ware, prices []float64) float64 {
	for d := range prices {
		prices[d] = 0
		if demand[d] > 0 {
			prices[d] = share[d] / demand[d]
		}
	}
	scale := math.Inf(1)
	for i := range wares {
		sum := 0.0
		for d, v := range wares[i].net {
			if v < 1<<57 {
				sum += prices[d] * float64(v)
			}
		}
		if sum > 0 {
			scale = min(scale, float64(wares[i].price)/sum)
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

// nodesAsWares are the paid nodes, where nothing can be bought.
func (s *site) nodesAsWares() []ware {
	var out []ware
	for n := range s.problem.Nodes {
		if node := &s.problem.Nodes[n]; node.Price > 0 {
			out = append(out, ware{price: node.Price, net: s.project(s.space.Vector(node.Allocatable, nil))})
		}
	}
	return out
}

func (s *site) worthOf(v []int64) float64 {
	sum := 0.0
	for d, amount := range v {
		if amount < 1<<57 {
			sum += s.worth[d] * float64(amount)
		}
	}
	return sum
}

// poolTotals are what Balanced measures a move against.
type poolTotals struct {
	price      model.Money
	disruption float64
}

func (s *site) totalPools() {
	s.pools = make([]poolTotals, len(s.fleet.Policies))
	for n := range s.nodes {
		if l := &s.nodes[n]; l.policy >= 0 {
			s.pools[l.policy].price += l.price
			s.pools[l.policy].disruption += 1 + l.cost
		}
	}
}
