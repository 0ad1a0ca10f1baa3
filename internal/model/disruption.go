package model

import (
	"slices"
	"time"
)

// DisruptionProblem is the input of consolidation: the planning problem of the
// moment, what runs on its nodes, and what guards them. Like Problem it is a value
// and is not changed.
type DisruptionProblem struct {
	// Problem has the nodes, the pools and the offerings. Its Classes are the
	// pods that need a place in any case: pending pods and the pods of nodes that
	// are leaving. They have the first claim to room and never block a command.
	Problem *Problem
	// Movable are the classes of pods that run on nodes and need another place if
	// their node goes.
	Movable []MovableClass
	// Usages has one entry per node of Problem.Nodes, by the same index: what runs
	// there and what blocks its disruption.
	Usages []NodeUsage
	// Budgets are the PodDisruptionBudgets that select some pod which a drain evicts.
	Budgets []PodBudget
	// Policies are the disruption settings of the NodePools, including those that
	// may not buy nodes. NodeUsage.Policy indexes them.
	Policies []DisruptionPolicy
	Terms    ConsolidationTerms
	// ConsolidateFrom is the start of the maintenance window that consolidation
	// waits for; zero when it need not wait.
	ConsolidateFrom time.Time
	// Now is the moment at which all times of the problem are judged.
	Now time.Time
	// Bound asks for Commands.LowerBound, which takes about as long as planning all
	// pods from an empty cluster.
	Bound bool
}

// MovableClass is a set of running pods that no rule can tell apart, neither
// where they may go nor what moving them costs. Pods lists all of them, over all
// nodes; NodeUsage.Pods says which of them run where.
type MovableClass struct {
	PodClass
	// Budgets are the PodDisruptionBudgets (indices into DisruptionProblem.Budgets)
	// that an eviction of one of these pods counts against.
	Budgets []int
	// EvictionCost is what evicting one pod costs in Karpenter's unit, where a
	// plain pod is 1: clamp(1 + deletionCost/2^27 + priority/2^25, -10, 10).
	EvictionCost float64
}

// NodeUsage is what runs on a node and what blocks its disruption.
type NodeUsage struct {
	// Pods are the movable pods on the node; Class indexes
	// DisruptionProblem.Movable.
	Pods []ClassPods
	// DoNotDisruptPods are the pods which must not be evicted, including DaemonSet
	// pods and static pods with a do-not-disrupt annotation.
	DoNotDisruptPods []DoNotDisruptPod
	// DaemonPods are the DaemonSet pods which a drain of the node evicts, as it does movable
	// ones, and which PodDisruptionBudgets select. They need no other place.
	DaemonPods []DaemonPod
	// Policy indexes DisruptionProblem.Policies. It is -1 for a node of no
	// NodePool, which can take pods in and is never disrupted.
	Policy int
	// Initialized is true once the NodeClaim is initialized. Only initialized nodes
	// are disrupted or take in pods of other nodes. Ready is false while the kubelet
	// does not report.
	Initialized, Ready bool
	// Nominated nodes are expected to take pods that are not bound yet.
	Nominated bool
	// Reserved nodes were bought as replacements for a command that is under way.
	// No other command may count on their room.
	Reserved bool
	// ExpectedSaving is what the command that brought the node's pods here was to
	// save, in Money per hour. It counts for those of the pods that are still here,
	// and is zero once ConsolidationTerms.Payback has passed. A command that moves
	// these pods again must save as much on top of what the evictions cost:
	// otherwise, when the scheduler puts pods elsewhere than planned, correcting it
	// over and over would save nothing.
	ExpectedSaving Money
	// DoNotDisrupt is the karpenter.sh/do-not-disrupt annotation on the Node.
	DoNotDisrupt bool
	// Disrupting nodes are already being removed, by nap or by others.
	Disrupting bool
	// RetryAfter is when a node may be tried again after its last command failed;
	// zero when none has.
	RetryAfter time.Time
	// Created is when the NodeClaim was created, InitializedAt when the node became
	// able to run pods, LastPodEvent when a pod last came or went.
	Created, InitializedAt, LastPodEvent time.Time
	// Ending is how many pods of the node are being deleted and take their room for moments more,
	// those of DaemonSets and static ones aside. EndingUntil is when they are waited for no longer.
	Ending      int
	EndingUntil time.Time
	// Returning is how many pods Jobs are about to create in the place of those that have ended on
	// the node. ReturningUntil is when they are waited for no longer.
	Returning      int
	ReturningUntil time.Time
	// Drift is the reason for which the node differs from what would be bought
	// now, empty when it does not. DriftSince is when that began.
	Drift      string
	DriftSince time.Time
	// Unhealthy is what makes the node due for repair, empty while nothing does.
	// UnhealthySince is when it became due.
	Unhealthy      string
	UnhealthySince time.Time
	// ExpiresAt is when the NodeClaim's expireAfter ends, zero for never.
	ExpiresAt time.Time
	// Held is what of Pool.Usage, beside one of Pool.Nodes, is this node's, by axis. It is nil
	// where removing the node gives limits nothing back: its NodePool has none, it leaves
	// already, or its replacement has taken its place.
	Held Resources
	// GracePeriod says that a drain of the node ends by force, because
	// terminationGracePeriod is set or its repair allows only so much time. A drifted or
	// unhealthy node then goes in spite of pods that must not be evicted. Of one that has
	// drifted or expires, these get no place before that.
	GracePeriod bool
}

