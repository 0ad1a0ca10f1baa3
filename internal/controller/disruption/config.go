package disruption

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Mirror is the fleet as the loop uses it.
type Mirror interface {
	Snapshot() *fleet.Snapshot
	// Revision changes whenever Snapshot would return something else.
	Revision() uint64
	// DisruptionRevision changes whenever something changes after which fewer or cheaper nodes might do.
	DisruptionRevision() uint64
	// Expect counts a claim that was just created as capacity until it is
	// observed; Forget takes that back.
	Expect(*karpv1.NodeClaim)
	Forget(claim string)
}

// Cluster is Karpenter's mirror of the cluster, which must know of claims that are
// created here, and of nodes of static pools that are about to go: they do not
// count as one too many. *state.Cluster implements it, but for the last three methods.
type Cluster interface {
	UpdateNodeClaim(claim *karpv1.NodeClaim)
	DeleteNodeClaim(name string)
	// KnowsDisruption reports whether the mirror has a claim with the condition that names
	// the reason why it goes, or has no machine of such a claim. What is observed of a
	// claim makes it count as one that stays, so the last thing that is written on it
	// must have been observed before PendingDisruption is said.
	KnowsDisruption(claim string) bool
	// PendingDisruption says, before its replacement is created, that a claim of a
	// static pool is about to go, or with false that it stays after all.
	PendingDisruption(pool, claim string, pending bool)
	// Replaced says that the replacement of such a claim has been created.
	Replaced(claim string)
}

// Moves are told of what is under way, for people. They may be asked from any goroutine.
type Moves interface {
	UnderWay(moves []v1alpha1.Move)
	Ended(move *v1alpha1.Move)
}

// Clients reach the API server.
type Clients struct {
	// Cached reads from the informers and writes through.
	Cached client.Client
	// Live reads from the API server itself.
	Live client.Reader
}

// Settings are the options of users.
type Settings struct {
	// Terms are what a command must be worth.
	Terms model.ConsolidationTerms
	// Budget is the time for the search of one decision.
	Budget time.Duration
	// IgnorePreferences and RelaxMinValues are as in model.Policy.
	IgnorePreferences, RelaxMinValues bool
	// Share is as in model.Policy.
	Share model.NodeShare
	// Repairs says that unhealthy nodes are replaced: the feature gate NodeRepair.
	Repairs bool
	// TerminateFirst is as in fleet.DisruptionOptions.
	TerminateFirst []model.DisruptionReason
}

// Config is what a Loop is made of.
type Config struct {
	Clients  Clients
	Mirror   Mirror
	Catalogs fleet.Catalogs
	// MayBuy reports whether a replacement that is bought now would be launched; nil
	// means that it always would. While it would not, nothing new is decided.
	MayBuy func() bool
	// Plan decides which nodes to remove or replace.
	Plan func(*model.DisruptionProblem) *model.Commands
	// Window reports whether consolidation may happen at a moment, and until when
	// that holds, zero for ever. Nil means that it always may.
	Window func(context.Context, time.Time) (open bool, until time.Time, err error)
	// Paused says of NodePools, by name, why they must not buy for now; those that
	// may are not in it.
	Paused   func(map[string]*karpv1.NodePool) map[string]string
	Cluster  Cluster
	Evictor  Evictor
	Recorder events.Recorder
	Metrics  *metrics.Disruption
	// Moves are told of the commands; nil tells none.
	Moves    Moves
	Clock    clock.Clock
	Settings Settings
	// NewID returns a fresh random word of n characters.
	NewID func(n int) string
}
