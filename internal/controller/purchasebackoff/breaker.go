package purchasebackoff

import (
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Policy is how a Breaker reacts to failures in a row.
type Policy struct {
	// Pauses are how long nothing is bought after the first failure in a row, the
	// second and so on. The last one stands for all that follow.
	Pauses []time.Duration
	// Probes is the number of failures in a row from which on purchases are made one
	// by one.
	Probes int
}

// pause is how long nothing is bought after n failures in a row, n > 0.
func (p *Policy) pause(n int) time.Duration { return p.Pauses[min(n, len(p.Pauses))-1] }

// forgetAfter is how long a key without another failure is remembered. It is longer
// than any pause.
const forgetAfter = 6 * time.Hour

// pauseAfterChange is the longest pause once the circumstances have changed. It keeps
// circumstances that change all the time from buying all the time.
const pauseAfterChange = time.Minute

// Failure is one purchase that came to nothing.
type Failure struct {
	// Purchase names it, so that it is counted once.
	Purchase string `json:"purchase"`
	// Pool is the NodePool that bought.
	Pool string `json:"pool"`
	// Why says in words what happened.
	Why string `json:"why"`
}

// Record is what a Breaker knows of one key.
type Record struct {
	Key string `json:"key"`
	// Count is the number of failures in a row; Last are the latest of them, the
	// oldest first, at most as many as lastFailures.
	Count int       `json:"count"`
	Last  []Failure `json:"last"`
	// Until is when the next purchase may be made. Since is when the pause that ends
	// then began, that is the time of the last failure.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Circumstances are those of the last failure. When they are others, the next
	// purchase may be made sooner.
	Circumstances string `json:"circumstances,omitempty"`
}

// lastFailures is how many failures of a key are kept in words.
const lastFailures = 4

// Verdict is what a Breaker says of a key.
type Verdict int

// The verdicts.
const (
	// Closed: nothing speaks against purchases.
	Closed Verdict = iota
	// Probe: one purchase may be made, if none is under way.
	Probe
	// Open: nothing may be bought yet.
	Open
)

// Breaker counts purchases in a row that came to nothing, by key, and says when the
// next one may be made. It is safe for concurrent use.
type Breaker struct {
	policy Policy
	clock  clock.Clock

	mu      sync.Mutex
	records map[string]*Record
}

// NewBreaker returns a breaker that knows of no failure.
func NewBreaker(policy Policy, clk clock.Clock) *Breaker {
	return &Breaker{policy: policy, clock: clk, records: map[string]*Record{}}
}

// Failed counts a purchase that came to nothing, and reports whether it counts: a
// purchase counts once, and not when it was made before the failure that opened the
// breaker, since it says nothing about what has been tried since.
func (b *Breaker) Failed(key string, f Failure, made time.Time, circumstances string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.current(key)
	if r == nil {
		r = &Record{Key: key}
		b.records[key] = r
	}
	if slices.ContainsFunc(r.Last, func(l Failure) bool { return l.Purchase == f.Purchase }) {
		return false
	}
	if r.Count >= b.policy.Probes && made.Before(r.Since) {
		return false
	}
	r.Count++
	r.Last = append(r.Last, f)
	r.Last = r.Last[max(0, len(r.Last)-lastFailures):]
	r.Since = b.clock.Now()
	r.Until = r.Since.Add(b.policy.pause(r.Count))
	r.Circumstances = circumstances
	return true
}

// Succeeded forgets the failures of a key, and reports whether there were any.
func (b *Breaker) Succeeded(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, known := b.records[key]
	if known {
		delete(b.records, key)
	}
	return known
}

// Ask says whether a purchase may be made for a key under these circumstances, empty
// where they are not known. The record is a copy of what is known, with Count 0 when
// nothing is; its Until takes the circumstances into account.
func (b *Breaker) Ask(key, circumstances string) (Verdict, Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.current(key)
	if r == nil {
		return Closed, Record{Key: key}
	}
	out := r.copy()
	if soon := r.Since.Add(pauseAfterChange); circumstances != "" && circumstances != r.Circumstances && soon.Before(r.Until) {
		out.Until = soon
	}
	switch {
	case out.Until.After(b.clock.Now()):
		return Open, out
	case r.Count >= b.policy.Probes:
		return Probe, out
	}
	return Closed, out
}

// current returns the record of a key, or nil. It drops one that is out of date.
func (b *Breaker) current(key string) *Record {
	r := b.records[key]
	if r != nil && b.clock.Since(r.Since) > forgetAfter {
		delete(b.records, key)
		return nil
	}
	return r
}

func (r *Record) copy() Record {
	c := *r
	c.Last = slices.Clone(r.Last)
	return c
}

// knows reports whether there is a record of a key.
func (b *Breaker) knows(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.current(key) != nil
}

func (b *Breaker) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.records) == 0
}