// DoNotDisruptPod is a pod which must not be evicted for a voluntary reason.
type DoNotDisruptPod struct {
	Pod PodRef
	// Until is when that ends, zero for never.
	Until time.Time
	// Why is why the pod would find no other place, empty for one with the annotation
	// karpenter.sh/do-not-disrupt.
	Why string
}

// At reports whether the pod must not be evicted at a time.
func (p *DoNotDisruptPod) At(t time.Time) bool { return p.Until.IsZero() || p.Until.After(t) }

// A replacement is bought expiryLead before a node expires: time for the new node to be
// launched, to join and to become ready. It costs the price of both meanwhile, so for
// nodes of short life it is bought later, no earlier than a share of 1/expiryShare of
// the node's life before its end.
const (
	expiryLead  = 15 * time.Minute
	expiryShare = 10
)

// PrepareAt is when the replacement of a node that expires is bought: a tenth of its life before
// its end, and a quarter of an hour at most. It is zero for a node that never expires.
func (u *NodeUsage) PrepareAt() time.Time {
	if u.ExpiresAt.IsZero() {
		return time.Time{}
	}
	return u.ExpiresAt.Add(-min(expiryLead, u.ExpiresAt.Sub(u.Created)/expiryShare))
}

// DaemonPod is a pod of a DaemonSet.
type DaemonPod struct {
	Pod PodRef
	// Budgets are the PodDisruptionBudgets (indices into DisruptionProblem.Budgets) that its
	// eviction counts against.
	Budgets []int
}

// PodBudget is a PodDisruptionBudget.
type PodBudget struct {
	Namespace, Name string
	// Allowed is how many of its pods may be evicted now. Blocking budgets never
	// allow any. Owed are the evictions that nodes which go already still draw on Allowed.
	Allowed, Owed int
	Blocking      bool
}

// String is "namespace/name".
func (b *PodBudget) String() string { return b.Namespace + "/" + b.Name }

// ConsolidationPolicy is spec.disruption.consolidationPolicy of a NodePool.
type ConsolidationPolicy string

// The consolidation policies of Karpenter's NodePool API v1.
const (
	WhenEmpty                ConsolidationPolicy = "WhenEmpty"
	WhenEmptyOrUnderutilized ConsolidationPolicy = "WhenEmptyOrUnderutilized"
	Balanced                 ConsolidationPolicy = "Balanced"
)

// ConsolidationPolicies are the names of all policies that a NodePool may have.
func ConsolidationPolicies() []string {
	return []string{string(WhenEmptyOrUnderutilized), string(WhenEmpty), string(Balanced)}
}

// DisruptionReason is why a node is disrupted, in the words of the NodePool API
// and of Karpenter's metrics.
type DisruptionReason string

// The reasons for disrupting a node. NodePool budgets do not know Expired: expiry
// happens in any case, and only the replacement can be bought before it.
const (
	DisruptEmpty         DisruptionReason = "Empty"
	DisruptUnderutilized DisruptionReason = "Underutilized"
	DisruptDrifted       DisruptionReason = "Drifted"
	DisruptExpired       DisruptionReason = "Expired"
	DisruptUnhealthy     DisruptionReason = "Unhealthy"
)

