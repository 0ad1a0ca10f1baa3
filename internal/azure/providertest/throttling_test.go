package providertest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

// refusals counts the requests that the simulated Azure refused for their rate.
func (w *world) refusals() int64 {
	var n int64
	for name, count := range w.Server.Stats() {
		if strings.HasPrefix(name, "throttled ") {
			n += count
		}
	}
	return n
}

// launchAll buys machines in parallel and returns how long each took.
func (w *world) launchAll(t *testing.T, n int) []time.Duration {
	t.Helper()
	begin := time.Now()
	took := make([]time.Duration, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if _, err := w.provider.Launch(t.Context(), w.order(fmt.Sprintf("general-%03d", i), onDemand())); err != nil {
				t.Error(err)
			}
			took[i] = time.Since(begin)
		})
	}
	wg.Wait()
	slices.Sort(took)
	return took
}

func TestFiveHundredMachinesInParallelStayWithinAzuresLimits(t *testing.T) {
	const machines = 500
	inWorld(t, func(t *testing.T, w *world) {
		took := w.launchAll(t, machines)
		time.Sleep(5 * time.Minute) // billing extensions, the last polls
		if n := w.refusals(); n != 0 {
			t.Errorf("Azure refused %d requests for their rate, want none: %v", n, w.Server.Stats())
		}
		if n := w.Server.Stats()["vm.accepted"]; n != machines {
			t.Errorf("Azure accepted %d machines, want %d", n, machines)
		}
		t.Logf("simulated time until launched: half %s, all %s", took[machines/2], took[machines-1])
		w.deleteAll(t)
		if n := w.refusals(); n != 0 {
			t.Errorf("with the deletions Azure refused %d requests for their rate, want none: %v", n, w.Server.Stats())
		}
		w.noLeaks(t)
	}, armtest.Realistic)
}
