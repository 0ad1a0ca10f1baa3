package consolidate

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

// reserve lets the pods that wait move in first, where the planner would put
// them, and books the machines that it would buy for them. Nodes that have their
// room are kept. Those that are leaving take none of them in, but the pods that are
// still there count for topology.
func (b *board) reserve(leaving map[string]bool) {
	if b.first == 0 {
		return
	}
	p := *b.fleet.Problem
	p.Policy.Budget = 0
	p.Nodes = slices.Clone(p.Nodes)
	for n := range p.Nodes {
		if leaving[p.Nodes[n].Name] {
			p.Nodes[n].Used = p.Nodes[n].Allocatable
		}
	}
	plan := planner.Solve(&p)
	for i := range plan.Placements {
		pl := &plan.Placements[i]
		for _, cp := range pl.Pods {
			n := int32(len(cp.Pods))
			b.need[cp.Class] += n
			b.put(int32(pl.Node), int32(cp.Class), b.levelOn(cp.Class, pl.Node), n)
		}
		if l := &b.nodes[pl.Node]; l.stay == nil {
			l.stay = b.awaited(pl.Node)
		}
	}
	for i := range plan.NewNodes {
		if o := b.optionOf(plan.NewNodes[i].Pool, plan.NewNodes[i].Best()); o >= 0 {
			b.book(o)
		}
	}
}

// book takes what a machine for pods that wait draws from limits and quotas.
func (b *board) book(option int) {
	b.ledger.Take(option, 1)
	b.booked = append(b.booked, option)
}

// levelOn is the first level of preferences at which a class may be on a node.
func (s *site) levelOn(class, node int) int8 {
	levels := s.kinds[class].levels
	for l := range levels {
		if levels[l].Nodes.Has(node) {
			return int8(l)
		}
	}
	return int8(len(levels) - 1)
}

// awaited says that a node has the room of pods without a place, who are about to
// come, or is nil. It is asked before any move is made: whoever moves in later may
// not count on a node that goes.
func (b *board) awaited(n int) *model.KeptNode {
	pods := 0
	for _, g := range b.bins[n].guests {
		if int(g.class) < b.first {
			pods += int(g.n)
		}
	}
	if pods == 0 {
		return nil
	}
	return stay(n, model.ReasonKeptForWaiting, "%s has room for %s without a place.", b.name(n), plural(pods, "pod"))
}
