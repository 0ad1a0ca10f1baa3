package meter

import "time"

// Meter says when to stop. Steps are elementary operations, the same on every
// machine; time is looked at every so many steps only, as asking is not free.
type Meter struct {
	// whole is the budget of the whole search, budget that of the present stage; both
	// count from the start of the search.
	whole, budget time.Duration
	// clock is the caller's; without a clock the meter counts steps alone.
	clock Clock
	// Limit is how many steps the budget is taken to allow. It stops the search only
	// where there is no clock or a patient one; with another it still divides the budget
	// among stages.
	Limit int64
	// Steps is how many steps have been spent.
	Steps int64
	// asked is Steps when the time was last looked at; asked <= Steps.
	asked int64
	// stopped says that the budget is used up.
	stopped bool
	// forks is how many meters were forked off this one; it numbers them.
	forks int
}

// StepTime is what one step is taken to last when no clock is given.
const StepTime = 8 * time.Nanosecond

// askEvery is how many steps pass between looks at the clock: some tens of
// microseconds.
const askEvery = 1 << 14

// New is a meter for a budget, of which none is spent; with a budget of zero or less
// it is over.
func New(budget time.Duration, clock Clock) *Meter {
	m := &Meter{whole: budget, clock: clock}
	m.Until(1)
	m.asked = 0 // not before something is done
	return m
}

// Until lets the search go on until a share of its whole budget is used up, and looks at
// the clock when it is asked next.
func (m *Meter) Until(share float64) {
	m.budget = time.Duration(share * float64(m.whole))
	m.Limit = int64(m.budget / StepTime)
	m.stopped, m.asked = m.budget <= 0, m.Steps-askEvery
}

// Limited reports whether there is a budget at all.
func (m *Meter) Limited() bool { return m.whole > 0 }

// Clocked reports whether a clock stops the search, and not the number of its steps.
func (m *Meter) Clocked() bool { return !m.clock.steady() }

// Spend records work done.
func (m *Meter) Spend(steps int64) { m.Steps += steps }

// Over tells whether the budget is used up. Once it is, it stays so until the next stage.
func (m *Meter) Over() bool {
	switch {
	case m.stopped:
	case !m.clock.present():
		m.stopped = m.Steps >= m.Limit
	case m.clock.limits.Patience > 1 && m.Steps >= m.Limit:
		m.stopped = true
	case float64(m.Steps) < m.clock.limits.Floor*float64(m.Limit): // too early for any clock
	case m.Steps-m.asked >= askEvery:
		m.asked = m.Steps
		m.stopped = m.clock.stops(m.Steps, m.budget)
	}
	return m.stopped
}

// Fork is a meter for a worker that works at the same time.
func (m *Meter) Fork() *Meter {
	m.forks++
	o := *m
	o.clock, o.forks = m.clock.numbered(m.forks), 0
	return &o
}

// Resume takes up the count of another meter; this one keeps its place in the record.
func (m *Meter) Resume(o *Meter) {
	m.Steps, m.asked, m.stopped = o.Steps, o.asked, o.stopped
}

// Merge counts what both workers have done as the time that the slower one took.
func (m *Meter) Merge(o *Meter) {
	m.Steps = max(m.Steps, o.Steps)
	m.asked = min(m.asked, o.asked)
	m.stopped = m.stopped || o.stopped
}
