package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// emptied tells of a node that a command under way removes and whose deletion has not been asked
// for yet. Its pods count as pods that need another place, though they still run there.
func (t *toldNode) emptied(n *model.Node) bool {
	state := t.read.store.Snapshot()
	claim := state.Claim(n.Claim)
	if claim == nil || claim.Command == nil || n.State != model.NodeLeaving {
		return false
	}
	c := claim.Command
	t.story.Verdict = fmt.Sprintf("%s is given up (%s): its pods move now.", n.Name, c.Reason)
	if waits := replacementsToCome(state, c); len(waits) > 0 {
		t.story.Verdict = fmt.Sprintf("%s is given up (%s): its pods stay until %s.", n.Name, c.Reason, inWords(waits))
	}
	t.story.Fix = "Nothing: its pods get other places first."
	if !c.Begun.IsZero() {
		t.story.say("command %s began at %s", c.ID, c.Begun.UTC().Format(time.RFC3339))
	}
	for p := range state.Pods() {
		if p.Node == n.Name && p.Bound() && !p.Daemon && !p.Static {
			t.remaining = append(t.remaining, p.Ref)
		}
	}
	slices.SortFunc(t.remaining, func(x, y model.PodRef) int { return strings.Compare(x.String(), y.String()) })
	return true
}

// replacementsToCome says of each machine that a command waits for that it has to be ready.
func replacementsToCome(state *fleet.Snapshot, c *fleet.Command) []string {
	var out []string
	for _, name := range c.Replacements {
		if claim := state.Claim(name); claim != nil && claim.Initialized.IsZero() {
			out = append(out, "NodeClaim "+name+" is ready")
		}
	}
	return out
}
