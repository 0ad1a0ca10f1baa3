package azure

import (
	"context"
	"sync"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// driftFor is how long what AKS says of its machines is believed: every claim is
// asked about often, and one list answers for all of them.
const driftFor = 30 * time.Second

// driftMemo is what AKS said last of its machines.
type driftMemo struct {
	mu      sync.Mutex
	drifted map[string]bool // by claim
	asked   time.Time
}

// IsAKSMachine reports whether a node's provider id is that of a machine that AKS
// made, instead of a plain virtual machine.
func (p *Provider) IsAKSMachine(providerID string) bool {
	if !p.config.HasAKSMachines() {
		return false
	}
	_, ok := launch.MachineOfVM(p.config.MachinesPool, providerID)
	return ok
}

// ClusterDrifted reports whether the machine of a claim was made for another
// configuration of the cluster, so that it takes a new machine to have the present
// one. AKS alone knows, and says it of AKS machines alone.
func (p *Provider) ClusterDrifted(ctx context.Context, claim string) (bool, error) {
	if !p.config.HasAKSMachines() {
		return false, nil
	}
	m := &p.drift
	m.mu.Lock()
	defer m.mu.Unlock() // one asks, the others wait for its answer
	if m.asked.IsZero() || p.now().Sub(m.asked) >= driftFor {
		machines, err := p.launcher.List(ctx)
		if err != nil {
			return false, err
		}
		m.drifted, m.asked = map[string]bool{}, p.now()
		for _, found := range machines {
			if found.Drifted {
				m.drifted[found.Claim] = true
			}
		}
	}
	return m.drifted[claim], nil
}