// DisruptionPolicy is spec.disruption of a NodePool, with its budgets evaluated at
// DisruptionProblem.Now.
type DisruptionPolicy struct {
	// Pool is the name of the NodePool.
	Pool          string
	Consolidation ConsolidationPolicy
	// Never is consolidateAfter: Never. Otherwise After is consolidateAfter: how
	// long no pod may have come to or left a node before it is a candidate.
	Never bool
	After time.Duration
	// Counted is how many of its nodes the budgets count: those which run pods, or did before
	// their reboot.
	Counted int
	// Allowed is how many more nodes may be disrupted now for each reason. All
	// budgets, schedules and nodes already in disruption are taken into account. A
	// reason without an entry is not limited.
	Allowed map[DisruptionReason]int
	// Budgeted is how many nodes the budgets let be disrupted at a time for each reason,
	// those that are in disruption already included.
	Budgeted map[DisruptionReason]int
	// Consuming is how many of its nodes count against the budgets for each reason that
	// has an entry in Budgeted: those that are in disruption, and but for repair those
	// that are not ready.
	Consuming map[DisruptionReason]int
	// BudgetEnds is when the schedule of a budget which is in force for a reason ends next,
	// so that more may be allowed; a reason without such a budget has no entry.
	BudgetEnds map[DisruptionReason]time.Time
	// Frozen is until when and why no node may be removed voluntarily, empty while nodes
	// may be. Allowed is then 0 for all reasons but repair. FrozenUntil is when that ends, zero for
	// never.
	Frozen      string
	FrozenUntil time.Time
	// Static pools keep a fixed number of nodes. Their nodes are replaced when they
	// drift or expire, and are never consolidated.
	Static bool
	// Count is how many nodes a static pool has and may have; nil where that does not
	// bound replacements.
	Count *StaticCount
}

// StaticCount is the number of nodes of a static pool beside the numbers that its
// NodePool allows. A node of such a pool is replaced by one that is created first.
type StaticCount struct {
	// Replicas is spec.replicas; Limit is spec.limits.nodes, -1 without one.
	Replicas, Limit int
	// Nodes are all nodes of the pool, those which are on their way or leave included.
	// Staying are those which nothing removes.
	Nodes, Staying int
	// TerminateFirst are the reasons for which a node that has no room for a replacement
	// beside it goes before its replacement is created: Drifted, Unhealthy, both or none.
	TerminateFirst []DisruptionReason
}

// Surplus is how many of the nodes that stay are more than spec.replicas. Those go
// first: until then no node is replaced.
func (c *StaticCount) Surplus() int { return max(0, c.Staying-c.Replicas) }

// Replaceable reports whether one more node may be replaced after so many others: its
// replacement exists beside it for a while, within the limit.
func (c *StaticCount) Replaceable(others int) bool {
	return c.Surplus() == 0 && (c.Limit < 0 || c.Nodes+others < c.Limit)
}

// GoesFirst reports whether a node goes without a replacement for a reason: the limit has
// room for none, and no earlier node is still beside its replacement.
func (c *StaticCount) GoesFirst(reason DisruptionReason) bool {
	return slices.Contains(c.TerminateFirst, reason) && c.Surplus() == 0 && c.Limit >= 0 && c.Nodes >= c.Limit && c.Nodes <= c.Replicas
}

// ConsolidationTerms are what a command of consolidation must be worth.
type ConsolidationTerms struct {
	// EvictionPrice is what the eviction of one pod of EvictionCost 1 is taken to
	// cost, once. Payback is the time within which a saving must pay for the
	// evictions that it needs.
	EvictionPrice Money
	Payback       time.Duration
	// MinimumSaving is the least saving per hour for which nodes are replaced, as a
	// share of the price of the nodes removed. It is hysteresis: no pod moves twice
	// for the same money. Deletion without replacement needs none.
	MinimumSaving float64
	// SpotToSpot allows spot nodes to be replaced by cheaper spot nodes.
	SpotToSpot bool
}

