// Package quota knows how many vCPUs the subscription may still buy: per VM
// family, in the whole region, and for spot.
//
// Azure's own figures lag behind purchases, so everything that nap has bought
// and Azure does not count yet is subtracted here: [Tracker.Take] when a machine is
// asked for, [Tracker.Reserve] when one is found that an earlier process asked for,
// [Tracker.Settle] when it exists, [Tracker.Release] when it was refused or is gone.
package quota

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"github.com/nodeautoprovision/nap/internal/model"
)

const (
	// refreshEvery is how often Azure is asked, and refreshSoon how often while it has refused
	// machines within shortFor, since the quota may be raised soon, or still counts a machine
	// that is gone.
	refreshEvery = 10 * time.Minute
	refreshSoon  = time.Minute
	shortFor     = time.Hour
	// staleAfter is when old figures are worse than none: without figures every
	// purchase is tried, and Azure's refusal decides.
	staleAfter = 15 * time.Minute
	// usageLag is how long a machine may exist before Azure's usages count it.
	usageLag = 2 * time.Minute
)

// Line is one limit of the subscription, in vCPUs.
type Line struct {
	Name        string // standardDSv5Family, cores, lowPriorityCores
	Limit, Used int64  // as Azure says
	InFlight    int64  // bought by nap and not in Used yet
}

// reservation is what a machine draws that Azure may not count yet.
type reservation struct {
	uses    []model.QuotaUse
	settled time.Time // when the machine was known to exist; zero before
}

// Tracker keeps the limits of one subscription and region. It is safe for
// concurrent use.
type Tracker struct {
	now func() time.Time

	mu           sync.Mutex
	lines        map[string]Line // by lower-case name
	fetched      time.Time
	asked        time.Time // when Azure was last asked for them, also in vain
	refused      time.Time // when Azure last refused a machine
	freed        time.Time // when a machine was last gone which the figures count; zero for never
	stale        bool
	reservations map[string]reservation
	inFlight     map[string]int64 // by lower-case name
	revision     uint64
	refreshes    uint64 // of them, those by Azure's figures
}

// NewTracker returns a tracker without limits: everything may be bought until
// the first Set.
func NewTracker(now func() time.Time) *Tracker {
	return &Tracker{now: now, reservations: map[string]reservation{}, inFlight: map[string]int64{}}
}

// Set replaces the figures with those that Azure gave to a request sent at
// asked, and forgets reservations that these figures contain.
func (t *Tracker) Set(lines []Line, asked time.Time) {
	byName := make(map[string]Line, len(lines))
	for _, l := range lines {
		byName[strings.ToLower(l.Name)] = l
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, r := range t.reservations {
		if !r.settled.IsZero() && asked.Sub(r.settled) >= usageLag {
			t.drop(name)
		}
	}
	if !maps.Equal(byName, t.lines) || t.stale {
		t.revision++
		t.refreshes++
	}
	t.lines, t.fetched, t.asked, t.stale = byName, asked, asked, false
}

// Reserve counts a machine that Azure may not count yet, by its name. Reserving a
// name again replaces what it had.
func (t *Tracker) Reserve(machine string, uses []model.QuotaUse) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(machine)
	t.reserve(machine, uses)
}

// Take reserves for a machine that is about to be asked for, unless it would not
// fit: of many that ask at once, no more get false answers from Azure than its own
// figures are behind.
func (t *Tracker) Take(machine string, uses []model.QuotaUse) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checkStale()
	t.drop(machine)
	for _, u := range uses {
		name := strings.ToLower(u.Quota)
		if l, limited := t.lines[name]; limited && !t.stale && l.Limit-l.Used-t.inFlight[name] < u.Amount {
			return false
		}
	}
	t.reserve(machine, uses)
	return true
}

// reserve counts a machine that has no reservation. The caller holds mu.
func (t *Tracker) reserve(machine string, uses []model.QuotaUse) {
	t.reservations[machine] = reservation{uses: uses}
	for _, u := range uses {
		t.inFlight[strings.ToLower(u.Quota)] += u.Amount
	}
	t.revision++
}

// Settle says that a reserved machine exists from now on.
func (t *Tracker) Settle(machine string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r, ok := t.reservations[machine]; ok && r.settled.IsZero() {
		r.settled = t.now()
		t.reservations[machine] = r
	}
}

