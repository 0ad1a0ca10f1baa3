package planner

import (
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// place is a node that exists or is on its way, or a machine to be bought.
type place struct {
	topology.Place
	free     []int64
	ports    []model.HostPort
	attached []model.Volume
	ready    bool
	// open says of a machine to be bought that it need not be in one domain of each
	// key that its pods' rules look at; see domains.go.
	open bool
	// options are, for a machine to be bought, those that its pods allow; it is
	// empty for nodes.
	options feasible.Set
	pods    []podCount
}

// podCount is a number of pods of a class that were placed at one level.
type podCount struct {
	class, level, count int
}

// existing lists the nodes that may take pods, as they are before planning.
func existing(s *feasible.Space) []*place {
	p := s.Problem
	var out []*place
	for n := range p.Nodes {
		node := &p.Nodes[n]
		if err := validateNode(node); err != "" {
			s.Rejected = append(s.Rejected, model.Rejection{Kind: "Node", Name: node.Name, Message: err})
			continue
		}
		if node.State == model.NodeLeaving {
			continue
		}
		out = append(out, &place{
			Place:    topology.Place{ID: n, Node: n, Option: -1},
			free:     s.NodeFree(n),
			ports:    slices.Clip(node.HostPorts),
			attached: slices.Clip(node.Attached),
			ready:    node.State == model.NodeReady,
		})
	}
	return out
}

// clone returns a place of its own with the same room and without pods.
func (pl *place) clone() *place {
	own := *pl
	own.free = slices.Clone(pl.free)
	return &own
}

func validateNode(n *model.Node) string {
	for _, r := range []model.Resources{n.Allocatable, n.Used} {
		for _, v := range r {
			if v >= feasible.Unlimited || v <= -feasible.Unlimited {
				return "allocatable or used: an amount is beyond 2^58"
			}
		}
	}
	return ""
}

// sharedNeed is what the first pod of a class takes on the place for disks
// that all pods of the class share and that are not there yet.
func (b *builder) sharedNeed(c *class, pl *place) []int64 {
	if len(c.shared) == 0 {
		return nil
	}
	need := make([]int64, b.space.Dims)
	for _, v := range c.shared {
		if !slices.Contains(pl.attached, v) {
			need[b.space.DriverDim(v.Driver)]++
		}
	}
	return need
}

// capacity is how many pods of the class the place's free resources and ports
// hold.
func (b *builder) capacity(c *class, pl *place, free []int64) int {
	if len(c.spec.HostPorts) > 0 && feasible.PortsClash(c.spec.HostPorts, pl.ports) {
		return 0
	}
	n := count(c.own, b.sharedNeed(c, pl), free)
	if n > 1 && len(c.spec.HostPorts) > 0 {
		n = 1
	}
	return n
}

// count is how often own fits into free after extra is taken once.
func count(own, extra, free []int64) int {
	n := int64(math.MaxInt32)
	for d, size := range own {
		left := free[d]
		if extra != nil {
			left -= extra[d]
		}
		if left < size || left < 0 {
			return 0
		}
		if size > 0 {
			n = min(n, left/size)
		}
	}
	return int(n)
}

// put books n pods of a class, placed at a level, on the place.
func (b *builder) put(c *class, lvl, n int, pl *place) {
	if extra := b.sharedNeed(c, pl); extra != nil {
		for d, v := range extra {
			pl.free[d] -= v
		}
		for _, v := range c.shared {
			if !slices.Contains(pl.attached, v) {
				pl.attached = append(pl.attached, v)
			}
		}
	}
	for d, size := range c.own {
		pl.free[d] -= size * int64(n)
	}
	pl.ports = append(pl.ports, c.spec.HostPorts...)
	if k := len(pl.pods); k > 0 && pl.pods[k-1].class == c.index && pl.pods[k-1].level == lvl {
		pl.pods[k-1].count += n
	} else {
		pl.pods = append(pl.pods, podCount{c.index, lvl, n})
	}
	if pl.open {
		b.addOpen(c, lvl, n, pl)
		return
	}
	b.world.Add(c.index, pl.Place, n)
}

// slack scores how much a place would have left after one pod, as a sum of
// shares of its free room; smaller is a better fit.
func slack(c *class, free []int64) float64 {
	sum := 0.0
	for d, size := range c.own {
		if size > 0 && free[d] > 0 && free[d] < feasible.Unlimited/2 {
			sum += float64(free[d]-size) / float64(size)
		}
	}
	return sum
}
