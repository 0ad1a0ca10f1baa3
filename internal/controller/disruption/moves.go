package disruption

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
)

// The stages of a command, as the Snapshot tells them.
const (
	stageReplacing   = "Replacing"
	stageDraining    = "Draining"
	stageRollingBack = "RollingBack"
	stageDone        = v1alpha1.MoveDone
	stageRolledBack  = "RolledBack"
)

// moveOf is a command as the Snapshot tells of it.
func moveOf(c *command) v1alpha1.Move {
	out := v1alpha1.Move{
		ID: c.ID, Reason: string(c.Reason), Nodes: int32(len(c.Remove)), Replacements: int32(len(c.Replace)),
		Evictions: int32(c.Evictions), HourlySaving: fmt.Sprintf("%.3f", c.Saving), Stage: stageReplacing, Begun: metav1.NewTime(c.Begun),
	}
	for _, r := range c.Remove {
		if out.Node == "" {
			out.Node = r.Node
		}
		if !slices.Contains(out.NodePools, r.Pool) {
			out.NodePools = append(out.NodePools, r.Pool)
		}
	}
	switch {
	case c.failure != nil:
		out.Stage, out.Why = stageRollingBack, c.failure.message
	case c.drain != nil:
		out.Stage = stageDraining
	default: // its replacements come, or are there and it waits for something else
		out.Why = c.waits
	}
	return out
}

// teller tells of commands, for people.
type teller struct {
	// moves may be nil: then it tells of none.
	moves Moves
	clock clock.Clock
}

// underWay says which commands there are now.
func (t teller) underWay(active []*command) {
	if t.moves == nil {
		return
	}
	var moves []v1alpha1.Move
	for _, c := range active {
		moves = append(moves, moveOf(c))
	}
	t.moves.UnderWay(moves)
}

// ended says that a command is over.
func (t teller) ended(c *command) {
	if t.moves == nil {
		return
	}
	move := moveOf(c)
	ended := metav1.NewTime(t.clock.Now())
	move.Ended, move.Stage = &ended, stageDone
	if c.failure != nil {
		move.Stage = stageRolledBack
	}
	t.moves.Ended(&move)
}
