package disruption

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// command is a disruption command under way. The embedded record is what the
// annotations say; everything else is lost in a restart and can be done without.
// At any moment one goroutine uses a command.
type command struct {
	Record
	// drafts are the replacements as they are to be created, by name. It is nil once
	// all are created, and after a restart.
	drafts map[string]*karpv1.NodeClaim
	// placements is where the plan has places for the pods: names of nodes or claims.
	// It is nil after a restart.
	placements map[model.PodRef]string
	// released are nodes that the command does not remove after all. They still carry
	// its marks; none of them is in Remove.
	released []Removed
	// drain evicts the pods of the command; nil before its replacements are ready.
	// Commands that are ready at the same time share one.
	drain *drain
	// tried is when this process first tried to mark the command's nodes, marked when all of
	// them were and all replacements created; both are zero before.
	tried, marked time.Time
	// waits is what was last logged about why the command waits.
	waits string
	// failure is why the command is being rolled back, nil while it is not.
	failure *failure
}

// failure is why a command is rolled back: in words, and as a label of the metrics.
type failure struct {
	message string
	cause   model.Reason
}

// fail begins to roll a command back. The first failure counts.
func (c *command) fail(cause model.Reason, format string, args ...any) {
	if c.failure == nil {
		c.failure = &failure{message: fmt.Sprintf(format, args...), cause: cause}
	}
}

// addReplacement adds a claim that is to be created.
func (c *command) addReplacement(claim *karpv1.NodeClaim, r Replacement) {
	c.Replace = append(c.Replace, r)
	c.drafts[claim.Name] = claim
}

// dropReplacement goes on without a replacement that will not come, which only a
// consolidation of several nodes for several others can. Without it the command has
// failed, for this cause.
func (c *command) dropReplacement(ctx context.Context, claim, why string, cause model.Reason, message string) bool {
	if c.Reason != model.DisruptUnderutilized || len(c.Replace) < 2 || len(c.Remove) < 2 {
		c.fail(cause, "%s", message)
		return false
	}
	c.Replace = slices.DeleteFunc(slices.Clone(c.Replace), func(r Replacement) bool { return r.Claim == claim })
	maps.DeleteFunc(c.placements, func(_ model.PodRef, place string) bool { return place == claim })
	log.FromContext(ctx).Info("a command goes on without one of its replacements", "command", c.ID, "NodeClaim", claim, "because", why)
	return true
}

// gone are the command's claims that are gone or being deleted.
func gone(r *Record, s *fleet.Snapshot) map[string]bool {
	out := map[string]bool{}
	for _, n := range r.Remove {
		if c := s.Claim(n.Claim); c == nil || c.Leaving {
			out[n.Claim] = true
		}
	}
	return out
}

// untainted is a node of the record that has lost its taint, as far as the mirror
// has seen, or "".
func untainted(r *Record, s *fleet.Snapshot) string {
	for _, n := range r.Remove {
		claim, node := s.Claim(n.Claim), s.Node(n.Node)
		if claim != nil && !claim.Leaving && node != nil && !node.Deleting && !node.Disrupted {
			return n.Node
		}
	}
	return ""
}

func names(nodes []Removed) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Node)
	}
	return out
}
