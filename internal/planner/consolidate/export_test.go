package consolidate

import (
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/decompose"
)

// PlanInParts plans a problem in its parts, if it has any, however small it is.
func PlanInParts(f *model.DisruptionProblem) *model.Commands { return plan(f, 0) }

// RecheckInParts asks again in the parts of the command, however small the problem is.
func RecheckInParts(f *model.DisruptionProblem, in Intent) []Objection { return recheckIn(f, in, 0) }

// Parts is how many parts a problem has.
func Parts(f *model.DisruptionProblem) int { return len(decompose.SplitDisruption(f, 0)) }
