package provisioning

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// announcing remembers which workloads are announced. To find out is to look at all pods, so that
// it is asked a tenth of the time at most: until then a workload that was not announced is
// none. It is safe for concurrent use.
type announcing struct {
	clock clock.PassiveClock
	of    func(now time.Time) map[string]bool

	mu sync.Mutex
	// again is when it may be asked again.
	again time.Time
	// was is the last answer.
	was map[string]bool
}

// askRest is how many times as long as an answer takes no other one is asked for.
const askRest = 9

// has reports whether the further pods of a workload are planned before they exist.
func (a *announcing) has(uid types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.clock.Now(); !now.Before(a.again) {
		a.was = a.of(now)
		done := a.clock.Now()
		a.again = done.Add(askRest * done.Sub(now))
	}
	return a.was[string(uid)]
}
