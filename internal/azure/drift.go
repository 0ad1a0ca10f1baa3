package azure

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// driftFor is how long what AKS says of its machines is believed: each NodeClaim is asked about
// every few minutes, and one list answers for all of them.
const driftFor = 2 * time.Minute

// driftReader asks AKS which of its machines are out of date and remembers the answer
// for a while.
type driftReader struct {
	config *config.Config
	list   *machineList

	mu      sync.Mutex
	drifted map[string]bool // by claim, as AKS said last
	asked   time.Time       // when that was; zero before the first time
}

// SSHKeyHash tells the key with which people log in to machines made now, and their user's
// name, from others.
func SSHKeyHash(c *config.Config) string {
	const length = 8 // bytes; there are a handful of keys
	sum := sha256.Sum256([]byte(c.AdminUsername + "\n" + strings.TrimSpace(c.SSHPublicKey)))
	return hex.EncodeToString(sum[:length])
}

// AKSMachineID is the resource id of the machine that AKS has made behind a node's provider id;
// false for plain virtual machines, and where no AKS machines are looked after.
func AKSMachineID(c *config.Config, providerID string) (string, bool) {
	if !c.HasAKSMachines() {
		return "", false
	}
	machine, ok := launch.MachineOfVM(c.MachinesPool, providerID)
	return c.PoolID() + "/machines/" + machine, ok
}

// ClusterDrifted reports whether the machine of a claim was made for another
// configuration of the cluster, so that it takes a new machine to have the present
// one. AKS alone knows, and says it of AKS machines alone.
func (p *Provider) ClusterDrifted(ctx context.Context, claim string) (bool, error) {
	return p.drift.of(ctx, claim)
}

// of implements Provider.ClusterDrifted.
func (m *driftReader) of(ctx context.Context, claim string) (bool, error) {
	if !m.config.HasAKSMachines() {
		return false, nil
	}
	all, err := m.list.within(ctx, driftFor)
	if err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if all.asked.After(m.asked) {
		m.drifted, m.asked = map[string]bool{}, all.asked
		for _, found := range all.machines {
			if found.Drifted {
				m.drifted[found.Claim] = true
			}
		}
	}
	return m.drifted[claim], nil
}
