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
	b.reduced = reduceOptions(s, world, classes)
	b.pooled = true
	for i := range classes {
		b.left[i] = len(p.Classes[i].Pods)
	}
	markTogether(world, classes)
	sequence := order(classes)
	for _, i := range sequence {
		b.run(&classes[i])
	}
	res := b.pack(&p.Policy)
	b.pooled = false
	if res.unplaced > 0 {
		for _, i := range sequence {
			b.run(&classes[i])
		}
	}
	plan := b.finish()
	for i := range plan.Unschedulable {
		u := &plan.Unschedulable[i]
		u.Reason = model.ReasonNothingCompatible
		if msg := classes[u.Class].invalid; msg != "" {
			u.Reason, u.Message = model.ReasonPodInvalid, msg
		}
	}
	plan.Stats.FirstCost = res.first
	plan.LowerBound = res.bound
	plan.Stats.Rounds = res.rounds
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

// markTogether finds the classes that per-machine affinity ties to others:
// those that have such a term and those that it selects.
func markTogether(w *topo.World, classes []class) {
	tied := map[int]bool{}
	for i := range classes {
		for l := range classes[i].topo.Levels {
			for _, a := range classes[i].topo.Levels[l].Rules.Affinity {
				if a.Key == topo.Host {
					classes[i].together = true
					tied[a.Counter] = true
				}
			}
		}
	}
	for i := range classes {
		for _, c := range w.Adds(i) {
			classes[i].together = classes[i].together || tied[c]
		}
	}
}
