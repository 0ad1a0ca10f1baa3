package consolidate

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
)

// reservePending gives pending pods their room before anything is removed: where the
// planner would put them, and on the new nodes that it would buy, whose share of limits
// and quotas is booked. Nodes with such room are kept. Nodes that are leaving, by name,
// take in none of them, but their pods count for topology. It returns the new nodes.
// Precondition: nothing was changed in the state yet.
func reservePending(st *state.State, leaving map[string]bool) []model.NewNode {
	if st.Problem.FirstMovable == 0 {
		return nil
	}
	p := *st.Problem.Input.Problem
	p.Policy.Budget = 0
	p.Nodes = slices.Clone(p.Nodes)
	for n := range p.Nodes {
		if leaving[p.Nodes[n].Name] {
			p.Nodes[n].Used = p.Nodes[n].Allocatable
		}
	}
	plan := st.Problem.Prepared.Solve(&p)
	for i := range plan.Placements {
		pl := &plan.Placements[i]
		for _, cp := range pl.Pods {
			class, n := int32(cp.Class), int32(len(cp.Pods))
			st.Unplaced.Await(class, n)
			st.Put(int32(pl.Node), state.Relocated{Class: class, Count: n, Level: st.Problem.Classes[class].LevelOn(pl.Node)})
		}
		st.Eligible.Block(int32(pl.Node), keptForPending(st, pl.Node))
	}
	for i := range plan.NewNodes {
		if o := st.Problem.Space.OptionOf(&plan.NewNodes[i], nil); o >= 0 {
			st.Book(o)
		}
	}
	return plan.NewNodes
}

// keptForPending says that a node has the room of pending pods, or is nil. It is asked
// before any command is made: pods that move in later may not count on a node that is
// removed.
func keptForPending(st *state.State, n int) *model.KeptNode {
	pods := 0
	for _, r := range st.Bins.At(int32(n)).Pods {
		if int(r.Class) < st.Problem.FirstMovable {
			pods += int(r.Count)
		}
	}
	if pods == 0 {
		return nil
	}
	return compiled.Keep(n, model.ReasonKeptForWaiting, "%s has room for %s without a place.",
		st.Problem.NodeName(n), compiled.Plural(pods, "pod"))
}
