package consolidate

import (
	"maps"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Plan decides what to give back. Policy.Budget of the fleet's problem is the
// time for the search beyond what stands alone, as for the planner; with
// Policy.Elapsed nil it is counted in steps, and the answer is a pure function
// of the fleet.
func Plan(f *model.DisruptionProblem) *model.Commands {
	site := newSite(f)
	main := newBoard(site)
	main.reserve(nil)
	m := &maker{board: main, rejected: map[model.Reason]int64{}, refused: map[int32]*model.KeptNode{}}
	m.force()
	m.dismissEmpty()
	search := newSearch(main)
	begun, refused := len(m.moves), maps.Clone(m.refused)
	m.makeTarget(search.seek())
	if len(m.moves) == begun && search.postpones() {
		m.refused = refused
		search.freely()
		m.makeTarget(main.target())
	}
	m.makeRest()
	stays := m.stays()
	out := &model.Commands{Commands: m.moves, Rejected: m.rejected}
	for n := range f.Problem.Nodes {
		out.Before += f.Problem.Nodes[n].Price
	}
	out.After = out.Before
	for i := range out.Commands {
		out.After -= out.Commands[i].Saving
		out.Evictions += out.Commands[i].Evictions
	}
	for _, b := range search.boards {
		out.Tried += b.trials
	}
	out.Kept = stays
	if f.Bound {
		out.LowerBound = min(out.After, site.bound())
	}
	return out
}
