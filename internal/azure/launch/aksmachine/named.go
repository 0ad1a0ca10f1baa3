package aksmachine

import (
	"sync"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// otherNames are those of machines that are not named as nap names machines of their claims now: an
// earlier nap shortened long names in another way. They are found when machines are listed. It is
// safe for concurrent use.
type otherNames struct {
	mu    sync.Mutex
	other map[string]string // by claim
}

// of is the name of a claim's machine; see [launch.MachineName] for the error.
func (n *otherNames) of(claim string) (string, error) {
	n.mu.Lock()
	name, known := n.other[claim]
	n.mu.Unlock()
	if known {
		return name, nil
	}
	return launch.MachineName(claim)
}

// note takes the name of a claim's machine as AKS tells it.
func (n *otherNames) note(claim, name string) {
	want, err := launch.MachineName(claim)
	n.mu.Lock()
	defer n.mu.Unlock()
	if name == "" || err == nil && name == want {
		delete(n.other, claim)
		return
	}
	if n.other == nil {
		n.other = map[string]string{}
	}
	n.other[claim] = name
}

// forget drops the name of a machine that is gone; false where none was known.
func (n *otherNames) forget(claim string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, known := n.other[claim]
	delete(n.other, claim)
	return known
}
