package purchasebackoff

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// Limits bound what is bought at all, whatever pods ask for.
type Limits struct {
	// Machines is the most that there may be, those that are on their way or leave
	// included; 0 for no limit.
	Machines int
	// PerMinute is the most that may be asked for within a minute; 0 for no limit.
	PerMinute int
}

// Ceiling says how many machines may still be bought. It is safe for concurrent use.
type Ceiling struct {
	limits Limits
	clock  clock.Clock

	mu sync.Mutex
	// asked is when machines of the last minute were asked for, in order. Claims of an
	// earlier process, and those that were created by others, are known by their age.
	asked []time.Time
}

// NewCeiling returns a ceiling.
func NewCeiling(limits Limits, clk clock.Clock) *Ceiling { return &Ceiling{limits: limits, clock: clk} }

// Room is how many machines may be bought now beside those of a snapshot, and, where
// that is limited, the sentence for those that may not.
func (c *Ceiling) Room(s *fleet.Snapshot) (machines int, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	c.asked = slices.DeleteFunc(c.asked, func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	total, recent := 0, 0
	for claim := range s.AllClaims() {
		total++
		if now.Sub(claim.Created) < time.Minute {
			recent++
		}
	}
	machines = int(^uint(0) >> 1)
	if c.limits.Machines > 0 {
		machines = max(0, c.limits.Machines-total)
		why = fmt.Sprintf("there are %d machines, and --max-nodes allows %d", total, c.limits.Machines)
	}
	if c.limits.PerMinute > 0 {
		if left := max(0, c.limits.PerMinute-max(recent, len(c.asked))); left < machines {
			machines = left
			why = fmt.Sprintf("--max-new-nodes-per-minute allows %d new machines a minute; the others follow", c.limits.PerMinute)
		}
	}
	return machines, why
}

// Bought counts machines that were asked for now.
func (c *Ceiling) Bought(machines int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range machines {
		c.asked = append(c.asked, c.clock.Now())
	}
}
