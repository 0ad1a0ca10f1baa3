package snapshot

import (
	"slices"
	"sync"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
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
