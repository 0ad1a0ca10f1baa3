package disruption

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	podutil "sigs.k8s.io/karpenter/pkg/utils/pod"

	"github.com/nodeautoprovision/nap/internal/fleet"
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
	// stageWithin is how long a stage may take. Budgets may hold its pods for long,
	// and those of the next stage need not wait for them.
	stageWithin = 5 * time.Second
)

// drain evicts the pods of moves that go together, the large ones first. Nobody
// tells the scheduler where the plan has a pod's place; it prefers nodes with much
// room. Small pods that come first take the room that was meant for large ones,
// for which there is no other, while large ones that come first leave room enough
// for small ones in between. When all have gone, the moves' claims are deleted and
// Karpenter's termination drains what is left.
//
// It is kept in memory alone: after a restart the moves are looked at again and
// the pods that are still there drained.
type drain struct {
	stages [][]podState
	// out are the pods of the stage under way, began when it was begun, still since
	// when all of them are gone and no pod waits for a node.
	out          []podState
	began, still time.Time
}

// podState is one life of a pod.
type podState struct {
	model.PodRef
	uid, node string
}

// drop leaves nodes alone.
func (d *drain) drop(nodes []Removed) {
	of := func(p podState) bool {
		return slices.ContainsFunc(nodes, func(r Removed) bool { return r.Node == p.node })
	}
	for i := range d.stages {
		d.stages[i] = slices.DeleteFunc(d.stages[i], of)
	}
}

// newDrain begins to drain the nodes of moves.
func newDrain(s *fleet.Snapshot, moves []*move, now time.Time) {
	d := &drain{}
	leaving := map[string]bool{}
	for _, m := range moves {
		m.drain = d
		for _, r := range m.Remove {
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

// drains are the drains under way.
func (l *Loop) drains() []*drain {
	var out []*drain
	for _, m := range l.moves {
		if m.drain != nil && !slices.Contains(out, m.drain) {
			out = append(out, m.drain)
		}
	}
	return out
}

// carry carries a drain on. When its stages are over it deletes the claims of its
// moves, and returns the moves for which that is done.
func (l *Loop) carry(ctx context.Context, d *drain) []*move {
	over, err := l.drained(ctx, d)
	if err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "evicting the pods of moves failed, trying again")
	}
	if !over {
		return nil
	}
	var done []*move
	for _, m := range l.moves {
		if m.drain != d {
			continue
		}
		if err := l.each(ctx, m.Remove, func(ctx context.Context, r Removed) error { return l.delete(ctx, m, r) }); err != nil {
			if ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "deleting the nodeclaims of a move failed, trying again", "move", m.ID)
			}
			continue
		}
		done = append(done, m)
	}
	return done
}

// drained carries the stages of a drain on and reports whether all its stages are over.
func (l *Loop) drained(ctx context.Context, d *drain) (bool, error) {
	now := l.Clock.Now()
	if d.out != nil {
		switch {
		case now.Sub(d.began) >= stageWithin:
		case !away(l.Mirror.Snapshot(), d):
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
	if !d.began.IsZero() && !l.hold(ctx, d) {
		return false, nil
	}
	if len(d.stages) <= 1 { // the last are evicted by the termination
		d.stages = nil
		return true, nil
	}
	pods, err := l.evictable(ctx, d.stages[0])
	if err != nil {
		return false, err
	}
	l.Evictor.Add(pods...)
	d.out, d.stages, d.began, d.still = d.stages[0], d.stages[1:], now, time.Time{}
	return false, nil
}

// hold asks whether the pods that are left still have places, now that others have
// taken theirs. The scheduler may have put them where nobody thought; then the
// nodes stay for whose pods there are no places left, and no pod waits for a machine
// to be bought. It reports whether the drain may go on.
func (l *Loop) hold(ctx context.Context, d *drain) bool {
	moves := slices.DeleteFunc(slices.Clone(l.moves), func(m *move) bool { return m.drain != d })
	standing := l.recheck(ctx, moves)
	waits := false
	for _, m := range moves {
		d.drop(m.let)
		if m.failed != "" {
			d.drop(m.Remove)
			m.drain = nil
		} else if !slices.Contains(standing, m) {
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

// evictable reads the pods of a stage and leaves out those that Karpenter's
// termination does not evict, or not first.
func (l *Loop) evictable(ctx context.Context, stage []podState) ([]*corev1.Pod, error) {
	var out []*corev1.Pod
	for _, want := range stage {
		pod := &corev1.Pod{}
		err := l.Clients.Cached.Get(ctx, client.ObjectKey{Namespace: want.Namespace, Name: want.Name}, pod)
		switch {
		case apierrors.IsNotFound(err), err == nil && string(pod.UID) != want.uid:
		case err != nil:
			return nil, fmt.Errorf("reading pod %s: %w", want.PodRef, err)
		case podutil.IsEvictable(pod, l.Clock, l.Recorder) && !critical(pod):
			out = append(out, pod)
		}
	}
	return out, nil
}

// critical pods are evicted when all others have gone.
func critical(pod *corev1.Pod) bool {
	return pod.Spec.PriorityClassName == "system-cluster-critical" || pod.Spec.PriorityClassName == "system-node-critical"
}
