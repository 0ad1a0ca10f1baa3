package search

import "time"

// trialTime is about what one trial takes, to turn a time budget into a number of
// trials where there is no clock.
const trialTime = 30 * time.Microsecond

// clock says when the search is to stop. With elapsed nil it counts trials, and the
// search is a pure function of its input.
type clock struct {
	// whole is the budget of the whole search, budget that of the present stage, from
	// the start of the search.
	whole, budget time.Duration
	elapsed       func() time.Duration
	// steps counts trials.
	steps int64
}

// until lets the search go on until a share of its whole time is over.
func (c *clock) until(share float64) { c.budget = time.Duration(share * float64(c.whole)) }

// limited reports whether there is any time for a search beyond the descent.
func (c *clock) limited() bool { return c.budget > 0 }

// over reports whether the time of the stage is over.
func (c *clock) over() bool {
	if c.elapsed != nil {
		return c.elapsed() >= c.budget
	}
	return time.Duration(c.steps)*trialTime >= c.budget
}
