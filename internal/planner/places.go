package planner

import (
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// Place is a node that exists or is on its way, or a machine to be bought.
type Place struct {
	topology.Place
	Free     []int64
	Ports    []model.HostPort
	Attached []model.Volume
	Ready    bool
	// Open says of a machine to be bought that it need not be in one domain of each
	// key that its pods' rules look at; see domains.go.
	Open bool
	// Options are, for a machine to be bought, those that its pods allow; it is
	// empty for nodes.
	Options feasible.Set
	Pods    []instance.PodCount
}

// existing lists the nodes that may take pods, as they are before planning.
func existing(s *feasible.Space) []*Place {
	p := s.Problem
	var out []*Place
	for n := range p.Nodes {
		node := &p.Nodes[n]
		if err := validateNode(node); err != "" {
			s.Rejected = append(s.Rejected, model.Rejection{Kind: "Node", Name: node.Name, Message: err})
			continue
		}
		if node.State == model.NodeLeaving {
			continue
		}
		out = append(out, &Place{
			Place:    topology.Place{ID: n, Node: n, Option: -1},
			Free:     s.NodeFree(n),
			Ports:    slices.Clip(node.HostPorts),
			Attached: slices.Clip(node.Attached),
			Ready:    node.State == model.NodeReady,
		})
	}
	return out
}

// clone returns a place of its own with the same room and without pods.
func (pl *Place) clone() *Place {
	own := *pl
	own.Free = slices.Clone(pl.Free)
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
func (b *builder) sharedNeed(c *instance.Class, pl *Place) []int64 {
	if len(c.Shared) == 0 {
		return nil
	}
	need := make([]int64, b.space.Dims)
	for _, v := range c.Shared {
		if !slices.Contains(pl.Attached, v) {
			need[b.space.DriverDim(v.Driver)]++
		}
	}
	return need
}

// capacity is how many pods of the class the place's free resources and ports
// hold.
func (b *builder) capacity(c *instance.Class, pl *Place, free []int64) int {
	if len(c.Spec.HostPorts) > 0 && feasible.PortsClash(c.Spec.HostPorts, pl.Ports) {
		return 0
	}
	n := count(c.Own, b.sharedNeed(c, pl), free)
	if n > 1 && len(c.Spec.HostPorts) > 0 {
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
func (b *builder) put(c *instance.Class, lvl, n int, pl *Place) {
	if extra := b.sharedNeed(c, pl); extra != nil {
		for d, v := range extra {
			pl.Free[d] -= v
		}
		for _, v := range c.Shared {
			if !slices.Contains(pl.Attached, v) {
				pl.Attached = append(pl.Attached, v)
			}
		}
	}
	for d, size := range c.Own {
		pl.Free[d] -= size * int64(n)
	}
	pl.Ports = append(pl.Ports, c.Spec.HostPorts...)
	if k := len(pl.Pods); k > 0 && pl.Pods[k-1].Class == c.Index && pl.Pods[k-1].Level == lvl {
		pl.Pods[k-1].Count += n
	} else {
		pl.Pods = append(pl.Pods, instance.PodCount{Class: c.Index, Level: lvl, Count: n})
	}
	if pl.Open {
		b.addOpen(c, lvl, n, pl)
		return
	}
	b.counts.Add(c.Index, pl.Place, n)
}

// slack scores how much a place would have left after one pod, as a sum of
// shares of its free room; smaller is a better fit.
func slack(c *instance.Class, free []int64) float64 {
	sum := 0.0
	for d, size := range c.Own {
		if size > 0 && free[d] > 0 && free[d] < feasible.Unlimited/2 {
			sum += float64(free[d]-size) / float64(size)
		}
	}
	return sum
}
