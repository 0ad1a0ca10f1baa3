package azure

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// machineList lists all machines of the cluster, and knows what Azure has answered last. To
// read such a list is the dearest thing that a controller at rest does: a thousand machines are
// some megabytes. So one list serves all that need not know of the last minutes. It is safe for
// concurrent use.
type machineList struct {
	launcher launch.Launcher
	now      func() time.Time
	// listed is called with each list that Azure has answered.
	listed func([]launch.Machine)

	asking chan struct{} // holds one thing while one lists for all who would

	mu       sync.Mutex
	machines []launch.Machine // shared: nothing of it is changed
	asked    time.Time        // before the request; zero before the first answer
}

func newMachineList(launcher launch.Launcher, now func() time.Time, listed func([]launch.Machine)) *machineList {
	return &machineList{launcher: launcher, now: now, listed: listed, asking: make(chan struct{}, 1)}
}

// read lists all machines now.
func (l *machineList) read(ctx context.Context) ([]launch.Machine, error) {
	asked := l.now()
	machines, err := l.launcher.List(ctx)
	if err != nil {
		return nil, err
	}
	l.keep(machines, asked)
	l.listed(machines)
	return machines, nil
}

// keep remembers an answer, unless a later one is known.
func (l *machineList) keep(machines []launch.Machine, asked time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !asked.Before(l.asked) {
		l.machines, l.asked = machines, asked
	}
}

// within returns what was listed less than age ago, and when Azure was asked for it; where
// nothing was, it lists now. Callers that come meanwhile wait for that list.
func (l *machineList) within(ctx context.Context, age time.Duration) ([]launch.Machine, time.Time, error) {
	select {
	case l.asking <- struct{}{}:
		defer func() { <-l.asking }()
	case <-ctx.Done():
		return nil, time.Time{}, fmt.Errorf("waiting for a list of machines: %w", ctx.Err())
	}
	if machines, asked := l.last(); !asked.IsZero() && l.now().Sub(asked) < age {
		return machines, asked, nil
	}
	if _, err := l.read(ctx); err != nil {
		return nil, time.Time{}, err
	}
	machines, asked := l.last()
	return machines, asked, nil
}

// forget makes the next caller list again: something was changed that a list shows.
func (l *machineList) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.machines, l.asked = nil, time.Time{}
}

func (l *machineList) last() ([]launch.Machine, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.machines, l.asked
}
