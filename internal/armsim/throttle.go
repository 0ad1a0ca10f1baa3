package armsim

import (
	"math"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// Limit is a token bucket: Burst requests at once, PerMinute in the long run.
type Limit struct {
	// Class is what it limits: "reads", "writes" and "deletes" are those of ARM
	// itself; PutVM, UpdateVM, DeleteVM, LowCostGetVM, HighCostGetVM and
	// GetOperation those of compute; NetworkWrite, NetworkRead, ResourceGraph.
	Class       string
	PerResource bool // one bucket for each resource instead of one for the subscription
	Burst       float64
	PerMinute   float64
}

// PublishedLimits are the documented ones of ARM, compute, network and
// Resource Graph. Network counts in windows of five minutes in the real Azure;
// here its buckets refill evenly at the same rate.
func PublishedLimits() []Limit {
	return []Limit{
		{Class: "reads", Burst: 250, PerMinute: 25 * 60},
		{Class: "writes", Burst: 200, PerMinute: 10 * 60},
		{Class: "deletes", Burst: 200, PerMinute: 10 * 60},
		{Class: "PutVM", Burst: 1500, PerMinute: 500},
		{Class: "PutVM", PerResource: true, Burst: 12, PerMinute: 4},
		{Class: "UpdateVM", Burst: 1500, PerMinute: 500},
		{Class: "UpdateVM", PerResource: true, Burst: 12, PerMinute: 4},
		{Class: "DeleteVM", Burst: 1500, PerMinute: 500},
		{Class: "DeleteVM", PerResource: true, Burst: 12, PerMinute: 4},
		{Class: "LowCostGetVM", Burst: 24_000, PerMinute: 8000},
		{Class: "LowCostGetVM", PerResource: true, Burst: 36, PerMinute: 12},
		{Class: "HighCostGetVM", Burst: 90, PerMinute: 30},
		{Class: "GetOperation", Burst: 15_000, PerMinute: 5000},
		{Class: "GetOperation", PerResource: true, Burst: 45, PerMinute: 15},
		{Class: "NetworkWrite", Burst: 1000, PerMinute: 200},
		{Class: "NetworkRead", Burst: 10_000, PerMinute: 2000},
		{Class: "ResourceGraph", Burst: 15, PerMinute: 180},
	}
}

// bucket is the level of one limit.
type bucket struct {
	level float64   // tokens at seen
	seen  time.Time // last request
}

// throttle holds the buckets.
type throttle struct {
	limits  []Limit
	clock   arm.Clock
	buckets map[string]*bucket // by class, and resource where the limit is for each
}

func newThrottle(limits []Limit, clock arm.Clock) *throttle {
	return &throttle{limits: limits, clock: clock, buckets: map[string]*bucket{}}
}

// take takes one token from every bucket of the classes. When one is empty
// nothing is taken, and the limit and the time until it has a token (of the
// real Azure) are returned.
func (t *throttle) take(classes []string, resource string) (empty *Limit, wait time.Duration, left map[string]int) {
	var full []*bucket
	left = map[string]int{}
	for i := range t.limits {
		l := &t.limits[i]
		if l.Class != classes[0] && l.Class != classes[1] {
			continue
		}
		b := t.fill(l, resource)
		if b.level < 1 {
			return l, time.Duration((1 - b.level) / l.PerMinute * float64(time.Minute)), left
		}
		full = append(full, b)
		if !l.PerResource {
			left[l.Class] = int(b.level) - 1
		}
	}
	for _, b := range full {
		b.level--
	}
	return nil, 0, left
}

// fill brings a bucket up to date.
func (t *throttle) fill(l *Limit, resource string) *bucket {
	now := t.clock.Now()
	id := l.Class
	if l.PerResource {
		id += " " + resource
	}
	b := t.buckets[id]
	if b == nil {
		b = &bucket{level: l.Burst, seen: now}
		t.buckets[id] = b
	}
	b.level = math.Min(l.Burst, b.level+now.Sub(b.seen).Minutes()*t.clock.Scale()*l.PerMinute)
	b.seen = now
	return b
}

// forget drops the buckets of resources that have been full for long, which
// are most: a bucket without a request for ten minutes is full.
func (t *throttle) forget() {
	now := t.clock.Now()
	for id, b := range t.buckets {
		if now.Sub(b.seen) > 10*time.Minute {
			delete(t.buckets, id)
		}
	}
}
