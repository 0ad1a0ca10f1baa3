package provisioning

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeautoprovision/nap/internal/model"
)

// place is the room that a plan found for a pod on a node which is ready. The scheduler
// gives that room to whichever pod it looks at first.
type place struct {
	pod  types.UID
	node string
	// since is when a plan first found it.
	since time.Time
	// missed places have been returned by TakeMissed.
	missed bool
}

// Place says which pods have room on nodes that are ready, by the names of the nodes. It
// replaces what was said before, except that a place is as old as it is, and that a pod
// which missed one gets the next only when its reminder would have come: no pod is planned
// again more than once in that time because of its places.
func (r *ExpectedPods) Place(nodes map[model.PodRef]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	placed := make(map[types.NamespacedName]place, len(nodes))
	for ref, node := range nodes {
		key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		pod := r.pods[key]
		if !pod.waiting {
			continue
		}
		at := r.placed[key]
		if at.pod != pod.uid || at.node != node && (!at.missed || now.Sub(at.since) >= retryAfter) {
			at = place{pod: pod.uid, node: node, since: now}
		}
		placed[key] = at
	}
	r.placed = placed
}

// TakeMissed reports, once for each place, whether any pod still waits although the
// scheduler has had settleAtLeast to bind it: another pod took its place.
func (r *ExpectedPods) TakeMissed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := false
	for key, at := range r.placed {
		pod := r.pods[key]
		switch {
		case !pod.waiting || pod.uid != at.pod:
			delete(r.placed, key)
		case !at.missed && r.clock.Since(at.since) >= settleAtLeast:
			at.missed, found = true, true
			r.placed[key] = at
		}
	}
	return found
}
