package leadership

import (
	"fmt"
	"sync"
	"time"
)

// Election says when the lease of the leader changes hands.
type Election struct {
	// LeaseDuration is for how long others wait after a renewal before they take the
	// lease, RenewDeadline for how long the leader tries to renew it before it gives up,
	// and RetryPeriod how often it tries. Each is longer than the next.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// Default has shorter times than Karpenter's election (15 s, 10 s, 2 s): another replica
// leads at most 14.4 s after the last renewal of one that was killed, which leaves it more
// than 5 s to act within 20 s. Shorter ones would lose the lead to an API server that is
// slow for a moment.
func Default() Election {
	return Election{LeaseDuration: 10 * time.Second, RenewDeadline: 8 * time.Second, RetryPeriod: time.Second}
}

// WritesWithin is for how long after the beginning of a renewal the leader writes: as long
// as it would try to renew the lease, and at most two thirds of the time after which others
// take it. The last third is for a request that is under way.
func (e Election) WritesWithin() time.Duration { return min(e.RenewDeadline, e.LeaseDuration/3*2) }

// Lease says whether this process may write as the leader. It is safe for concurrent
// use. A nil Lease is always held: there is no election.
type Lease struct {
	// within is for how long after the beginning of a renewal the lease counts as held.
	// It is less than other processes wait before they take the lease, so that a write
	// which has just begun is over by then: see [Election.WritesWithin].
	within time.Duration
	now    func() moment

	mu sync.Mutex
	// renewed is when the last renewal that succeeded was begun; held says that there
	// was one and that the lease was not given back since.
	renewed moment
	held    bool
}

// moment is a time on two clocks: one that is never set, which may stand still while a
// virtual machine is paused, and the wall clock, which may be set.
type moment struct {
	boot time.Duration
	wall time.Time
}

// since is how much time has passed between two moments by the clock that has gone
// further.
func (m moment) since(earlier moment) time.Duration {
	return max(m.boot-earlier.boot, m.wall.Sub(earlier.wall))
}

// NewLease returns a lease that is not held before it has been renewed once. After a
// renewal it counts as held for [Election.WritesWithin].
func NewLease(e Election) *Lease {
	return &Lease{
		within: e.WritesWithin(),
		now:    func() moment { return moment{bootTime(), time.Now().Round(0)} },
	}
}

// NotHeldError is why a write was refused. Nothing was sent.
type NotHeldError struct {
	// Ago is how long ago the lease was renewed, 0 if it never was or was given back.
	Ago time.Duration
}

// Error says what happened and what follows.
func (e *NotHeldError) Error() string {
	if e.Ago == 0 {
		return "this controller does not hold the lease of the leader, so it writes nothing"
	}
	return fmt.Sprintf("this controller renewed the lease of the leader %s ago and may not be the leader any more, "+
		"so it writes nothing before it has renewed the lease", e.Ago.Round(time.Second))
}

// Held returns nil while this process may write, and a *[NotHeldError] otherwise.
func (l *Lease) Held() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held {
		return &NotHeldError{}
	}
	if ago := l.now().since(l.renewed); ago > l.within {
		return &NotHeldError{Ago: ago}
	}
	return nil
}

// renew takes in a renewal that has succeeded, by the moment at which it was begun.
func (l *Lease) renew(begun moment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed, l.held = begun, true
}

// giveBack takes in that the lease is about to be given back.
func (l *Lease) giveBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
}
