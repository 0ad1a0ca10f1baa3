package meter

import (
	"fmt"
	"sync"
	"time"
)

// Clock is time as one search sees it. The zero value is no clock: nothing is ever late,
// and meters count steps.
//
// A clock can keep a [Record] of what it has answered, and another one can give the same
// answers again, so that a search which time has cut short is repeated exactly.
type Clock struct {
	// elapsed is how long the caller has waited; nil for a clock that replays.
	elapsed func() time.Duration
	// log is the record that is kept or followed, or nil.
	log *log
	// name is that of the meters of this clock in the record.
	name string
	// limits bound how the clock may cut a search.
	limits CutLimits
	// work is what the search has done beside its meters; it measures the budget where
	// time does not. Nil for a clock that does not need it.
	work *Work
}

// Work counts the steps of a search that no meter counts: those of the one goroutine that
// constructs plans. A nil Work counts nothing.
type Work struct{ steps int64 }

// Spend records work done. Only the goroutine of the search calls it.
func (w *Work) Spend(steps int64) {
	if w != nil {
		w.steps += steps
	}
}

// CutLimits bound how much a clock may cut a search short.
type CutLimits struct {
	// Patience is how many times the budget may pass before the clock says that it is
	// late. Above 1, steps measure the budget instead of time, so that a search which is
	// not cut depends on its problem alone. 0 is 1.
	Patience int64
	// Floor is the share of a meter's steps below which the clock never stops it.
	Floor float64
}

// Within is the clock with such limits.
func (c Clock) Within(l CutLimits) Clock {
	if elapsed := c.elapsed; elapsed != nil && l.Patience > 1 {
		c.elapsed = func() time.Duration { return elapsed() / time.Duration(l.Patience) }
	}
	if l.Patience > 1 && c.work == nil {
		c.work = &Work{}
	}
	c.limits = l
	return c
}

// Steps is a clock without time: steps measure budgets.
func Steps() Clock { return Clock{work: &Work{}} }

// Work is where the search counts what no meter counts. It is nil, and need not be told
// anything, where time measures the budget.
func (c Clock) Work() *Work {
	if !c.steady() {
		return nil
	}
	return c.work
}

// steady reports whether steps measure the budget, and not time.
func (c Clock) steady() bool { return !c.present() || c.limits.Patience > 1 }

// worked is how long the work that was counted is taken to last.
func (c Clock) worked() time.Duration {
	if c.work == nil {
		return 0
	}
	return time.Duration(c.work.steps) * StepTime
}

// Record is what a search asked of time and what the answers were. Two searches of the
// same problem with the same answers are the same.
type Record struct {
	// Readings are the times that the search has read, in nanoseconds, in this order.
	Readings []time.Duration
	// Late says which of the questions whether it is late were answered by yes: runs of
	// their numbers, the first and the last of each run. Questions count from 0.
	Late [][2]int
	// Stops is after how many steps time stopped a meter, by the meter's name. A meter
	// that time did not stop is not in it.
	Stops map[string]int64
}

// log is a record while it is kept or followed.
type log struct {
	// follow says that the answers come from the record.
	follow bool
	// readings and questions count those so far. The goroutine of the search alone
	// changes them, and the other parts of the record but for Stops.
	readings, questions int
	// children counts the clocks that were named, by kind.
	children map[string]int
	// mu guards the record's Stops, which all meters write.
	mu     sync.Mutex
	record Record
}

// NewClock is a clock that keeps no record; with elapsed nil it is none.
func NewClock(elapsed func() time.Duration) Clock { return Clock{elapsed: elapsed} }

// Recording is a clock that keeps a record.
func Recording(elapsed func() time.Duration) Clock {
	return Clock{elapsed: elapsed, log: &log{children: map[string]int{}, record: Record{Stops: map[string]int64{}}}}
}

// Replaying is a clock that answers as a record says. Questions that the record does not
// have are answered by the last reading, and by no.
func Replaying(r Record) Clock {
	return Clock{log: &log{follow: true, children: map[string]int{}, record: r}}
}

// Record is what was recorded so far, or what is followed; ok is false if there is none.
// Readings that repeat the last one are left out, since replaying assumes them.
// Precondition: no meter of the clock is in use.
func (c Clock) Record() (r Record, ok bool) {
	if c.log == nil {
		return Record{}, false
	}
	r = c.log.record
	n := len(r.Readings)
	for n > 1 && r.Readings[n-1] == r.Readings[n-2] || n == 1 && r.Readings[0] == 0 {
		n--
	}
	r.Readings = r.Readings[:n]
	return r, true
}

// present reports whether there is a clock.
func (c Clock) present() bool { return c.elapsed != nil || c.log != nil }

// Now is how much of the budget has gone: time, or what the work that was counted is
// taken to last where steps measure it. Only the goroutine of the search calls it.
func (c Clock) Now() time.Duration {
	if c.steady() {
		return c.worked()
	}
	if c.log == nil {
		if c.elapsed == nil {
			return 0
		}
		return c.elapsed()
	}
	l := c.log
	at := l.readings
	l.readings++
	if !l.follow {
		l.record.Readings = append(l.record.Readings, c.elapsed())
	}
	if n := len(l.record.Readings); at >= n {
		if n == 0 {
			return 0
		}
		at = n - 1
	}
	return l.record.Readings[at]
}

// Late reports whether so much time has passed. Only the goroutine of the search calls
// it.
func (c Clock) Late(limit time.Duration) bool {
	switch {
	case c.steady() && c.worked() >= limit:
		return true
	case !c.present():
		return false
	case c.log == nil:
		return c.elapsed() >= limit
	}
	l := c.log
	at := l.questions
	l.questions++
	if l.follow {
		for _, run := range l.record.Late {
			if run[0] <= at && at <= run[1] {
				return true
			}
		}
		return false
	}
	if c.elapsed() < limit {
		return false
	}
	if n := len(l.record.Late); n > 0 && l.record.Late[n-1][1] == at-1 {
		l.record.Late[n-1][1] = at
	} else {
		l.record.Late = append(l.record.Late, [2]int{at, at})
	}
	return true
}

// Child is the clock for the meter of the next part of the search of a kind, for instance
// "packing". Only the goroutine of the search calls it; any one may use the child's meter.
func (c Clock) Child(kind string) Clock {
	if c.log != nil {
		c.log.children[kind]++
		c.name = fmt.Sprintf("%s %d", kind, c.log.children[kind])
	}
	return c
}

// numbered is the clock of the n-th fork of a meter.
func (c Clock) numbered(n int) Clock {
	if c.log != nil {
		c.name = fmt.Sprintf("%s.%d", c.name, n)
	}
	return c
}

// stops reports whether time stops a meter now, after so many steps. Any goroutine may
// call it.
func (c Clock) stops(steps int64, budget time.Duration) bool {
	if c.log == nil {
		return c.elapsed() >= budget
	}
	l := c.log
	if l.follow {
		stop, ok := l.record.Stops[c.name]
		return ok && steps >= stop
	}
	if c.elapsed() < budget {
		return false
	}
	l.mu.Lock()
	l.record.Stops[c.name] = steps
	l.mu.Unlock()
	return true
}