// LeastSaving is the minimum saving per hour of a command that replaces nodes of
// this price.
func (t *ConsolidationTerms) LeastSaving(price Money) Money {
	return Money(t.MinimumSaving * float64(price))
}

// LeastShare is the minimum saving of a command as a share of the price of what it
// removes. It is at least [LeastSplit] if that leaves more machines, of NodePools whose
// catalogues say what a node costs.
func (f *DisruptionProblem) LeastShare(c *Command) float64 {
	p := f.Problem
	for i := range c.New {
		if len(c.New) > len(c.Nodes) && p.Catalogs[p.Pools[c.New[i].Pool].Catalog].StatesNodeCost() {
			return max(f.Terms.MinimumSaving, LeastSplit)
		}
	}
	return f.Terms.MinimumSaving
}

// DefaultConsolidationTerms are the terms that hold without configuration: an
// eviction costs a fifth of a cent, a saving must pay for its evictions within an
// hour, and a replacement must save a twentieth.
func DefaultConsolidationTerms() ConsolidationTerms {
	return ConsolidationTerms{EvictionPrice: USD(0.002), Payback: time.Hour, MinimumSaving: 0.05}
}

// Commands is the answer to a DisruptionProblem: which nodes to remove, in which
// order, and why the other nodes are kept.
type Commands struct {
	// Commands are feasible together when they are executed in this order, each in
	// the cluster that its predecessors leave.
	Commands []Command
	// Kept has one entry for every node of a NodePool that no command removes.
	Kept []KeptNode
	// Before is the price per hour of all nodes as they are, After with all commands
	// executed. LowerBound is at most the price of any set of nodes that holds the
	// same pods; it is zero unless DisruptionProblem.Bound asks for it.
	Before, After, LowerBound Money
	// Evictions is the number of pods that the commands evict.
	Evictions int
	// Tried counts the candidate sets that were evaluated. Rejected counts those
	// for which a reason was found, by that reason.
	Tried    int64
	Rejected map[Reason]int64
	// Scores are those of the candidate sets that were held against the policy Balanced.
	Scores []BalancedScore
}

// BalancedScore is what a command is worth by the policy Balanced.
type BalancedScore struct {
	// Policy is an index into DisruptionProblem.Policies.
	Policy int
	// Nodes are those of the command; indices into Problem.Nodes, at least one.
	Nodes []int
	// Saving is the share of the NodePool's price that is saved, Disruption the share of
	// its disruption that is caused; Approved is whether the one is worth the other.
	Saving, Disruption float64
	Approved           bool
}

// Score is saving over disruption, 0 without any disruption.
func (s *BalancedScore) Score() float64 {
	if s.Disruption <= 0 {
		return 0
	}
	return s.Saving / s.Disruption
}

// Command removes nodes, after it has bought replacements if it has any. It is one
// decision of disruption, like Karpenter's command.
type Command struct {
	Reason DisruptionReason
	// Nodes are removed; indices into Problem.Nodes, sorted.
	Nodes []int
	// New are the replacements, which are bought first. Their Pods, and those of
	// Placements, index DisruptionProblem.Movable.
	New        []NewNode
	Placements []Placement
	// FromTemplate says that the node is of a static pool: one new node, made from
	// the pool's template as it is, takes its place. New is then empty.
	FromTemplate bool
	// TerminateFirst commands are FromTemplate, and the new node is created by the pool
	// when the node is gone.
	TerminateFirst bool
	// Saving is Money per hour. It is negative where the replacement of a drifted,
	// unhealthy or expired node costs more.
	Saving Money
	// Evictions counts the pods that must move. DisruptionCost is Karpenter's: 1 per
	// node, and per pod its EvictionCost, no less than 0.
	Evictions      int
	DisruptionCost float64
}

// KeptNode is a node that is kept and why.
type KeptNode struct {
	// Node is an index into Problem.Nodes.
	Node   int
	Reason Reason
	// Message is a full sentence with names and numbers.
	Message string
	// Pod and Budget are what blocks, where something does. Budget is
	// "namespace/name".
	Pod    PodRef
	Budget string
	// OthersFirst says that Budget would let the node go if others did not go first.
	OthersFirst bool
	// Until is when the reason may end, zero when that is not known.
	Until time.Time
}
