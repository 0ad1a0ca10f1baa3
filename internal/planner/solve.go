package planner

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topo"
)

// Solve plans the problem. It always returns a plan: whatever cannot be placed
// is in Unschedulable with its reason, and malformed pods, pools and catalogue
// entries are refused one by one without spoiling the rest.
func Solve(p *model.Problem) *model.Plan {
	s := feasible.New(p)
	classes, topos := compileClasses(s)
	world := topo.NewWorld(s, topos)
	b := &builder{space: s, world: world, ledger: s.NewLedger(), classes: classes, nodes: existing(s), left: make([]int, len(classes))}
	for i := range classes {
		b.left[i] = len(p.Classes[i].Pods)
	}
	for _, i := range order(classes) {
		b.run(&classes[i])
	}
	plan := b.finish()
	for i := range plan.Unschedulable {
		u := &plan.Unschedulable[i]
		u.Reason = model.ReasonNothingCompatible
		if msg := classes[u.Class].invalid; msg != "" {
			u.Reason, u.Message = model.ReasonPodInvalid, msg
		}
	}
	plan.Stats.FirstCost = plan.Cost
	return plan
}

// order sorts the valid classes: higher priority first, then those that others
// wait for, then the more constrained and larger.
func order(classes []class) []int {
	var out []int
	for i := range classes {
		if classes[i].invalid == "" {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(x, y int) int {
		a, b := &classes[x], &classes[y]
		return cmp.Or(
			cmp.Compare(b.priority, a.priority),
			cmp.Compare(a.depth, b.depth),
			cmp.Compare(b.own[model.CPU], a.own[model.CPU]),
			cmp.Compare(b.own[model.Memory], a.own[model.Memory]),
		)
	})
	return out
}
