package planner

import (
	"math"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/construct"
	"github.com/nodeautoprovision/nap/internal/planner/decompose"
	"github.com/nodeautoprovision/nap/internal/planner/nodechoice"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
	"github.com/nodeautoprovision/nap/internal/planner/portfolio"
)

// SolveInParts plans a problem in its parts, if it has any, however small it is.
func SolveInParts(p *model.Problem) *model.Plan {
	return solve(p, portfolio.Standard(), sizes{explained: 1 << 20, whole: 1 << 20}, nil)
}

// SolveInTurn is SolveInParts, and plans one part after the other where they need too much.
func SolveInTurn(p *model.Problem) *model.Plan {
	return solve(p, portfolio.Standard(), sizes{explained: 1 << 20}, nil)
}

// PartsExceed reports whether the parts of a problem together need more than there is.
func PartsExceed(p *model.Problem) bool {
	return Parts(p) > 0 && solveParts(p, portfolio.Standard(), sizes{explained: 1 << 20, whole: math.MaxInt}) == nil
}

// Parts is how many parts a problem has.
func Parts(p *model.Problem) int { return len(decompose.Split(p, 0)) }

// BoundOfAll proves how much plans cost at least that place all pods of a problem, in NodePools
// of any weight. Unlike that of a plan, it can be above what the plan costs if it is wrong.
func BoundOfAll(p *model.Problem) model.Money {
	in := compile(p, nil)
	nodes, _ := placement.Existing(in.Space)
	c := construct.New(in, nodes, placement.Decision{}, construct.Params{})
	placed := make([]int, len(in.Classes))
	for i := range placed {
		placed[i] = len(p.Classes[i].Pods)
	}
	target := nodechoice.TargetFor(c.State, placed, c.Index.Worth())
	target.Spilled = true
	return nodechoice.Bound(in, target, &p.Policy, clockOf(p))
}

// SolveWhole plans a problem as one.
func SolveWhole(p *model.Problem) *model.Plan { return solveWhole(p, portfolio.Standard(), nil) }

// TenantsWaiting is a problem of tenants whose pods, of several sizes, wait all at once.
func TenantsWaiting(tenants int) *model.Problem {
	p := &model.Problem{Axes: model.NewAxes(), Catalogs: []model.Catalog{bigCatalog()}}
	for i := range tenants {
		p.Pools = append(p.Pools, tenant(i))
		for size := range 20 {
			p.Classes = append(p.Classes, ofTenant(i, 20, int64(700+170*size)))
		}
	}
	return p
}

// Phased reports whether a problem has classes that alone keep it from being divided, however
// small it is.
func Phased(p *model.Problem) bool { return decompose.Common(p, 0, 0) != nil }

// AlikeParts is how many parts of a problem differ from one before them in names alone.
func AlikeParts(p *model.Problem) int {
	parts, n := decompose.Split(p, 0), 0
	alike := decompose.FindAlike(p, parts)
	for i := range parts {
		if alike.First(i) != i {
			n++
		}
	}
	return n
}