// Release forgets a machine that was refused or is gone. Of one that Azure counts, its next
// figures say so.
func (t *Tracker) Release(machine string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r, reserved := t.reservations[machine]; !reserved || !r.settled.IsZero() {
		t.freed = t.now()
	}
	t.drop(machine)
}

// Refused says that Azure has refused a machine, whose reservation is released, since a
// quota has less left than the machine takes. Until Azure gives new figures no more than
// that counts as left. The refusal may say the limit and how much of it is used, machines on
// their way included; told is nil where it does not.
func (t *Tracker) Refused(use model.QuotaUse, told *Line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused = t.now()
	name := strings.ToLower(use.Quota)
	l, known := t.lines[name]
	if !known {
		return
	}
	before := l
	if told != nil {
		l.Limit, l.Used = told.Limit, max(0, told.Used-t.inFlight[name])
	}
	l.Used = max(l.Used, l.Limit-t.inFlight[name]-use.Amount+1)
	if l != before {
		t.lines[name] = l
		t.revision++
	}
}

// due reports whether Azure is to be asked again.
func (t *Tracker) due() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	age, short := now.Sub(t.asked), !t.refused.IsZero() && now.Sub(t.refused) < shortFor
	behind := !t.freed.IsZero() && t.fetched.Sub(t.freed) < usageLag && now.Sub(t.freed) < shortFor
	return age >= refreshEvery || (short || behind) && age >= refreshSoon
}

// drop forgets a reservation. The caller holds mu.
func (t *Tracker) drop(machine string) {
	r, ok := t.reservations[machine]
	if !ok {
		return
	}
	for _, u := range r.uses {
		t.inFlight[strings.ToLower(u.Quota)] -= u.Amount
	}
	delete(t.reservations, machine)
	t.revision++
}

// Left is what remains of a quota line; false when Azure sets no limit or its
// figures are unknown or stale.
func (t *Tracker) Left(name string) (int64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checkStale()
	l, ok := t.lines[strings.ToLower(name)]
	if !ok || t.stale {
		return 0, false
	}
	return l.Limit - l.Used - t.inFlight[strings.ToLower(name)], true
}

// Revision changes whenever an answer of Left may.
func (t *Tracker) Revision() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checkStale()
	return t.revision
}

// Refreshes changes whenever Azure's own figures have changed.
func (t *Tracker) Refreshes() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refreshes
}

// checkStale notices that the figures are too old. The caller holds mu.
func (t *Tracker) checkStale() {
	if !t.stale && t.lines != nil && t.now().Sub(t.fetched) > staleAfter {
		t.stale = true
		t.revision++
	}
}

// Lines lists the limits with what is in flight, by name.
func (t *Tracker) Lines() []Line {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checkStale()
	if t.stale {
		return nil
	}
	out := make([]Line, 0, len(t.lines))
	for key, l := range t.lines {
		l.InFlight = t.inFlight[key]
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b Line) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Quotas are the limits as the planner wants them.
func (t *Tracker) Quotas() []model.Quota {
	lines := t.Lines()
	out := make([]model.Quota, len(lines))
	for i, l := range lines {
		out[i] = model.Quota{Name: l.Name, Left: l.Limit - l.Used - l.InFlight}
	}
	return out
}

// Refresh asks Azure for the figures of a region.
func (t *Tracker) Refresh(ctx context.Context, client *armcompute.UsageClient, region string) error {
	asked := t.now()
	t.mu.Lock()
	t.asked = asked
	t.mu.Unlock()
	var lines []Line
	for pager := client.NewListPager(region, nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("list the compute usages of region %s: %w", region, err)
		}
		for _, u := range page.Value {
			if u != nil && u.Name != nil && u.Name.Value != nil && u.Limit != nil && u.CurrentValue != nil {
				lines = append(lines, Line{Name: *u.Name.Value, Limit: *u.Limit, Used: int64(*u.CurrentValue)})
			}
		}
	}
	t.Set(lines, asked)
	return nil
}

// Run refreshes the figures until the context ends. A failed refresh keeps the
// old ones, and is tried again at the next turn.
func (t *Tracker) Run(ctx context.Context, client *armcompute.UsageClient, region string, log *slog.Logger) {
	ticker := time.NewTicker(refreshSoon / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if !t.due() {
				continue
			}
			if err := t.Refresh(ctx, client, region); err != nil && ctx.Err() == nil {
				log.Warn("quota refresh failed", "error", err)
			}
		}
	}
}
