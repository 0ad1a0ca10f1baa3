package provision

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
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

	mu     sync.Mutex
	seen   map[string]bool
	owners map[Owner]bool
}

// NewBatch returns an empty batch.
func NewBatch(d BatchDurations, clk clock.Clock) *Batch {
	return &Batch{
		durations: d, clock: clk, wake: make(chan struct{}, 1),
		seen: map[string]bool{}, owners: map[Owner]bool{},
	}
}

// Trigger opens the batch, or prolongs it when the key is new to it. The owner
// is whoever may have more pods to create; nil says that nothing more is to come
// on account of this trigger.
func (b *Batch) Trigger(key string, owner *Owner) {
	b.mu.Lock()
	if b.seen[key] {
		b.mu.Unlock()
		return
	}
	b.seen[key] = true
	if owner != nil {
		b.owners[*owner] = true
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default: // somebody has woken it already
	}
}

// Wait blocks until a batch has been opened and closed again. It asks complete
// about the owners of the batch, never in parallel. The next batch starts empty.
// It returns false when ctx ends.
func (b *Batch) Wait(ctx context.Context, complete func(context.Context, []Owner) bool) (Close, bool) {
	for b.empty() {
		select {
		case <-ctx.Done():
			return "", false
		case <-b.wake:
		}
	}
	defer b.reset()
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
			return CloseIdle, true
		case <-look.C():
			if complete(ctx, b.snapshotOwners()) {
				return CloseComplete, true
			}
			look = b.clock.NewTimer(lookEvery)
		case <-b.wake:
			idle.Stop()
			idle = b.clock.NewTimer(b.durations.Idle)
		}
	}
}

func (b *Batch) snapshotOwners() []Owner {
	b.mu.Lock()
	defer b.mu.Unlock()
	owners := make([]Owner, 0, len(b.owners))
	for o := range b.owners {
		owners = append(owners, o)
	}
	return owners
}

func (b *Batch) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.seen) == 0
}

// reset empties the batch: the coming plan is about everything in it, and what is
// triggered from now on opens the next one.
func (b *Batch) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.seen)
	clear(b.owners)
}
