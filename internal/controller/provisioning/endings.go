package provisioning

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// siblingsWithin is how long a plan waits for the siblings of claims that ended. It waits
// no longer than the idle time of a batch for the next one.
const siblingsWithin = 3 * time.Second

// endings know of claims that end without a machine. What Azure refuses one of them it
// refuses its siblings a moment later, and a plan for the pods of all is cheaper than one
// for each: siblings are claims of one plan at one price that have no machine yet.
// They are safe for concurrent use.
type endings struct {
	snapshot func() *fleet.Snapshot
	clock    clock.Clock

	mu sync.Mutex
	// ended are those whose siblings are waited for, since the first of them.
	ended map[sibling]bool
	since time.Time
}

// sibling is what siblings have in common.
type sibling struct {
	plan  string
	price model.Money
}

// add takes in a claim that ends without a machine.
func (e *endings) add(claim string) {
	c := e.snapshot().Claim(claim)
	if c == nil || c.Plan == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.ended) == 0 {
		e.ended, e.since = map[sibling]bool{}, e.clock.Now()
	}
	e.ended[sibling{c.Plan, c.Planned}] = true
}

// over reports whether nothing is to be waited for.
func (e *endings) over() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.ended) == 0 {
		return true
	}
	if e.clock.Since(e.since) < siblingsWithin {
		for c := range e.snapshot().AllClaims() {
			if c.ProviderID == "" && !c.Leaving && e.ended[sibling{c.Plan, c.Planned}] {
				return false
			}
		}
	}
	e.ended = nil
	return true
}
