package meter

import "time"

// Meter says when to stop. Steps are elementary operations, the same on every
// machine; time is looked at every so many steps only, as asking is not free.
type Meter struct {
	budget time.Duration
	// elapsed is the caller's clock; with nil the meter counts steps alone.
	elapsed func() time.Duration
	// Limit is how many steps the budget is taken to allow. It stops the search only
	// where there is no clock; with one it still divides the budget among stages.
	Limit int64
	// Steps is how many steps have been spent.
	Steps int64
	// asked is Steps when the time was last looked at; asked <= Steps.
	asked   int64
	stopped bool
}

// stepTime is what one step is taken to last when no clock is given.
const stepTime = 8 * time.Nanosecond

// askEvery is how many steps pass between looks at the clock: some tens of
// microseconds.
const askEvery = 1 << 14

// New is a meter for a budget, of which none is spent; with a budget of zero or less
// it is over. elapsed, which may be nil, is the time that the caller has waited.
func New(budget time.Duration, elapsed func() time.Duration) *Meter {
	m := &Meter{budget: budget, elapsed: elapsed, Limit: int64(budget / stepTime)}
	m.stopped = budget <= 0
	return m
}

// Spend records work done.
func (m *Meter) Spend(steps int64) { m.Steps += steps }

// Over tells whether the budget is used up. Once it is, it stays so.
func (m *Meter) Over() bool {
	switch {
	case m.stopped:
	case m.elapsed == nil:
		m.stopped = m.Steps >= m.Limit
	case m.Steps-m.asked >= askEvery:
		m.asked = m.Steps
		m.stopped = m.elapsed() >= m.budget
	}
	return m.stopped
}

// Fork is a meter for a worker that works at the same time.
func (m *Meter) Fork() *Meter {
	o := *m
	return &o
}

// Merge counts what both workers have done as the time that the slower one took.
func (m *Meter) Merge(o *Meter) {
	m.Steps = max(m.Steps, o.Steps)
	m.asked = min(m.asked, o.asked)
	m.stopped = m.stopped || o.stopped
}
