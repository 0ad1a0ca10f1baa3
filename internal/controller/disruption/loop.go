package disruption

import (
	"context"
	"slices"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/internal/controller/metrics"
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
	Terms model.ConsolidationTerms
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
	Plan func(*model.DisruptionProblem) *model.Commands
	// Window reports whether consolidation may happen at a moment, and until when
	// that holds, zero for ever. Nil means that it always may.
	Window   func(context.Context, time.Time) (open bool, until time.Time, err error)
	Cluster  Cluster
	Evictor  Evictor
	Recorder events.Recorder
	Metrics  *metrics.Disruption
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
	// took, and when the next one is due though nothing changes.
	last struct {
		at, due  time.Time
		took     time.Duration
		revision uint64
	}
	rhythm rhythm
	// wave are the moves of consolidation that were begun last.
	wave wave
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
	// let are nodes that the move does not give back after all, until they are
	// ordinary again.
	let []Removed
	// drain evicts its pods, nil before its moment has come.
	drain *drain
	// since is when this process took the move up, marked when all its nodes were
	// marked and all replacements created.
	since, marked time.Time
	// waits is what was said last about why the move waits.
	waits string
	// failed is why the move is being taken back, empty while it is not.
	failed string
	// cause labels the failure in the metrics.
	cause model.Reason
}

// NewLoop returns a loop.
func NewLoop(cfg Config) *Loop {
	return &Loop{Config: cfg, rests: map[string]rest{}, told: map[string]toldStay{}, stray: map[string]time.Time{}}
}

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
	return !slices.ContainsFunc(l.moves, func(m *move) bool { return m.failed == "" && l.untainted(m) != "" })
}
