package disruption

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// strayFor is how long a taint without a command may stand before it is removed.
const strayFor = 10 * time.Second

// strayTaints removes the taint of a disruption from nodes that belong to no
// command: the process that put it there is gone.
type strayTaints struct {
	mirror Mirror
	marker *marker
	clock  clock.Clock
	// since is since when a node has such a taint, by its name.
	since map[string]time.Time
	// clean is the revision of the mirror in which no node had such a taint while no command
	// was under way; zero for none.
	clean uint64
}

// release removes the taints that have stood for long enough. underWay are the nodes
// of commands, by name.
func (t *strayTaints) release(ctx context.Context, underWay map[string]bool) {
	revision := t.mirror.Revision()
	if len(underWay) == 0 && revision == t.clean {
		return
	}
	s := t.mirror.Snapshot()
	now, seen := t.clock.Now(), map[string]time.Time{}
	for claim := range s.Claims() {
		node := s.Node(claim.NodeName)
		if claim.Leaving || node == nil || !node.Disrupted || node.Deleting || underWay[node.Name] {
			continue
		}
		since, known := t.since[node.Name]
		if !known {
			since = now
		}
		seen[node.Name] = since
		if now.Sub(since) >= strayFor && !t.free(ctx, Removed{Claim: claim.Name, Node: node.Name}) {
			seen[node.Name] = now // it is asked about again after a while
		}
	}
	t.since, t.clean = seen, 0
	if len(seen) == 0 && len(underWay) == 0 {
		t.clean = revision
	}
}

// free makes a node ordinary again, unless its claim is gone or being deleted. The API server is
// asked: the mirror may be behind, and this process may have begun after the deletion. It reports
// whether the claim is there to stay.
func (t *strayTaints) free(ctx context.Context, r Removed) bool {
	claim, err := readClaim(ctx, t.marker.live, r.Claim)
	if err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "reading the claim of a node with a stray taint failed, trying again", "Node", r.Node)
	}
	if claim == nil || err != nil {
		return false
	}
	t.marker.clear(ctx, r)
	return true
}
