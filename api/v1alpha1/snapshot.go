package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SnapshotName is the name of the one Snapshot of a cluster. Its shards are called
// after it: nap-0, nap-1 and so on.
const SnapshotName = "nap"

// Snapshot is what the controller knows and decides now. It is written when something has
// changed, at most every five seconds, and has at most 64 KiB; what does not fit is
// counted in status.omitted and whole in the shards.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=snapshots,singular=snapshot,scope=Cluster,categories={nap},shortName={napsnap}
// +kubebuilder:printcolumn:name="Azure",type="string",JSONPath=".status.health.azure"
// +kubebuilder:printcolumn:name="Pending",type="integer",JSONPath=".status.pendingPods"
// +kubebuilder:printcolumn:name="Refusals",type="integer",JSONPath=".status.refusedOfferings"
// +kubebuilder:printcolumn:name="Plan",type="string",JSONPath=".status.lastPlan.id",priority=1
// +kubebuilder:printcolumn:name="Written",type="date",JSONPath=".status.written"
type Snapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status SnapshotStatus `json:"status,omitempty"`
}

// SnapshotStatus is the content of a Snapshot.
type SnapshotStatus struct {
	// Form is the version of what the shards hold; a reader that does not know it must not
	// read them.
	Form int32 `json:"form"`
	// Written is when the controller wrote the snapshot.
	Written metav1.Time `json:"written"`
	// Engine is the one that decides: nap, or Karpenter's own.
	Engine string `json:"engine,omitempty"`
	// FeatureGates are the feature gates that are on, by name.
	FeatureGates []string `json:"featureGates,omitempty"`
	// Region is the Azure region in which machines are bought.
	Region string `json:"region,omitempty"`
	// Health says whether Azure answers and nap may buy.
	Health Health `json:"health"`
	// Prices say where prices come from.
	Prices PriceSource `json:"prices,omitempty"`
	// PendingPods is how many pods wait although the controller has decided on them.
	PendingPods int32 `json:"pendingPods"`
	// Pending are their workloads, the largest first.
	Pending []PendingWorkload `json:"pending,omitempty"`
	// RefusedOfferings is how many refusals of Azure are remembered.
	RefusedOfferings int32 `json:"refusedOfferings"`
	// Refusals are the refusals, those that end last first.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Quotas are the limits of the subscription of which something is used, the scarcest
	// first.
	Quotas []QuotaLine `json:"quotas,omitempty"`
	// NodePools are the NodePools, whether they buy, and their limits.
	NodePools []NodePoolState `json:"nodePools,omitempty"`
	// LastPlan is the last plan of the provisioning loop; nil before the first one.
	LastPlan *Plan `json:"lastPlan,omitempty"`
	// Machines are the NodeClaims that are not nodes yet, the oldest first.
	Machines []MachineUnderWay `json:"machines,omitempty"`
	// UsualBootSeconds is how long machines have usually taken lately from their order to
	// a node that is initialized: the median, zero where none is known.
	UsualBootSeconds int32 `json:"usualBootSeconds,omitempty"`
	// OtherNodes is how many nodes belong to no NodePool.
	OtherNodes int32 `json:"otherNodes,omitempty"`
	// Moves are the removals of nodes under way, the oldest first.
	Moves []Move `json:"moves,omitempty"`
	// LastMoves are the last ones that ended, the latest first, at most five.
	LastMoves []Move `json:"lastMoves,omitempty"`
	// Leaving are the nodes whose deletion has been asked for and which are still there, and
	// billed, those that have left for longest first.
	Leaving []LeavingNode `json:"leaving,omitempty"`
	// Shards is how many SnapshotShards hold all of it.
	Shards int32 `json:"shards"`
	// Digest is the SHA-256 of the shards' data put together.
	Digest string `json:"digest,omitempty"`
	// Omitted counts the entries that were left out of a list of this object, by its name.
	Omitted map[string]int32 `json:"omitted,omitempty"`
}

// Health says whether machines can be bought at all.
type Health struct {
	// Azure is "ok", or what of Azure is out.
	Azure string `json:"azure"`
	// Buying is why the cluster does not let nap buy; empty while it does.
	Buying string `json:"buying,omitempty"`
	// Prerequisites names the checks of nap doctor that are not met; empty while all are, and
	// before they have run.
	Prerequisites string `json:"prerequisites,omitempty"`
}

