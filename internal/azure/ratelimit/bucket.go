package ratelimit

import (
	"math"
	"time"
)

// firstRequests are how many requests of a class are sent before Azure has said
// how many it grants.
const firstRequests = 8

const (
	// reserveShare of a bucket, at most mostReserve, is left in it: a request is
	// counted here before it reaches Azure, and Azure's bucket, if full, does not
	// refill meanwhile.
	reserveShare = 0.02
	mostReserve  = 4
)

// bucket is one limit as this process believes it to be.
type bucket struct {
	limit Limit
	level float64
	seen  time.Time
	// heldTo is until when Azure refuses.
	heldTo time.Time
	// learned says that Azure has confirmed a level; unconfirmed buckets of a
	// subscription admit firstRequests only.
	learned bool
	// started counts the requests that were let pass; inFlight are those of them
	// that have not been answered, by their number.
	started  uint64
	inFlight map[uint64]struct{}
}

func newBucket(l Limit, now time.Time) *bucket {
	b := &bucket{limit: l, level: l.Burst, seen: now, learned: l.PerResource, inFlight: map[uint64]struct{}{}}
	if !b.learned {
		b.level = math.Min(l.Burst, firstRequests+b.reserve())
	}
	return b
}

// fill brings the level up to date.
func (b *bucket) fill(now time.Time) {
	if d := now.Sub(b.seen); d > 0 {
		b.level = math.Min(b.limit.Burst, b.level+d.Seconds()*b.limit.PerSecond)
		b.seen = now
	}
}

// ready is how long a request has to wait at least; 0 lets it pass.
func (b *bucket) ready(now time.Time) time.Duration {
	b.fill(now)
	wait := time.Duration(0)
	if need := 1 + b.reserve(); b.level < need {
		// Rounded up, so that the token is there when the time has come.
		wait = time.Duration((need-b.level)/b.limit.PerSecond*float64(time.Second)) + time.Microsecond
	}
	return max(wait, b.heldTo.Sub(now))
}

// reserve is what is left in the bucket.
func (b *bucket) reserve() float64 { return math.Min(mostReserve, b.limit.Burst*reserveShare) }

// take lets a request pass and returns its number.
func (b *bucket) take() uint64 {
	b.level--
	b.started++
	b.inFlight[b.started] = struct{}{}
	return b.started
}

// remaining corrects the level by what Azure said in its answer to request n.
// When it said so it had counted that request, and some of those in flight: the
// truth is between what it said and that less everything it may not have counted.
func (b *bucket) remaining(n uint64, left float64) {
	older := 0
	for other := range b.inFlight {
		if other < n {
			older++
		}
	}
	least := left - float64(b.started-n) - float64(older)
	b.limit.Burst = math.Max(b.limit.Burst, left)
	b.learned = true
	b.level = math.Min(math.Max(b.level, least), left)
}

// refused empties the bucket until Azure wants to be asked again. Then requests
// pass at the rate at which it refills.
func (b *bucket) refused(now time.Time, pause time.Duration) {
	b.fill(now)
	b.learned = true
	until := now.Add(pause)
	if until.After(b.heldTo) {
		b.heldTo = until
	}
	// One token is there at the end of the pause.
	b.level = math.Min(b.level, 1+b.reserve()-pause.Seconds()*b.limit.PerSecond)
}

// idle reports whether the bucket is as good as a new one.
func (b *bucket) idle(now time.Time) bool {
	b.fill(now)
	return b.level >= b.limit.Burst && len(b.inFlight) == 0 && !now.Before(b.heldTo)
}
