package kube

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// growth knows since when owners of pods have wanted as many as they do. An owner says when it
// was made, and not when it was scaled up. After a restart this is not known of any, and counts
// as long ago. It is safe for concurrent use.
type growth struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// of has what each owner wants, by UID, those too that want nothing.
	of map[string]wants
}

// wants is how many pods an owner wants, and when it was last seen to want more than before,
// zero for never.
type wants struct {
	pods int
	grew time.Time
}

func newGrowth() *growth { return &growth{clock: clock.RealClock{}, of: map[string]wants{}} }

// date takes in the present state of an owner, and says since when it creates pods where that
// is later than it says itself.
func (g *growth) date(w *fleet.Workload) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, known := g.of[w.UID]
	if known && w.Pods > now.pods {
		now.grew = g.clock.Now()
	}
	now.pods = w.Pods
	g.of[w.UID] = now
	if now.grew.After(w.Since) {
		w.Since = now.grew
	}
}

// forget drops an owner that is gone.
func (g *growth) forget(w *fleet.Workload) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.of, w.UID)
}
