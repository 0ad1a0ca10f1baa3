package placement

import (
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// Place is a node that exists or is on its way, or a node to be bought, with what its
// pods leave of it.
//
// Invariant: for a node to be bought, Free is what its option has net of DaemonSets
// less what Pods take, and Option is one of Options.
type Place struct {
	topology.Place
	// Free is what is left of each dimension of the space. It is negative where an
	// existing node is overcommitted.
	Free []int64
	// Ports are the host ports and Attached the disks of the pods there.
	Ports    []model.HostPort
	Attached []model.Volume
	// Ready reports whether an existing node is initialized.
	Ready bool
	// Open says of a node to be bought that it need not be in one domain of each key
	// that the rules of its pods read; see openplace.go.
	Open bool
	// Options are, for a node to be bought, those that its pods allow. It is empty for
	// existing nodes.
	Options bitset.Set
	// Pods are the pods that were put there, in this order.
	Pods []instance.PodCount
}

// Existing lists the nodes that may take pods, as they are before planning, and
// refuses malformed ones. The places share their vectors with the space: states take
// copies of them, and nothing changes them.
func Existing(s *feasible.Space) ([]*Place, []model.Rejection) {
	p := s.Problem
	var out []*Place
	var rejected []model.Rejection
	for n := range p.Nodes {
		node := &p.Nodes[n]
		if err := validateNode(node); err != "" {
			rejected = append(rejected, model.Rejection{Kind: "Node", Name: node.Name, Message: err})
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
	return out, rejected
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

// clones are independent copies. Ports and disks are shared up to their length, which
// the copies never change. There is one piece of storage for all copies, since a state
// with thousands of nodes is forked often.
func clones(places []*Place) []*Place {
	if len(places) == 0 {
		return nil
	}
	dims := len(places[0].Free)
	out, storage, free := make([]*Place, len(places)), make([]Place, len(places)), make([]int64, len(places)*dims)
	for i, pl := range places {
		own := &storage[i]
		*own = *pl
		own.Free = free[i*dims : (i+1)*dims : (i+1)*dims]
		copy(own.Free, pl.Free)
		own.Pods, own.Options = slices.Clone(pl.Pods), pl.Options.Clone()
		own.Ports, own.Attached = slices.Clip(pl.Ports), slices.Clip(pl.Attached)
		out[i] = own
	}
	return out
}

// Count is the number of pods that were put on the place.
func (pl *Place) Count() int {
	n := 0
	for _, pc := range pl.Pods {
		n += pc.Count
	}
	return n
}

// Fitting is how often a pod that takes own fits into free after extra, which may be
// nil, is taken once.
func Fitting(own, extra, free []int64) int {
	if extra == nil {
		return int(feasible.CountFitting(own, free, math.MaxInt32))
	}
	n := int64(math.MaxInt32)
	for d, size := range own {
		left := free[d] - extra[d]
		if left < size || left < 0 {
			return 0
		}
		if size > 0 {
			n = min(n, left/size)
		}
	}
	return int(n)
}
