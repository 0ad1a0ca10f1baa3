package vm

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// leftoverPoll is how often network interfaces are tried again that Azure would
// not delete yet: it keeps them for the machine that was refused for 180 s.
const leftoverPoll = 10 * time.Second

// leftovers are network interfaces that could not be deleted yet. They live in
// memory alone: after a restart the garbage collection finds what they named.
type leftovers struct {
	mu    sync.Mutex
	names map[string]bool
	wake  chan struct{}
}

func newLeftovers() *leftovers {
	return &leftovers{names: map[string]bool{}, wake: make(chan struct{}, 1)}
}

func (l *leftovers) add(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names[name] = true
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// remove forgets an interface: it is gone, or wanted again.
func (l *leftovers) remove(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.names, name)
}

func (l *leftovers) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.names))
}

// run calls try for every leftover now and then until ctx ends. It does nothing
// while there are none.
func (l *leftovers) run(ctx context.Context, try func(context.Context, string)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		for len(l.list()) > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(leftoverPoll):
			}
			for _, name := range l.list() {
				try(ctx, name)
			}
		}
	}
}
