package azure

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// shop answers lists of machines after a second, each with one machine more.
type shop struct {
	launch.Launcher
	mu    sync.Mutex
	lists int
	fails bool
}

func (s *shop) List(context.Context) ([]launch.Machine, error) {
	time.Sleep(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		return nil, errors.New("no")
	}
	s.lists++
	return make([]launch.Machine, s.lists), nil
}

// TestOneListServesAll: callers within its age, and those that come while it is under way; not
// one that wants what is there now, and none after it was forgotten.
func TestOneListServesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, counted := &shop{}, 0
		l := newMachineList(s, time.Now, func() func([]launch.Machine) { return func(m []launch.Machine) { counted = len(m) } })
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() {
				if all, err := l.within(t.Context(), time.Minute); err != nil || len(all.machines) != 1 {
					t.Errorf("listed %d, %v", len(all.machines), err)
				}
			})
		}
		group.Wait()
		expect := func(when string, want int) {
			t.Helper()
			all, err := l.within(t.Context(), time.Minute)
			n, ago := len(all.machines), time.Since(all.asked)
			if err != nil || n != want || s.lists != want || counted != want || ago >= time.Minute {
				t.Errorf("%s: listed %d, asked %s ago, %v; %d were counted; want %d", when, n, ago, err, counted, want)
			}
		}
		expect("at once", 1)
		if all, err := l.read(t.Context()); err != nil || len(all.machines) != 2 {
			t.Errorf("listed %d now, %v", len(all.machines), err)
		}
		expect("after another has listed", 2)
		time.Sleep(time.Minute)
		expect("after its age", 3)
		l.forget()
		expect("forgotten", 4)
		s.fails = true
		time.Sleep(time.Minute)
		if all, err := l.within(t.Context(), time.Minute); err == nil || all.machines != nil {
			t.Errorf("Azure does not answer: %d machines, %v", len(all.machines), err)
		}
	})
}
