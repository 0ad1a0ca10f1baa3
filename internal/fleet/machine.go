package fleet

import (
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Node is the record of a Kubernetes Node.
type Node struct {
	Name       string
	ProviderID string
	Labels     map[string]string
	Taints     []model.Taint
	Capacity   Amounts
	// Allocatable is what its pods may use.
	Allocatable Amounts
	// Registered and Initialized say how far the lifecycle of a bought node has
	// come (its labels).
	Registered  bool
	Initialized bool
	Ready       bool
	// Disrupted nodes carry the taint with which a voluntary disruption begins.
	Disrupted bool
	Deleting  bool
	Created   time.Time
}

// Claim is the record of a NodeClaim.
type Claim struct {
	Name         string
	Pool         string
	ProviderID   string
	NodeName     string
	Labels       map[string]string
	Requirements model.Requirements
	Taints       []model.Taint
	// StartupTaints vanish before the node is initialized.
	StartupTaints []model.Taint
	// Capacity and Allocatable are zero until the machine is launched.
	Capacity    Amounts
	Allocatable Amounts
	// Leaving claims are deleted or their machine is terminating.
	Leaving bool
	Created time.Time
}

// Pool is the record of a NodePool. A claim's requirements and a pool's already
// contain the labels that every node of the pool carries, as In.
type Pool struct {
	Name          string
	Weight        int
	Requirements  model.Requirements
	Labels        map[string]string
	Taints        []model.Taint
	StartupTaints []model.Taint
	// Limits are ceilings by resource name, sorted; NodeLimit is -1 without one.
	Limits    []Amount
	NodeLimit int
	// Static pools keep a fixed number of nodes and buy for no pod.
	Static   bool
	Deleting bool
	// Ready is false with NotReady saying why.
	Ready    bool
	NotReady string
	// Invalid names the first field that is wrong; empty for a sound pool.
	Invalid string
}

// DriverLimits is the record of a CSINode: how many disks of each driver the
// node can attach.
type DriverLimits struct {
	Node   string
	Limits map[string]int
}