// PriceSource says where prices come from.
type PriceSource struct {
	// Source names the table or list that has them.
	Source string `json:"source,omitempty"`
	// Date is the day of which they are.
	Date string `json:"date,omitempty"`
	// SpotEstimated says that no retail prices are known, and those of spot machines are
	// estimates.
	SpotEstimated bool `json:"spotEstimated,omitempty"`
}

// PendingWorkload is a workload of which pods wait for one reason.
type PendingWorkload struct {
	// Workload is the kind, namespace and name.
	Workload string `json:"workload"`
	// Pods is how many of its pods wait.
	Pods int32 `json:"pods"`
	// Pod names one of them.
	Pod string `json:"pod"`
	// Reason is the code of why they wait.
	Reason string `json:"reason,omitempty"`
	// Message is the sentence of the pods' events.
	Message string `json:"message"`
}

// Refusal is an offering, or many, that Azure has refused.
type Refusal struct {
	// Size is the VM size; it is empty where a family or all sizes are refused.
	Size string `json:"size,omitempty"`
	// Family is the VM family; it is empty where one size or all sizes are refused.
	Family string `json:"family,omitempty"`
	// Kind is what all sizes have in common for which it holds: their architecture,
	// whether they have GPUs or are confidential, and how many vCPUs they have where it is
	// about one number of them alone. It is empty for sizes of every kind.
	Kind string `json:"kind,omitempty"`
	// Policy is the Azure Policy that denies the sizes for which it holds; it is empty where
	// no policy does.
	Policy string `json:"policy,omitempty"`
	// Place is the zone, or what else it holds for.
	Place string `json:"place"`
	// CapacityType is on-demand or spot.
	CapacityType string `json:"capacityType"`
	// MinVCPUs is from how many vCPUs on it holds.
	MinVCPUs int64 `json:"minVCPUs,omitempty"`
	// Until is when Azure is asked again.
	Until metav1.Time `json:"until"`
	// Why is what Azure said.
	Why string `json:"why"`
}

// QuotaLine is one limit of the subscription, in vCPUs.
type QuotaLine struct {
	// Name is that of the quota, as Azure has it.
	Name string `json:"name"`
	// Limit is how many vCPUs the subscription may have.
	Limit int64 `json:"limit"`
	// Used counts what nap has bought and Azure does not count yet.
	Used int64 `json:"used"`
}

// NodePoolState is a NodePool as it is evaluated now.
type NodePoolState struct {
	// Name is that of the NodePool.
	Name string `json:"name"`
	// Nodes is how many nodes and machines under way it has.
	Nodes int32 `json:"nodes"`
	// SpotNodes is how many of them are spot machines.
	SpotNodes int32 `json:"spotNodes,omitempty"`
	// HourlyCost is what they cost in dollars per hour.
	HourlyCost string `json:"hourlyCost,omitempty"`
	// CPUPercent is how much of the cpu of its nodes the requests of their pods take, from 0
	// to 100; nil without nodes.
	CPUPercent *int32 `json:"cpuPercent,omitempty"`
	// MemoryPercent is how much of the memory of its nodes the requests of their pods take,
	// from 0 to 100; nil without nodes.
	MemoryPercent *int32 `json:"memoryPercent,omitempty"`
	// Why is why it buys nothing; empty while it buys.
	Why string `json:"why,omitempty"`
	// Frozen is until when and why its nodes are not removed voluntarily; empty while they
	// may be.
	Frozen string `json:"frozen,omitempty"`
	// Limits are its limits and what is used of them, such as "34 of 200", by resource.
	Limits map[string]string `json:"limits,omitempty"`
	// Budgets are how many nodes may be disrupted now, by reason; a reason that is absent
	// is not limited.
	Budgets map[string]int32 `json:"budgets,omitempty"`
}

// Plan is a plan of the provisioning loop, in figures.
type Plan struct {
	// ID is the id of the plan, which the controller's log has, too.
	ID string `json:"id"`
	// At is when it was made.
	At metav1.Time `json:"at"`
	// Pods is how many pods it was made for.
	Pods int32 `json:"pods"`
	// NewNodes is how many machines it buys.
	NewNodes int32 `json:"newNodes"`
	// Pending is how many of the pods get no place.
	Pending int32 `json:"pending"`
	// HourlyCost is what the new nodes cost in dollars per hour.
	HourlyCost string `json:"hourlyCost"`
	// Took is how long it took to make, such as 41ms.
	Took string `json:"took"`
}

