package disruption

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpevents "sigs.k8s.io/karpenter/pkg/events"
	podutil "sigs.k8s.io/karpenter/pkg/utils/pod"

	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Evictor evicts pods in the background as soon as their budgets allow it. Adding
// a pod again changes nothing. Karpenter's eviction queue is one
// (terminator.Queue); it is the one that drains nodes, too.
type Evictor interface {
	Add(pods ...*corev1.Pod)
}

const (
	// stagesAtMost bounds the stages of a drain: the last one holds all pods that
	// are smaller than those before.
	stagesAtMost = 4
	// stageSettles is how long no pod must have waited for a node before the next
	// stage begins; successors of evicted pods need a moment to be created.
	stageSettles = 500 * time.Millisecond
	// stageWithin is how long a stage may take. Budgets that let some of its pods go may hold
	// the others for long, and those of the next stage need not wait for them.
	stageWithin = 5 * time.Second
)

// drain evicts the pods of commands that go together, the large ones first. The
// scheduler does not know where the plan has a pod's place; it prefers nodes with much
// room. Small pods that come first take the room that was meant for large ones,
// for which there is no other, while large ones that come first leave room enough
// for small ones in between. When all have gone, the commands' claims are deleted and
// Karpenter's termination drains what is left.
//
// It is kept in memory alone: after a restart the commands are looked at again and
// the pods that are still there are evicted.
type drain struct {
	// stages are those that have not begun; no stage is empty.
	stages [][]podState
	// out are the pods of the stage under way, nil between stages. began is when the
	// last stage was begun, zero before the first one. still is since when all of its
	// pods are gone and no pod waits for a node, zero while that is not so.
	out          []podState
	began, still time.Time
}

// podState is one life of a pod, with its UID and the name of its node.
type podState struct {
	model.PodRef
	uid, node string
}

// drop leaves the pods of nodes alone.
func (d *drain) drop(nodes []Removed) {
	of := func(p podState) bool {
		return slices.ContainsFunc(nodes, func(r Removed) bool { return r.Node == p.node })
	}
	for i := range d.stages {
		d.stages[i] = slices.DeleteFunc(d.stages[i], of)
	}
}

// newDrain begins to drain the nodes of commands.
func newDrain(s *fleet.Snapshot, commands []*command, now time.Time) {
	d := &drain{}
	leaving := map[string]bool{}
	for _, c := range commands {
		c.drain = d
		for _, r := range c.Remove {
			leaving[r.Node] = true
		}
	}
	var pods []*fleet.Pod
	for p := range s.Pods() {
		if leaving[p.Node] && p.Movable(now) && !p.Terminating {
			pods = append(pods, p)
		}
	}
	d.stages = stages(pods, roomOf(s))
}

// stages sorts pods by size: those larger than half of the largest one, those
// larger than a quarter of it, and so on. A pod's size is the largest share that
// it has of what all nodes have room for together.
func stages(pods []*fleet.Pod, room map[string]int64) [][]podState {
	slices.SortFunc(pods, func(a, b *fleet.Pod) int { return strings.Compare(a.Ref.String(), b.Ref.String()) })
	sizes, largest := make([]float64, len(pods)), 0.0
	for i, p := range pods {
		sizes[i] = size(&p.Spec.Requests, room)
		largest = max(largest, sizes[i])
	}
	all := make([][]podState, stagesAtMost)
	for i, p := range pods {
		stage := stagesAtMost - 1
		if sizes[i] > 0 {
			stage = min(stage, int(math.Log2(largest/sizes[i])))
		}
		all[stage] = append(all[stage], podState{p.Ref, p.UID, p.Node})
	}
	return slices.DeleteFunc(all, func(stage []podState) bool { return len(stage) == 0 })
}

// size is the largest share of the room that requests ask for.
func size(requests *fleet.Amounts, room map[string]int64) float64 {
	share := 0.0
	for _, name := range requests.Names() {
		if room[name] > 0 {
			share = max(share, float64(requests.Get(name))/float64(room[name]))
		}
	}
	return share
}

