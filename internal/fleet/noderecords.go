package fleet

import (
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Node is the record of a Kubernetes Node.
type Node struct {
	Name       string
	ProviderID string
	// Claim is the NodeClaim that owns the node: Karpenter writes it down when the node is
	// registered. It is empty before and for a node that nap did not buy.
	Claim    string
	Labels   map[string]string
	Taints   []model.Taint
	Capacity Amounts
	// Allocatable is what its pods may use.
	Allocatable Amounts
	// Registered and Initialized say how far the lifecycle of a bought node has
	// come (its labels).
	Registered  bool
	Initialized bool
	Ready       bool
	// Unready says that the node itself reports that it is not ready. Nodes in files often
	// report neither.
	Unready bool
	// Disrupted nodes carry the taint with which a voluntary disruption begins.
	Disrupted bool
	Deleting  bool
	// Evicted is set while Azure takes its spot machine back.
	Evicted bool
	// DoNotDisrupt is the annotation against every voluntary disruption.
	DoNotDisrupt bool
	// Features are those that its kubelet declares (status.declaredFeatures).
	Features []string
	Created  time.Time
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
	// Capacity and Allocatable are zero until the instance is launched.
	Capacity    Amounts
	Allocatable Amounts
	// Leaving claims are deleted or their instance is terminating; Terminating ones
	// are past the drain. Detaching ones are drained, and their volumes are not detached since
	// then.
	Leaving        bool
	Terminating    bool
	Detaching      bool
	DetachingSince time.Time
	// LeavingSince is when the deletion was asked for, zero where it was not.
	LeavingSince time.Time
	Created      time.Time
	// Initialized is since when the node can run pods, LastPodEvent when a pod last
	// came or went; both zero until then.
	Initialized, LastPodEvent time.Time
	// ExpectedSaving is what the command for which it was bought was to save with it
	// per hour, for pods that ask for Requests together. Requests are zero where
	// the claim does not say.
	ExpectedSaving model.Money
	Requests       Amounts
	// Launched is since when its machine is billed, zero until there is one; Planned is what
	// it was to cost per hour, zero where no plan says.
	Launched time.Time
	Planned  model.Money
	// Paid is what it cost per hour when it was bought, zero where the claim does not say.
	Paid model.Money
	// DiskPrice is the part of Paid that the disk costs which the machine was made with, nil
	// where the claim does not say.
	DiskPrice *model.Money
	// Replaces is the id of the command for which it was bought, Command the one that
	// removes it; empty and nil for most.
	Replaces string
	Command  *Command
	// Repair is what its node is due to be replaced for, nil while it is not.
	Repair *Repair
	// Rebooting is set from the decision to restart its machine in place until that is back.
	Rebooting bool
	// BootFailed is set while its machine says that it cannot become a node.
	BootFailed bool
	// Trouble is why it has no machine yet, in the words of the cloud; empty while nothing is
	// known to be wrong. GivenUp is when it is given up unless its machine is there, or its
	// node; zero for one that has a node.
	Trouble string
	GivenUp time.Time
	// Plan is the id of the plan that bought it for pods, and BoughtFor are the
	// workloads of these pods as purchasebackoff names them; empty for a replacement.
	Plan      string
	BoughtFor []string
	// Drift is why the instance is not what would be bought now, empty when it is;
	// DriftSince is since when.
	Drift      string
	DriftSince time.Time
	// ExpireAfter is the age at which it is given up, zero for never. GracePeriod
	// says that the drain then ends in force.
	ExpireAfter time.Duration
	GracePeriod bool
}

// Command is a disruption command as the NodeClaims say that it removes.
type Command struct {
	ID     string
	Reason string
	Begun  time.Time
	// Saving is what it is to save per hour, Evictions how many pods have to move, and
	// Replacements are the names of the NodeClaims that are bought first.
	Saving       model.Money
	Evictions    int
	Replacements []string
}

// Repair is why and how an unhealthy node is replaced.
type Repair struct {
	// Condition is the type of the node's condition, such as Ready.
	Condition string
	// Since is since when the node is due.
	Since time.Time
	// Drain is for how long its pods are waited for at most, nil for as long as the
	// NodeClaim allows.
	Drain *time.Duration
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
	// CostLimit is the most that the nodes may cost per hour together, nil without a limit.
	CostLimit *model.Money
	// NodeCost is what every node costs per hour beside its machine and its disk.
	NodeCost model.Money
	// Static pools keep a fixed number of nodes, Replicas, and buy for no pod.
	Static   bool
	Replicas int
	// Disruption is what may be done to its nodes.
	Disruption Disruption
	Deleting   bool
	// Ready is false with NotReady saying why.
	Ready    bool
	NotReady string
	// Invalid names the first field that is wrong; empty for a sound pool.
	Invalid string
}

// Disruption are a NodePool's settings for giving nodes back.
type Disruption struct {
	Policy model.ConsolidationPolicy
	// Never is consolidateAfter: Never, otherwise After is the quiet time wanted.
	Never bool
	After time.Duration
	// Allowed is how many of so many nodes the budgets let be disrupted at a
	// moment for a reason, those included that are being disrupted already. Nil
	// means that there are no budgets.
	Allowed func(now time.Time, nodes int, reason model.DisruptionReason) int
	// Ends is when the schedule of a budget which is in force at a moment for a reason ends
	// next, zero where none does. Nil means that no budget has a schedule.
	Ends func(now time.Time, reason model.DisruptionReason) time.Time
	// Unreadable are the budgets that cannot be read, each with its place, its schedule and
	// what is wrong: Allowed then lets no node go.
	Unreadable []string
	// Frozen says that its nodes must not be removed voluntarily; nil while they may.
	Frozen *Freeze
}

// Freeze is a user's wish that nodes of a NodePool are not removed voluntarily.
type Freeze struct {
	// Reason is in the user's words and may be empty.
	Reason string
	// Until is when it ends, zero for never.
	Until time.Time
}

// Holds reports whether nodes must stay at a moment; of nil nothing must.
func (f *Freeze) Holds(now time.Time) bool {
	return f != nil && (f.Until.IsZero() || now.Before(f.Until))
}

// String is such as "until 2026-11-22T18:00:00Z: release day".
func (f *Freeze) String() string {
	text := "until nap thaw"
	if !f.Until.IsZero() {
		text = "until " + f.Until.UTC().Format(time.RFC3339)
	}
	if f.Reason != "" {
		text += ": " + f.Reason
	}
	return text
}

// DriverLimits is the record of a CSINode: how many disks of each driver the
// node can attach.
type DriverLimits struct {
	Node   string
	Limits map[string]int
	// Unlimited are the drivers that are on the node and state no limit.
	Unlimited []string
}
