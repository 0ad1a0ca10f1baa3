package disrupt

import (
	"context"
	"slices"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Mirror is the fleet as the loop uses it.
type Mirror interface {
	Snapshot() *fleet.Snapshot
	Revision() uint64
	// Expect counts a claim that was just created as capacity until it is
	// observed; Forget takes that back.
	Expect(*karpv1.NodeClaim)
	Forget(claim string)
}

// Cluster is Karpenter's mirror of the cluster, which must know of claims that are
// created here, and of nodes of static pools that are about to go: they do not
// count as one too many. *state.Cluster implements it, but for PendingDisruption.
type Cluster interface {
	UpdateNodeClaim(claim *karpv1.NodeClaim)
	DeleteNodeClaim(name string)
	PendingDisruption(pool, claim string, pending bool)
}

// Clients reach the API server.
type Clients struct {
	// Cached reads from the informers and writes through.
	Cached client.Client
	// Live reads from the API server itself.
	Live client.Reader
}

// Settings are what users may set.
type Settings struct {
	// Terms are what a move must be worth.
	Terms model.MoveTerms
	// Budget is the time for the search of one decision.
	Budget                            time.Duration
	IgnorePreferences, RelaxMinValues bool
}

// Config is what a Loop is made of.
type Config struct {
	Clients  Clients
	Mirror   Mirror
	Catalogs fleet.Catalogs
	// Plan decides what to give back.
	Plan     func(*model.Fleet) *model.Moves
	Cluster  Cluster
	Recorder events.Recorder
	Metrics  *Metrics
	Clock    clock.Clock
	Settings Settings
	// NewID returns a fresh random word of n characters.
	NewID func(n int) string
}

// Loop gives machines back. It implements the manager's Runnable and runs on the
// leader alone; all its work is done by one goroutine, which nothing makes wait
// for longer than a request to the API server takes.
type Loop struct {
	Config
	moves []*move
	// settling are moves whose claims are deleted, until their nodes are gone.
	settling []*move
	// rests are the nodes whose last move failed.
	rests map[string]rest
	// told remembers what was said about nodes that stay.
	told map[string]toldStay
	// last is when and on which revision the last decision was made, how long it
	// took, and when the next one is due though nothing changes. The wave is when
	// moves were last begun.
	last struct {
		at, due  time.Time
		wave     time.Time
		took     time.Duration
		revision uint64
	}
	// stray are nodes that carry the taint of a disruption and belong to no move,
	// and since when.
	stray map[string]time.Time
}

// rest is how long a node is left alone.
type rest struct {
	failures int
	until    time.Time
}

// move is a move under way.
type move struct {
	Record
	// drafts are the replacements as they are to be created, by name, until they
	// are; after a restart there are none.
	drafts map[string]*karpv1.NodeClaim
	// homes is where the plan has places for the pods: names of nodes or claims.
	// After a restart nobody remembers.
	homes map[model.PodRef]string
	// began is set when all nodes are marked and all replacements created.
	began bool
	// acting is set once the first claim may have been deleted.
	acting bool
	// failed is why the move is being taken back, empty while it is not.
	failed string
	// cause labels the failure in the metrics.
	cause model.Reason
}

// NewLoop returns a loop.
func NewLoop(cfg Config) *Loop {
	return &Loop{Config: cfg, rests: map[string]rest{}, told: map[string]toldStay{}, stray: map[string]time.Time{}}
}

// The rhythm of the loop: how often it looks whether something has changed, the
// least time between two decisions, and the longest time without one.
const (
	look        = 250 * time.Millisecond
	decideEvery = time.Second
	decideAtAll = 10 * time.Second
	// decideShare bounds the part of the time that is spent deciding.
	decideShare = 10
	// waveAtMost is for how long a decision waits for the moves of the one before.
	waveAtMost = 2 * time.Minute
)

// Start works until ctx ends.
func (l *Loop) Start(ctx context.Context) error {
	for restored := false; ; {
		if !restored {
			err := l.restore(ctx)
			restored = err == nil
			if err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "reading the moves under way failed, trying again")
			}
		}
		if restored {
			l.pass(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-l.Clock.After(look):
		}
	}
}

// pass carries every move on and decides anew when it is time.
func (l *Loop) pass(ctx context.Context) {
	l.proceed(ctx)
	l.releaseStray(ctx)
	if !l.due() {
		return
	}
	if err := l.decide(ctx); err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "deciding what to give back failed, trying again")
	}
}

// due reports whether there is reason and leisure for a decision.
func (l *Loop) due() bool {
	now := l.Clock.Now()
	since := now.Sub(l.last.at)
	if since < max(decideEvery, decideShare*l.last.took) || !l.observed() {
		return false
	}
	// The moves of one decision suit each other. A decision that is made while
	// their pods are on their way sees a fleet that will not last, so it waits for
	// them, but not for those that take long.
	if now.Sub(l.last.wave) < waveAtMost && (len(l.moves) > 0 || draining(l.Mirror.Snapshot())) {
		return false
	}
	return l.last.revision != l.Mirror.Revision() || since >= decideAtAll || !l.last.due.IsZero() && !l.last.due.After(now)
}

// observed reports whether the mirror has seen what has been done so far: a fleet
// that still shows nodes as free that are about to go would have them given back
// twice.
func (l *Loop) observed() bool {
	s := l.Mirror.Snapshot()
	l.settling = slices.DeleteFunc(l.settling, func(m *move) bool {
		return !slices.ContainsFunc(m.Remove, func(r Removed) bool { return s.Claim(r.Claim) != nil })
	})
	for _, m := range l.settling {
		if slices.ContainsFunc(m.Remove, func(r Removed) bool {
			claim := s.Claim(r.Claim)
			return claim != nil && !claim.Leaving
		}) {
			return false
		}
	}
	for _, m := range l.moves {
		for _, r := range m.Remove {
			claim, node := s.Claim(r.Claim), s.Node(r.Node)
			if claim == nil || claim.Leaving || node == nil {
				continue
			}
			if m.failed == "" && !node.Disrupted {
				return false
			}
		}
	}
	return true
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
