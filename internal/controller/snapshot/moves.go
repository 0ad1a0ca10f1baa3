package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/fleet"
)

// mostEnded is how many moves are told of that have ended.
const mostEnded = 5

// Moves remember which nodes are being removed, and what became of the last. They may be
// used from any goroutine. Those that have ended are lost in a restart.
type Moves struct {
	mu       sync.Mutex
	underWay []v1alpha1.Move
	ended    []v1alpha1.Move
}

// UnderWay says which moves there are now.
func (m *Moves) UnderWay(moves []v1alpha1.Move) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.underWay = moves
}

// Ended says that a move is over.
func (m *Moves) Ended(move *v1alpha1.Move) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = slices.Insert(m.ended, 0, *move)
	m.ended = m.ended[:min(mostEnded, len(m.ended))]
}

// fill adds the moves to a status.
func (m *Moves) fill(s *v1alpha1.SnapshotStatus) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Moves, s.LastMoves = slices.Clone(m.underWay), slices.Clone(m.ended)
}

// tellLeaving says of moves that are done which nodes of theirs are still there, and what these
// wait for: they are billed until they are gone.
func tellLeaving(s *v1alpha1.SnapshotStatus) {
	for i := range s.LastMoves {
		m := &s.LastMoves[i]
		if m.Stage != v1alpha1.MoveDone {
			continue
		}
		nodes := LeavingOf(s, m.ID)
		if len(nodes) == 0 {
			continue
		}
		m.Stage, m.Why = v1alpha1.MoveLeaving, waitsFor(&nodes[0])
		if more := len(nodes) - 1; more > 0 {
			m.Why += fmt.Sprintf("; and %d more of its nodes", more)
		}
	}
}

// LeavingOf are the nodes of a move that are still there, those that are blocked first.
func LeavingOf(s *v1alpha1.SnapshotStatus, move string) []v1alpha1.LeavingNode {
	var blocked, others []v1alpha1.LeavingNode
	for i := range s.Leaving {
		switch n := &s.Leaving[i]; {
		case n.Move != move:
		case n.BlockedBy != "":
			blocked = append(blocked, *n)
		default:
			others = append(others, *n)
		}
	}
	return append(blocked, others...)
}

// waitsFor is what a node waits for that leaves.
func waitsFor(n *v1alpha1.LeavingNode) string {
	return cmp.Or(n.Node, n.NodeClaim) + ": " + cmp.Or(n.BlockedBy, n.WaitsFor, fleet.NothingInTheWay)
}
