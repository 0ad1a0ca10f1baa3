package disruption

import (
	"time"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// The rhythm of the loop: how often it looks whether something has changed, the
// least time between two decisions, and the longest time without one.
const (
	look        = 250 * time.Millisecond
	decideEvery = time.Second
	decideAtAll = 10 * time.Second
	// decideShare bounds the part of the time that is spent deciding.
	decideShare = 10
	// settle is how long nothing must have changed before a decision, settleAtMost
	// how long that is waited for: what changes together is decided about together.
	settle, settleAtMost = time.Second, 5 * time.Second
	// waveAtMost is for how long consolidation waits for the moves of the decision
	// before.
	waveAtMost = 2 * time.Minute
	// Consolidation waits for nodes that will be quiet within quietSoon while they
	// are more than one in quietShare, but no longer than quietAtMost.
	quietSoon, quietAtMost = 10 * time.Second, 30 * time.Second
	quietShare             = 10
)

// rhythm is what the loop remembers of when things happened.
type rhythm struct {
	// revision is the last one that was seen, changed when, and restless since when
	// there are changes that no decision has looked at.
	revision          uint64
	changed, restless time.Time
	// unquiet is since when moves of consolidation wait for nodes to become quiet.
	unquiet time.Time
	// rest is until when consolidation rests, since the last moves saved too little.
	rest time.Time
}

// due reports whether there is reason and leisure for a decision.
func (l *Loop) due() bool {
	now, r := l.Clock.Now(), &l.rhythm
	if revision := l.Mirror.Revision(); revision != r.revision {
		r.revision, r.changed = revision, now
	}
	if r.revision == l.last.revision {
		r.restless = time.Time{}
	} else if r.restless.IsZero() {
		r.restless = now
	}
	since := now.Sub(l.last.at)
	if since < max(decideEvery, decideShare*l.last.took) || !l.observed() {
		return false
	}
	switch {
	case since >= decideAtAll, !l.last.due.IsZero() && !l.last.due.After(now):
		return true
	case r.restless.IsZero():
		return false
	}
	return now.Sub(r.changed) >= settle || now.Sub(r.restless) >= settleAtMost
}

// postpones reports whether moves of consolidation are better decided later. Those
// of one decision suit each other: their pods fit together. A decision that is
// made while such pods are on their way, or while much of the fleet has just
// changed, sees a fleet that will not last. It does not wait for what takes long.
func (l *Loop) postpones(moves *model.Commands, now time.Time) bool {
	r := &l.rhythm
	if r.rest.After(now) {
		return true
	}
	if now.Sub(l.wave.began) < waveAtMost && (len(l.moves) > 0 || draining(l.Mirror.Snapshot())) {
		return true
	}
	soon := 0
	for i := range moves.Kept {
		if st := &moves.Kept[i]; st.Reason == model.ReasonNotQuiet && st.Until.Sub(now) <= quietSoon {
			soon++
		}
	}
	nodes := len(moves.Kept)
	for i := range moves.Commands {
		nodes += len(moves.Commands[i].Nodes)
	}
	if soon*quietShare <= nodes {
		r.unquiet = time.Time{}
		return false
	}
	if r.unquiet.IsZero() {
		r.unquiet = now
	}
	return now.Sub(r.unquiet) < quietAtMost
}

// draining reports whether any node that leaves still has pods that need another.
func draining(s *fleet.Snapshot) bool {
	leaving := map[string]bool{}
	for c := range s.Claims() {
		if c.Leaving && c.NodeName != "" {
			leaving[c.NodeName] = true
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
