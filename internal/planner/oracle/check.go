// Package oracle judges plans without using any of the planner's code: every
// rule is stated again, plainly. [Check] verifies a plan; [Cheapest] finds the
// true optimum of tiny problems by trying everything.
package oracle

import "github.com/nodeautoprovision/nap/internal/model"

// Violation is one rule that a plan breaks.
type Violation struct {
	// Rule is a short name of the rule, Message the sentence with the figures.
	Rule, Message string
}

// Check returns everything that is wrong with the plan, in a fixed order.
func Check(p *model.Problem, plan *model.Plan) []Violation { return nil }
