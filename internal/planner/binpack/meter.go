package binpack

import "time"

// meter says when to stop. Steps are elementary operations, the same on every
// machine; time is looked at every so many steps only, as asking is not free.
type meter struct {
	budget  time.Duration
	elapsed func() time.Duration
	limit   int64
	steps   int64
	asked   int64 // steps at which the time was last looked at
	stopped bool
}

// stepTime is what one step is taken to last when no clock is given.
const stepTime = 8 * time.Nanosecond

// askEvery is how many steps pass between looks at the clock: some tens of
// microseconds.
const askEvery = 1 << 14

func newMeter(p *Problem) *meter {
	m := &meter{budget: p.Budget, elapsed: p.Elapsed, limit: int64(p.Budget / stepTime)}
	m.stopped = p.Budget <= 0
	return m
}

// spend records work done.
func (m *meter) spend(steps int64) { m.steps += steps }

// over tells whether the budget is used up. Once it is, it stays so.
func (m *meter) over() bool {
	switch {
	case m.stopped:
	case m.elapsed == nil:
		m.stopped = m.steps >= m.limit
	case m.steps-m.asked >= askEvery:
		m.asked = m.steps
		m.stopped = m.elapsed() >= m.budget
	}
	return m.stopped
}