// roomOf is what all nodes have room for together.
func roomOf(s *fleet.Snapshot) map[string]int64 {
	room := map[string]int64{}
	for n := range s.Nodes() {
		for _, name := range n.Allocatable.Names() {
			room[name] += n.Allocatable.Get(name)
		}
	}
	return room
}

// drainer carries drains on. Its only state is in the drains and their commands.
type drainer struct {
	kube     client.Client
	mirror   Mirror
	evictor  Evictor
	recorder karpevents.Recorder
	metrics  *metrics.Disruption
	clock    clock.Clock

	marker    *marker
	commands  *commands
	rechecker *rechecker
}

// carry carries a drain on. When its stages are over it deletes the claims of its
// commands, and returns the commands for which that is done.
func (dr *drainer) carry(ctx context.Context, d *drain) []*command {
	over, err := dr.drained(ctx, d)
	if err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "evicting the pods of commands failed, trying again")
	}
	if !over {
		return nil
	}
	asked := dr.commands.draining(d)
	gone := make([]bool, len(asked))
	var group errgroup.Group
	group.SetLimit(commandsAtOnce)
	for i, c := range asked {
		group.Go(func() error {
			err := each(ctx, c.Remove, func(ctx context.Context, r Removed) error { return dr.delete(ctx, &c.Record, r) })
			if err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "deleting the nodeclaims of a command failed, trying again", "command", c.ID)
			}
			gone[i] = err == nil
			return nil
		})
	}
	_ = group.Wait() // errors are logged
	var done []*command
	for i, c := range asked {
		if gone[i] {
			done = append(done, c)
		}
	}
	return done
}

// drained carries the stages of a drain on and reports whether all its stages are over.
func (dr *drainer) drained(ctx context.Context, d *drain) (bool, error) {
	now := dr.clock.Now()
	if d.out != nil {
		switch {
		case now.Sub(d.began) >= stageWithin:
		case !away(dr.mirror.Snapshot(), d):
			d.still = time.Time{}
			return false, nil
		case d.still.IsZero():
			d.still = now
			return false, nil
		case now.Sub(d.still) < stageSettles:
			return false, nil
		}
		d.out = nil
	}
	if !d.began.IsZero() && !dr.recheck(ctx, d) {
		return false, nil
	}
	for len(d.stages) > 1 {
		stage, rest := d.stages[0], d.stages[1:]
		pods, out, err := dr.evictable(ctx, stage)
		if err != nil {
			return false, err
		}
		d.stages = rest
		if len(out) > 0 {
			dr.evictor.Add(pods...)
			d.out, d.began, d.still = out, now, time.Time{}
			return false, nil
		}
	}
	d.stages = nil // the last are evicted by the termination
	return true, nil
}

// recheck asks whether the pods that are left still have places, now that others have
// taken theirs. The scheduler may have put them elsewhere than planned; then the
// nodes are kept for whose pods there are no places left, and no pod waits for a node
// to be bought. It reports whether the drain may go on.
func (dr *drainer) recheck(ctx context.Context, d *drain) bool {
	asked := dr.commands.draining(d)
	standing := dr.rechecker.recheck(ctx, asked)
	waits := false
	for _, c := range asked {
		d.drop(c.released)
		if c.failure != nil {
			d.drop(c.Remove)
			c.drain = nil
		} else if !slices.Contains(standing, c) {
			waits = true
		}
	}
	return !waits
}

// away reports whether the pods of the stage under way have left their nodes, or
// are on their way out, and every pod that came for them has found a node.
func away(s *fleet.Snapshot, d *drain) bool {
	for _, was := range d.out {
		if p := s.Pod(was.PodRef); p != nil && p.UID == was.uid && !p.Terminating && !p.Terminal {
			return false
		}
	}
	for p := range s.Pods() {
		if p.Node == "" && !p.Terminal && !p.Terminating && !p.Created.Before(d.began.Truncate(time.Second)) {
			return false
		}
	}
	return true
}

