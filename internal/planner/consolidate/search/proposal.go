package search

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
)

// proposer asks the planner where all pods of some nodes would go if these nodes were
// removed together: to the room of the others and to new nodes. The planner knows the
// cluster as it is at the beginning of the search, so what it says is a proposal
// whose every step is checked when it is built.
type proposer struct {
	p *compiled.Problem
	// options has the index in p.Options of each option of Space that is there.
	options map[int]int32
}

func newProposer(p *compiled.Problem) proposer {
	out := proposer{p, map[int]int32{}}
	for i := range p.Options {
		out.options[p.Options[i].Option] = int32(i)
	}
	return out
}

// propose plans the pods of some nodes on a state. The plan has no time budget: it is
// what the planner does at once.
func (r proposer) propose(st *state.State, nodes []int32) *state.SubPlan {
	p := *r.p.Input.Problem
	p.Policy.Budget, p.Policy.Elapsed = 0, nil
	p.Nodes = slices.Clone(p.Nodes)
	for n := range p.Nodes {
		if !st.Index.Has(int32(n)) || r.tookIn(st, n) {
			p.Nodes[n].Used = p.Nodes[n].Allocatable
		}
	}
	pods := make([]int, len(r.p.Input.Movable))
	for _, n := range nodes {
		p.Nodes[n].State = model.NodeLeaving
		for _, g := range r.p.Nodes[n].Pods {
			pods[int(g.Class)-r.p.FirstMovable] += int(g.Count)
		}
	}
	p.Classes = nil
	var classes []int32
	for i, n := range pods {
		if n > 0 {
			c := r.p.Input.Movable[i].PodClass
			c.Pods = c.Pods[:n]
			p.Classes, classes = append(p.Classes, c), append(classes, int32(r.p.FirstMovable+i))
		}
	}
	return r.subPlan(r.p.Prepared.Solve(&p), nodes, classes)
}

// tookIn reports whether pods have moved to a node since the problem was stated.
func (r proposer) tookIn(st *state.State, n int) bool {
	return !slices.Equal(st.Bins.Free(int32(n)), r.p.Project(r.p.Space.NodeFree(n)))
}

// subPlan is a plan for the pods of some nodes in the words of a state. Class i of the
// plan is classes[i]. New nodes whose option is not worth buying are left out.
func (r proposer) subPlan(plan *model.Plan, nodes, classes []int32) *state.SubPlan {
	out := &state.SubPlan{Nodes: nodes}
	for i := range plan.Placements {
		pl := &plan.Placements[i]
		for _, cp := range pl.Pods {
			c := classes[cp.Class]
			out.Assignments = append(out.Assignments, state.Assignment{
				Bin: int32(pl.Node), Relocated: state.Relocated{Class: c, Count: int32(len(cp.Pods)), Level: r.p.Classes[c].LevelOn(pl.Node)},
			})
		}
	}
	for i := range plan.NewNodes {
		node := &plan.NewNodes[i]
		option := r.p.Space.OptionOf(node, nil)
		at, ok := r.options[option]
		if !ok {
			continue
		}
		purchase := state.Purchase{Option: at}
		for _, cp := range node.Pods {
			c := classes[cp.Class]
			if level := r.p.Classes[c].LevelFor(option); level >= 0 {
				purchase.Pods = append(purchase.Pods, state.Relocated{Class: c, Count: int32(len(cp.Pods)), Level: int8(level)})
			}
		}
		out.Purchases = append(out.Purchases, purchase)
	}
	return out
}
