package provisioning

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/controller/purchasebackoff"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Mirror is the fleet as the loop uses it.
type Mirror interface {
	Snapshot() *fleet.Snapshot
	// Expect counts a claim that was just created as capacity until it is
	// observed; Forget takes that back.
	Expect(*karpv1.NodeClaim)
	Forget(claim string)
	// Wants is how many pods the workload with this UID wants now, Announces whether
	// what workloads of a namespace have still to create is planned ahead.
	Wants(uid string) int
	Announces(namespace string) bool
	// Announcing are the workloads, by UID, whose further pods are planned ahead at a time.
	Announcing(now time.Time) map[string]bool
	// PlaceBuffers says where the plan of a snapshot has room for virtual pods.
	PlaceBuffers(places map[model.PodRef]string, planned *fleet.Snapshot)
}

// Cluster is Karpenter's mirror of the cluster, which its disruption decides on.
// The loop tells it what it does, so that a node that is about to get a pod is
// not taken away. *state.Cluster implements it, but for Leaving.
type Cluster interface {
	AckPods(pods ...*corev1.Pod)
	MarkPodSchedulingDecisions(ctx context.Context, failed map[*corev1.Pod]error, byPool, byClaim map[string][]*corev1.Pod)
	UpdatePodToNodeClaimMapping(byClaim map[string][]*corev1.Pod)
	UpdateNodeClaim(claim *karpv1.NodeClaim)
	DeleteNodeClaim(name string)
	NominateNodeForPod(ctx context.Context, providerID string)
	// Leaving are the names of the nodes that Karpenter gives up. A node that
	// carries the disrupted taint and is not among them is one whose replacements
	// are still being created by the disruption that put the taint there.
	Leaving() map[string]bool
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
	Batch BatchDurations
	// Budget is the time for improving a plan.
	Budget time.Duration
	// IgnorePreferences plans without preferred affinity and the like,
	// RelaxMinValues with as many instance types as there are where a NodePool asks
	// for more.
	IgnorePreferences, RelaxMinValues bool
	// Share is as in model.Policy.
	Share model.NodeShare
	// Nominations is how many requests a second may tell the scheduler where the plan put a
	// pod; 0 for none.
	Nominations int
	// Limits bound what is bought at all.
	Limits purchasebackoff.Limits
}

// Config is what a Loop is made of.
type Config struct {
	Clients  Clients
	Mirror   Mirror
	Catalogs fleet.Catalogs
	// NotBuying is why no machine that is bought now would be launched, in a sentence for
	// users, and empty while one would; nil means that it always would. While it would not,
	// nothing is planned.
	NotBuying func() string
	// Batch collects what wakes the loop; nil means one of its own.
	Batch *Batch
	// Solve is the planner.
	Solve    func(*model.Problem) *model.Plan
	Cluster  Cluster
	Recorder events.Recorder
	Metrics  *metrics.Provisioning
	// Purchases know which earlier purchases came to nothing.
	Purchases *purchasebackoff.Purchases
	// Registrations know which machines did not become nodes.
	Registrations *purchasebackoff.Registrations
	// Buffered is told of each plan what it has for the virtual pods of CapacityBuffers;
	// nil where there are none. It must return at once.
	Buffered func([]BufferPlan)
	// Planned is told of the plan of each round; nil when it does not matter.
	Planned func(*model.Problem, *model.Plan)
	// Decided is told what each round decided; nil when it does not matter. It must
	// return at once.
	Decided  func(snapshot.Decision)
	Clock    clock.Clock
	Settings Settings
	// NewID returns a fresh random word of n characters, of which claims' names
	// and plans' ids are made.
	NewID func(n int) string
}
