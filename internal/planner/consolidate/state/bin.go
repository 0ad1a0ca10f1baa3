package state

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// Bin is a node that exists or a new node to be bought.
type Bin struct {
	// Option indexes the problem's Options, -1 for nodes that exist.
	Option int32
	// Removed bins are given up. They hold no pods and take none in.
	Removed bool
	// Frozen new nodes belong to a command that is made. No other command may count
	// on their room or give them up.
	Frozen bool
	// exchanged is 1 more than the option of the space that the ledger has for a new node which is
	// described, 0 where it has that of Option.
	exchanged int32
	// Pods have moved in since the state began, in the order in which they came.
	Pods []Relocated
	// ports and attached are the host ports and the shared disks in use.
	ports    []model.HostPort
	attached []model.Volume
}

// Relocated is a number of pods of a class that moved in at one level of their
// preferences.
type Relocated struct {
	Class, Count int32
	Level        int8
}

// Bins are all bins of a state: the nodes by their index, then the new nodes in the
// order of purchase.
//
// Invariant: len(free) == len(list) * Dims of the problem.
type Bins struct {
	p    *compiled.Problem
	list []Bin
	// free is what the bins have left, Dims amounts each. It is negative where a node
	// is overcommitted.
	free []int64
	// scratch is a vector for computing what fits, valid during one call.
	scratch []int64
}

func newBins(p *compiled.Problem) *Bins {
	nodes := len(p.Planning.Nodes)
	b := &Bins{p: p, list: make([]Bin, 0, nodes), free: make([]int64, 0, nodes*p.Dims()), scratch: make([]int64, p.Dims())}
	for n := range p.Planning.Nodes {
		node := &p.Planning.Nodes[n]
		b.push(Bin{
			Option: -1, Removed: node.State == model.NodeLeaving, ports: slices.Clip(node.HostPorts), attached: slices.Clip(node.Attached),
		}, p.Project(p.Space.NodeFree(n)))
	}
	return b
}

// Len is the number of bins.
func (b *Bins) Len() int { return len(b.list) }

// At is bin i, valid until a bin is added.
func (b *Bins) At(i int32) *Bin { return &b.list[i] }

// Free is what bin i has left, valid until a bin is added.
func (b *Bins) Free(i int32) []int64 {
	d := b.p.Dims()
	at := int(i) * d
	return b.free[at : at+d : at+d]
}

// IsNode reports whether a bin is a node that exists.
func (b *Bins) IsNode(i int32) bool { return int(i) < len(b.p.Nodes) }

// Option is the node option of a new node.
// Precondition: !IsNode(i).
func (b *Bins) Option(i int32) *compiled.NodeOption { return &b.p.Options[b.list[i].Option] }

// Place is a bin as topology sees it.
func (b *Bins) Place(i int32) topology.Place {
	if !b.IsNode(i) {
		return topology.Place{ID: int(i), Node: -1, Option: b.Option(i).Option}
	}
	return topology.Place{ID: int(i), Node: int(i), Option: -1}
}

// Permits reports whether pods of a class may be on a bin at a level, by what does
// not depend on other pods: node selectors, taints and the like.
func (b *Bins) Permits(c *compiled.Class, level int, i int32) bool {
	l := &c.Levels[level]
	if o := b.list[i].Option; o >= 0 {
		return l.Options.Has(b.p.Options[o].Option)
	}
	return l.Nodes.Has(int(i))
}

// CountFitting is how many of the wanted pods the bin's free capacity, host ports and
// disk slots hold, topology aside.
func (b *Bins) CountFitting(c *compiled.Class, i, want int32) int32 {
	if !c.Shares() {
		return int32(feasible.CountFitting(c.Size, b.Free(i), int64(want)))
	}
	if len(c.HostPorts) > 0 {
		if feasible.PortsClash(c.HostPorts, b.list[i].ports) {
			return 0
		}
		want = min(want, 1)
	}
	copy(b.scratch, b.Free(i))
	for j, v := range c.Shared {
		if !slices.Contains(b.list[i].attached, v) {
			b.scratch[c.SharedDim[j]]--
		}
	}
	return int32(feasible.CountFitting(c.Size, b.scratch, int64(want)))
}

// Hold takes the room of pods on a bin which takes none in, for good: they are to come when it
// does. The pods are not on the bin, and no log undoes it.
func (b *Bins) Hold(i int32, r Relocated) {
	feasible.Add(b.Free(i), b.p.Classes[r.Class].Size, -int64(r.Count))
}

func (b *Bins) push(bin Bin, free []int64) {
	b.list = append(b.list, bin)
	b.free = append(b.free, free...)
}

func (b *Bins) pop() {
	last := len(b.list) - 1
	b.list = b.list[:last]
	b.free = b.free[:last*b.p.Dims()]
}

// sharing is how many ports and disks a bin had in use before pods were put on it.
type sharing struct{ ports, disks int32 }

// put takes the capacity for n pods of a class and lists them. It returns what undoes
// that: the sharing before, and whether a new entry of Pods was begun.
func (b *Bins) put(c *compiled.Class, i int32, r Relocated) (before sharing, fresh bool) {
	bin, free := &b.list[i], b.Free(i)
	before = sharing{int32(len(bin.ports)), int32(len(bin.attached))}
	for j, v := range c.Shared {
		if !slices.Contains(bin.attached, v) {
			free[c.SharedDim[j]]--
			bin.attached = append(bin.attached, v)
		}
	}
	bin.ports = append(bin.ports, c.HostPorts...)
	feasible.Add(free, c.Size, -int64(r.Count))
	if last := len(bin.Pods) - 1; last >= 0 && bin.Pods[last].Class == r.Class && bin.Pods[last].Level == r.Level {
		bin.Pods[last].Count += r.Count
		return before, false
	}
	bin.Pods = append(bin.Pods, r)
	return before, true
}

// unput undoes the last put on bin i.
func (b *Bins) unput(c *compiled.Class, i int32, r Relocated, before sharing, fresh bool) {
	bin, free := &b.list[i], b.Free(i)
	for len(bin.attached) > int(before.disks) {
		last := len(bin.attached) - 1
		free[c.SharedDim[slices.Index(c.Shared, bin.attached[last])]]++
		bin.attached = bin.attached[:last]
	}
	bin.ports = bin.ports[:before.ports]
	feasible.Add(free, c.Size, int64(r.Count))
	if last := len(bin.Pods) - 1; fresh {
		bin.Pods = bin.Pods[:last]
	} else {
		bin.Pods[last].Count -= r.Count
	}
}
