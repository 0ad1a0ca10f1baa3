package disruption

import (
	"sync/atomic"
	"time"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// How often the loop looks whether something has changed, the least time between
// two decisions, and the longest time without one.
const (
	look        = 250 * time.Millisecond
	decideEvery = time.Second
	decideAtAll = 10 * time.Second
	// While nothing changes and decisions find nothing, each waits twice as long as the one
	// before, up to idleAtMost. Budgets whose schedules begin are then seen that late; that they
	// end is known beforehand.
	idleAtMost = 2 * time.Minute
	// After a decision that took long, the next one waits decideShare times as long, so
	// that deciding takes a bounded part of the time, but no longer than pauseAtMost: what
	// made it slow may be gone.
	decideShare = 10
	pauseAtMost = 30 * time.Second
	// settle is how long nothing must have changed before a decision, settleAtMost
	// how long that is waited for: what changes together is decided about together.
	settle, settleAtMost = time.Second, 5 * time.Second
	// Consolidation waits for nodes that will be quiet within quietSoon while they
	// are more than one in quietShare, but no longer than quietAtMost.
	quietSoon, quietAtMost = 10 * time.Second, 30 * time.Second
	quietShare             = 10
)

// pacing says when the next decision is made.
type pacing struct {
	// last is the last decision, zero before the first one.
	last decision
	// revision is the mirror's DisruptionRevision as it was seen last, changed when it changed.
	// unsettled is since when there are changes of it that no decision has looked at, zero while
	// there are none. Pods that wait, and machines on their way, are no reason to decide.
	revision           uint64
	changed, unsettled time.Time
	// idle counts the decisions in a row that found nothing to do, with the revision of the
	// one before.
	idle int
	// market says that prices or offerings have changed since the last look. It is set by other
	// goroutines.
	market atomic.Bool
	// unquiet is since when commands of consolidation wait for nodes to become
	// quiet, zero while they do not.
	unquiet time.Time
}

// decision is when and on which revision of the mirror a decision was made, how long
// it took, and when the next one is due though nothing changes, zero for never.
type decision struct {
	at, due  time.Time
	took     time.Duration
	revision uint64
	// found says that there was something to do.
	found bool
}

// decided remembers a decision.
func (p *pacing) decided(d decision) {
	if p.last.revision == d.revision && !p.last.at.IsZero() && !d.found && !p.last.found {
		p.idle++
	} else {
		p.idle = 0
	}
	p.last = d
}

// atAll is the longest time without a decision.
func (p *pacing) atAll() time.Duration {
	longest := decideAtAll
	for range p.idle {
		longest = min(2*longest, idleAtMost)
	}
	return longest
}

// marketChanged ends the long pauses of a fleet at rest. It may be called from any
// goroutine.
func (p *pacing) marketChanged() { p.market.Store(true) }

// failed remembers an attempt without result, so that the next one is not made at
// once.
func (p *pacing) failed(at time.Time) { p.last.at = at }

// due reports whether there is reason and time for a decision. revision is that of
// the mirror; observed reports whether the mirror has seen what was done so far.
func (p *pacing) due(now time.Time, revision uint64, observed func() bool) bool {
	if revision != p.revision {
		p.revision, p.changed = revision, now
	}
	if p.market.Swap(false) {
		p.idle = 0
	}
	if p.revision == p.last.revision {
		p.unsettled = time.Time{}
	} else if p.unsettled.IsZero() {
		p.unsettled = now
	}
	since := now.Sub(p.last.at)
	if since < max(decideEvery, min(decideShare*p.last.took, pauseAtMost)) || !observed() {
		return false
	}
	switch {
	case since >= decideAtAll && !p.unsettled.IsZero(), since >= p.atAll(), !p.last.due.IsZero() && !p.last.due.After(now):
		return true
	case p.unsettled.IsZero():
		return false
	}
	return now.Sub(p.changed) >= settle || now.Sub(p.unsettled) >= settleAtMost
}

// waitsForQuiet reports whether so many nodes will be quiet soon that consolidation
// had better wait for them. Pods that end are mostly gone long before their time.
func (p *pacing) waitsForQuiet(planned *model.Commands, now time.Time) bool {
	soon := 0
	for i := range planned.Kept {
		k := &planned.Kept[i]
		if k.Reason == model.ReasonPodsEnding || k.Reason == model.ReasonNotQuiet && k.Until.Sub(now) <= quietSoon {
			soon++
		}
	}
	nodes := len(planned.Kept)
	for i := range planned.Commands {
		nodes += len(planned.Commands[i].Nodes)
	}
	if soon*quietShare <= nodes {
		p.unquiet = time.Time{}
		return false
	}
	if p.unquiet.IsZero() {
		p.unquiet = now
	}
	return now.Sub(p.unquiet) < quietAtMost
}

// draining reports whether any node that leaves still has pods that need another. A node whose
// drain is blocked may stay for days: nothing waits for it.
func draining(s *fleet.Snapshot, now time.Time) bool {
	leaving := map[string]bool{}
	for c := range s.Claims() {
		if c.Leaving && c.NodeName != "" {
			leaving[c.NodeName] = true
		}
	}
	for _, n := range s.LeavingNodes(now) {
		if n.Blocks != "" {
			delete(leaving, n.Node)
		}
	}
	if len(leaving) == 0 {
		return false
	}
	for p := range s.Pods() {
		if leaving[p.Node] && !p.Daemon && !p.Static && !p.Terminal {
			return true
		}
	}
	return false
}
