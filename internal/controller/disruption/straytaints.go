package disruption

import (
	"context"
	"time"

	"k8s.io/utils/clock"
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
		if now.Sub(since) >= strayFor {
			t.marker.clear(ctx, Removed{Claim: claim.Name, Node: node.Name})
		}
	}
	t.since, t.clean = seen, 0
	if len(seen) == 0 && len(underWay) == 0 {
		t.clean = revision
	}
}
