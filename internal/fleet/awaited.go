package fleet

import (
	"fmt"
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// InitializeWithin is how long a node may take from its creation until it is initialized before
// that is told as trouble: every node takes some seconds.
const InitializeWithin = time.Minute

// Awaited are the things that a node needs before it is initialized, as Karpenter sees it: a
// kubelet that is ready, no startup taints, all its resources. It is empty for a node that is
// initialized, and never for another one.
func Awaited(claim *Claim, node *Node) []string {
	if node.Initialized {
		return nil
	}
	var out []string
	if !node.Ready {
		out = append(out, "its kubelet is not Ready")
	}
	for _, t := range node.Taints {
		if slices.ContainsFunc(claim.StartupTaints, func(s model.Taint) bool { return s.Key == t.Key && s.Effect == t.Effect }) {
			out = append(out, fmt.Sprintf("it still has the startup taint %s, which something else has to remove", t))
		}
	}
	for _, name := range claim.Allocatable.Names() {
		if claim.Allocatable.Get(name) > 0 && node.Allocatable.Get(name) == 0 {
			out = append(out, fmt.Sprintf("it does not report the resource %s, which a device plugin has to register", name))
		}
	}
	if len(out) == 0 {
		out = append(out, "its NodeClaim's condition Initialized says why")
	}
	return out
}
