package provisioning

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/controller/liveness"
)

// Close says why a batch ended.
type Close string

// The reasons for which a batch ends.
const (
	CloseComplete Close = "complete"
	CloseIdle     Close = "idle"
	CloseMax      Close = "max"
)

// lookEvery is how often an open batch asks whether it is complete. It is also
// the least that a batch waits.
const lookEvery = 25 * time.Millisecond

// BatchDurations are the limits of a batch, as Karpenter's flags of these names.
type BatchDurations struct {
	Idle, Max time.Duration
}

// Batch collects triggers. Any goroutine may call Trigger; one calls Wait.
type Batch struct {
	durations BatchDurations
	clock     clock.Clock
	wake      chan struct{}
	// activity is the planning of the batch that was closed last.
	activity liveness.Activity

	// moot reports whether nothing is left to plan of a batch of tentative triggers; nil
	// means that something always is.
	moot func(context.Context, []Owner) bool
	// coming reports whether pods are known to come though none does just now; nil means that
	// none are. Then a batch that is idle stays open, for Max at most.
	coming func() bool

	mu     sync.Mutex
	seen   map[string]bool
	owners map[Owner]bool
	urgent bool
	// firm is set by the first trigger that is not tentative.
	firm bool
	// opened is when the first trigger came, joined when the youngest of the owners appeared.
	opened, joined time.Time
	// asked are closed when the batch that is open has been planned, planning when the one
	// that was closed last has.
	asked, planning []chan struct{}
}

// NewBatch returns an empty batch.
func NewBatch(d BatchDurations, clk clock.Clock) *Batch {
	return &Batch{
		durations: d, clock: clk, wake: make(chan struct{}, 1),
		seen: map[string]bool{}, owners: map[Owner]bool{},
	}
}

// done notes that the batch that was closed last has been planned.
func (b *Batch) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, asked := range b.planning {
		close(asked)
	}
	b.planning = nil
}

// News says what a trigger means for the length of the batch.
type News struct {
	// Owner may have more pods to create: the batch closes early once it,
	// and every other owner, has created all.
	Owner *Owner
	// Appeared is when the owner was first seen, where that was before this trigger; zero
	// stands for now.
	Appeared time.Time
	// Tentative triggers may come to nothing: the scheduler has not looked at the pod yet.
	Tentative bool
	// Urgent triggers say that what is to be planned is known already. Together
	// with complete owners, if there are any, they close the batch at once.
	Urgent bool
	// Planned, if there is one, is closed when the batch has been planned.
	Planned chan struct{}
}

// Trigger opens the batch, or prolongs it when the key is new to it. Without any
// news it is a reminder of something that is known: it can wait for the idle
// time.
func (b *Batch) Trigger(key string, news News) {
	b.mu.Lock()
	if news.Planned != nil {
		b.asked = append(b.asked, news.Planned)
	}
	if b.seen[key] {
		b.mu.Unlock()
		return
	}
	if len(b.seen) == 0 {
		b.opened = b.clock.Now()
	}
	b.seen[key] = true
	if news.Owner != nil && !b.owners[*news.Owner] {
		b.owners[*news.Owner] = true
		if news.Appeared.IsZero() {
			news.Appeared = b.clock.Now()
		}
		if news.Appeared.After(b.joined) {
			b.joined = news.Appeared
		}
	}
	b.urgent = b.urgent || news.Urgent
	b.firm = b.firm || !news.Tentative
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default: // it is woken already
	}
}

// Wait blocks until a batch has been opened and closed again. It asks complete
// about the owners of the batch, never in parallel. The next batch starts empty.
// A batch that has become moot is dropped. It returns false when ctx ends.
func (b *Batch) Wait(ctx context.Context, complete func(context.Context, []Owner) bool) (Close, bool) {
	for {
		why, ok := b.next(ctx, complete)
		if !ok {
			return "", false
		}
		owners, firm := b.reset()
		if firm || b.moot == nil || !b.moot(ctx, owners) {
			return why, true
		}
	}
}

// next waits for the next batch, moot or not.
func (b *Batch) next(ctx context.Context, complete func(context.Context, []Owner) bool) (Close, bool) {
	for b.empty() {
		select {
		case <-ctx.Done():
			return "", false
		case <-b.wake:
		}
	}
	latest := b.clock.NewTimer(b.durations.Max)
	idle := b.clock.NewTimer(b.durations.Idle)
	look := b.clock.NewTimer(lookEvery)
	defer latest.Stop()
	// A closure, since idle and look are replaced.
	defer func() { idle.Stop(); look.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return "", false
		case <-latest.C():
			return CloseMax, true
		case <-idle.C():
			if b.coming == nil || !b.coming() {
				return CloseIdle, true
			}
			idle = b.clock.NewTimer(b.durations.Idle)
		case <-look.C():
			if owners, hurry := b.news(); hurry && complete(ctx, owners) {
				return CloseComplete, true
			}
			look = b.clock.NewTimer(lookEvery)
		case <-b.wake:
			idle.Stop()
			idle = b.clock.NewTimer(b.durations.Idle)
		}
	}
}

// Owners seldom come alone: those of one file follow each other closely. A batch with
// owners stays open until joinQuiet after the youngest of them appeared, but no longer than
// joinWithin.
const (
	joinQuiet  = 150 * time.Millisecond
	joinWithin = time.Second
)

// news returns the owners, and whether anything calls for closing early.
func (b *Batch) news() (owners []Owner, hurry bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for o := range b.owners {
		owners = append(owners, o)
	}
	if len(owners) == 0 {
		return nil, b.urgent
	}
	return owners, b.clock.Since(b.joined) >= joinQuiet || b.clock.Since(b.opened) >= joinWithin
}

func (b *Batch) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.seen) == 0
}

// reset empties the batch: the coming plan is about everything in it, and what is
// triggered from now on opens the next one. It returns what was in it.
func (b *Batch) reset() (owners []Owner, firm bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for o := range b.owners {
		owners = append(owners, o)
	}
	firm = b.firm
	b.planning, b.asked = append(b.planning, b.asked...), nil
	clear(b.seen)
	clear(b.owners)
	b.urgent, b.firm = false, false
	return owners, firm
}