// evictable reads the pods of a stage and leaves out those that Karpenter's termination does not
// evict, or not first, and those whose PodDisruptionBudgets allow no eviction at this moment: they
// would hold the nodes of all commands of the drain, and a termination that ends by force would
// begin later. The stage is awaited without them.
func (dr *drainer) evictable(ctx context.Context, stage []podState) (pods []*corev1.Pod, awaited []podState, err error) {
	snapshot := dr.mirror.Snapshot()
	held := fleet.HeldByBudgets(snapshot, dr.clock.Now())
	for _, want := range stage {
		pod := &corev1.Pod{}
		err := dr.kube.Get(ctx, client.ObjectKey{Namespace: want.Namespace, Name: want.Name}, pod)
		switch {
		case apierrors.IsNotFound(err), err == nil && (string(pod.UID) != want.uid || podutil.IsTerminating(pod)):
			awaited = append(awaited, want) // what came for it may wait for a node
		case err != nil:
			return nil, nil, fmt.Errorf("reading pod %s: %w", want.PodRef, err)
		case podutil.IsEvictable(pod, dr.clock, dr.recorder) && !critical(pod) && !held(snapshot.Pod(want.PodRef)):
			pods, awaited = append(pods, pod), append(awaited, want)
		}
	}
	return pods, awaited, nil
}

// critical pods are evicted when all others have gone.
func critical(pod *corev1.Pod) bool {
	return pod.Spec.PriorityClassName == "system-cluster-critical" || pod.Spec.PriorityClassName == "system-node-critical"
}

// delete deletes the claim of one node; Karpenter's termination drains it.
func (dr *drainer) delete(ctx context.Context, c *Record, r Removed) error {
	claim, err := dr.marker.claim(ctx, r.Claim)
	if claim == nil || err != nil {
		return err
	}
	if err := dr.boundDrain(ctx, c, claim); err != nil {
		return err
	}
	uid := claim.UID
	if err := dr.kube.Delete(ctx, claim, client.Preconditions{UID: &uid}); err != nil {
		return ignoreGone(err, "deleting NodeClaim "+r.Claim)
	}
	node := &corev1.Node{}
	if err := dr.kube.Get(ctx, client.ObjectKey{Name: r.Node}, node); err == nil {
		dr.recorder.Publish(event.Terminating(node, claim, c.Reason)...)
	}
	pool := &karpv1.NodePool{} // one that is gone by now has no policy
	if err := dr.kube.Get(ctx, client.ObjectKey{Name: r.Pool}, pool); client.IgnoreNotFound(err) != nil {
		log.FromContext(ctx).V(1).Info("reading the consolidation policy for metrics", "NodePool", r.Pool, "error", err.Error())
	}
	dr.metrics.Deleted(c.Reason, claim, pool.Spec.Disruption.ConsolidationPolicy, r.Pods)
	if repair := kube.RepairOf(claim); repair != nil && c.Reason == model.DisruptUnhealthy {
		dr.metrics.Repaired(claim, repair.Condition)
	}
	return nil
}

// boundDrain lets the drain of a claim that is repaired end by force when the time for
// its repair has passed.
func (dr *drainer) boundDrain(ctx context.Context, c *Record, claim *karpv1.NodeClaim) error {
	repair := kube.RepairOf(claim)
	if c.Reason != model.DisruptUnhealthy || repair == nil || repair.Drain == nil {
		return nil
	}
	stored := claim.DeepCopy()
	claim.Annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey] = dr.clock.Now().Add(*repair.Drain).Format(time.RFC3339)
	return ignoreGone(dr.kube.Patch(ctx, claim, client.MergeFrom(stored)), "bounding the drain of NodeClaim "+claim.Name)
}