// MachineUnderWay is a NodeClaim that is not an initialized node yet.
type MachineUnderWay struct {
	// NodeClaim is the name of the NodeClaim.
	NodeClaim string `json:"nodeClaim"`
	// NodePool is the name of its NodePool.
	NodePool string `json:"nodePool"`
	// Size is the VM size; empty while none is chosen.
	Size string `json:"size,omitempty"`
	// Ordered is when the NodeClaim was made.
	Ordered metav1.Time `json:"ordered"`
	// Stage is how far it is: Ordered, Launched or Registered.
	Stage string `json:"stage"`
	// Trouble is what keeps it from becoming a node that takes pods, as far as it is known: the
	// words of Azure, or what a node that is not initialized waits for.
	Trouble string `json:"trouble,omitempty"`
	// GivenUp is when it is given up unless it is there by then; its pods are planned again.
	GivenUp *metav1.Time `json:"givenUp,omitempty"`
}

// LeavingNode is a node whose NodeClaim is deleted.
type LeavingNode struct {
	// Node is the name of the node; empty where the machine has not become one.
	Node string `json:"node,omitempty"`
	// NodeClaim is the name of its NodeClaim.
	NodeClaim string `json:"nodeClaim"`
	// NodePool is the name of its NodePool.
	NodePool string `json:"nodePool,omitempty"`
	// Since is when the deletion was asked for.
	Since metav1.Time `json:"since"`
	// BlockedBy is what the node waits for that does not end by itself, or takes longer than is
	// usual: a pod, a PodDisruptionBudget or volumes. It is empty while nothing is known to be
	// in the way for so long.
	BlockedBy string `json:"blockedBy,omitempty"`
	// WaitsFor is what its drain waits for that ends by itself, as a rule: a terminating pod, or
	// a PodDisruptionBudget that allows no eviction now. It is empty where BlockedBy is not.
	WaitsFor string `json:"waitsFor,omitempty"`
	// Move is the id of the Move that removes it, empty where none does.
	Move string `json:"move,omitempty"`
}

// The stages of a Move which has asked for the deletion of all its nodes: the first while some of
// them are still there, the second afterwards.
const (
	MoveLeaving = "Leaving"
	MoveDone    = "Done"
)

// Move is a removal of nodes, with the machines that replace them.
type Move struct {
	// ID tells it from other moves; leaving[].move has it, too.
	ID string `json:"id"`
	// Reason is Empty, Underutilized, Drifted, Unhealthy or Expired.
	Reason string `json:"reason"`
	// Nodes is how many nodes it removes.
	Nodes int32 `json:"nodes"`
	// Node names one of them.
	Node string `json:"node"`
	// NodePools are those of the nodes.
	NodePools []string `json:"nodePools,omitempty"`
	// Replacements is how many machines are bought first.
	Replacements int32 `json:"replacements,omitempty"`
	// Evictions is how many pods have to move.
	Evictions int32 `json:"evictions"`
	// HourlySaving is what it saves in dollars per hour.
	HourlySaving string `json:"hourlySaving"`
	// Stage is how far it is: Replacing, Draining, RollingBack, Leaving, Done or RolledBack.
	Stage string `json:"stage"`
	// Why is why it is rolled back, what it waits for although its replacements are there, or
	// what its nodes wait for that leave.
	Why string `json:"why,omitempty"`
	// Begun is when it began.
	Begun metav1.Time `json:"begun"`
	// Ended is when it was over; nil while it is under way.
	Ended *metav1.Time `json:"ended,omitempty"`
}

// SnapshotList is a list of Snapshots.
//
// +kubebuilder:object:root=true
type SnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Snapshot `json:"items"`
}

// SnapshotShard is a part of what a Snapshot tells in short. Put together in the order of
// their parts, the data of all shards with the Snapshot's digest is a gzip stream of JSON.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=snapshotshards,singular=snapshotshard,scope=Cluster,categories={nap}
// +kubebuilder:printcolumn:name="Part",type="integer",JSONPath=".part"
// +kubebuilder:printcolumn:name="Of",type="integer",JSONPath=".parts"
type SnapshotShard struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Part is the number of the part, from 0.
	Part int32 `json:"part"`
	// Parts is how many there are.
	Parts int32 `json:"parts"`
	// Digest is that of the Snapshot to which the part belongs.
	Digest string `json:"digest"`
	// Data are at most 512 KiB.
	//
	// +kubebuilder:validation:MaxLength=699052
	Data []byte `json:"data"`
}

// SnapshotShardList is a list of SnapshotShards.
//
// +kubebuilder:object:root=true
type SnapshotShardList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SnapshotShard `json:"items"`
}
