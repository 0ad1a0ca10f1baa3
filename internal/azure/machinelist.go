package azure

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// machineList lists all machines of the cluster, and knows what Azure has answered last. A
// thousand machines are some megabytes to read, so one list serves all that need not know of
// the last minutes. It is safe for concurrent use.
type machineList struct {
	launcher launch.Launcher
	now      func() time.Time
	// listed is called before Azure is asked. What it returns is called with the answer.
	listed func() func([]launch.Machine)

	asking chan struct{} // holds one thing while one lists for all who would

	mu   sync.Mutex
	last machinesAt
}

// machinesAt are all machines as Azure gave them.
type machinesAt struct {
	machines []launch.Machine // shared: nothing of it is changed
	asked    time.Time        // before the request; zero where nothing is known
}

func newMachineList(launcher launch.Launcher, now func() time.Time, listed func() func([]launch.Machine)) *machineList {
	return &machineList{launcher: launcher, now: now, listed: listed, asking: make(chan struct{}, 1)}
}

// read lists all machines now.
func (l *machineList) read(ctx context.Context) (machinesAt, error) {
	asked, answered := l.now(), l.listed()
	machines, err := l.launcher.List(ctx)
	if err != nil {
		return machinesAt{}, err
	}
	found := machinesAt{machines, asked}
	l.keep(found)
	answered(machines)
	return found, nil
}

// keep remembers an answer, unless a later one is known.
func (l *machineList) keep(found machinesAt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !found.asked.Before(l.last.asked) {
		l.last = found
	}
}

// within returns what was listed less than age ago; where nothing was, it lists now. Callers
// that come meanwhile wait for that list.
func (l *machineList) within(ctx context.Context, age time.Duration) (machinesAt, error) {
	select {
	case l.asking <- struct{}{}:
		defer func() { <-l.asking }()
	case <-ctx.Done():
		return machinesAt{}, fmt.Errorf("waiting for a list of machines: %w", ctx.Err())
	}
	if found, known := l.recent(age); known {
		return found, nil
	}
	return l.read(ctx)
}

// recent is what was listed less than age ago; false where nothing was.
func (l *machineList) recent(age time.Duration) (machinesAt, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, !l.last.asked.IsZero() && l.now().Sub(l.last.asked) < age
}

// forget makes the next caller list again: something was changed that a list shows.
func (l *machineList) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = machinesAt{}
}
