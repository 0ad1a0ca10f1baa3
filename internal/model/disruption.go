package model

import "time"

// Fleet is everything that a decision to give machines back may look at: the
// planning problem of the moment, and beside it what runs on its nodes and what
// guards them. Like Problem it is a value and is not changed.
type Fleet struct {
	// Problem has the nodes, the pools and the offerings. Its Classes are the
	// pods that need a place anyway: those that wait and those of nodes that
	// leave. They have the first claim to room and never block a move.
	Problem *Problem
	// Movable are the kinds of pods that run on nodes and would need a place
	// elsewhere if their node went.
	Movable []MovableClass
	// Tenancies says, for every node of Problem.Nodes by the same index, who
	// lives there and what holds it.
	Tenancies []Tenancy
	// Budgets are the PodDisruptionBudgets that speak of some movable pod.
	Budgets []PodBudget
	// Policies are the disruption settings of the NodePools, of those too that
	// may not buy. Tenancy.Policy indexes them.
	Policies []DisruptionPolicy
	Terms    MoveTerms
	// ConsolidateFrom is the start of the maintenance window that consolidation
	// waits for; zero when it need not wait.
	ConsolidateFrom time.Time
	Now             time.Time
	// Bound asks for Moves.LowerBound, which takes about as long as planning all
	// pods anew.
	Bound bool
}

// MovableClass is a set of running pods that no rule can tell apart, neither
// where they may go nor what moving them costs. Pods lists all of them, over all
// nodes; Tenancy.Pods says which of them live where.
type MovableClass struct {
	PodClass
	// Budgets are the PodDisruptionBudgets (indices into Fleet.Budgets) that an
	// eviction of one of these pods counts against.
	Budgets []int
	// EvictionCost is what evicting one pod costs in Karpenter's unit, where a
	// plain pod is 1: clamp(1 + deletionCost/2^27 + priority/2^25, -10, 10).
	EvictionCost float64
}

// Tenancy is who lives on a node and what holds the node where it is.
type Tenancy struct {
	// Pods are the movable pods; Class indexes Fleet.Movable.
	Pods []ClassPods
	// Held are the pods that nobody may evict, DaemonSets' and static ones with a
	// do-not-disrupt annotation included.
	Held []HeldPod
	// Policy indexes Fleet.Policies, -1 for a node of no NodePool, which is a
	// place for pods but never given back.
	Policy int
	// Initialized nodes alone are given back or counted on as the new home of
	// pods. Ready is false while the kubelet does not report.
	Initialized, Ready bool
	// Nominated nodes have been promised to pods that are not bound yet.
	Nominated bool
	// Promised nodes were bought for a move under way, whose pods they will take:
	// no other move may count on them.
	Promised bool
	// Earned is what the move that brought the node's pods here was to save per
	// hour, as long as MoveTerms.Payback has not passed since, for those of them
	// that are still there. A move that takes
	// them on must save as much on top of what their evictions cost: the scheduler
	// may have put pods elsewhere than was planned, and what is then put right
	// again and again saves nothing.
	Earned Money
	// DoNotDisrupt is the annotation on the Node.
	DoNotDisrupt bool
	// Marked nodes are already being given up, by whomever.
	Marked bool
	// RestsUntil is when a node may be tried again whose last move failed; zero
	// when none has.
	RestsUntil time.Time
	// Created is when the NodeClaim was made, InitializedAt when it became able
	// to run pods, LastPodEvent when a pod last came or went.
	Created, InitializedAt, LastPodEvent time.Time
	// Drift is the reason for which the node differs from what would be bought
	// now, empty when it does not; DriftSince is when that began.
	Drift      string
	DriftSince time.Time
	// ExpiresAt is when the NodeClaim's expireAfter ends, zero for never.
	ExpiresAt time.Time
	// GracePeriod says that terminationGracePeriod is set, which lets drift begin
	// in spite of pods that must not be evicted: it ends in force.
	GracePeriod bool
}

// HeldPod is a pod that nobody may evict for a voluntary reason.
type HeldPod struct {
	Pod PodRef
	// Until is when that ends, zero for never.
	Until time.Time
}

// PodBudget is a PodDisruptionBudget.
type PodBudget struct {
	Namespace, Name string
	// Allowed is how many of its pods may be evicted now; Blocking budgets never
	// allow any.
	Allowed  int
	Blocking bool
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

// DisruptionReason is why a node is given back, in the words of the NodePool
// API and of Karpenter's metrics.
type DisruptionReason string

// The reasons for giving a node back. Expired is not a reason that budgets know:
// expiry is nobody's choice, but its replacement can come first.
const (
	DisruptEmpty         DisruptionReason = "Empty"
	DisruptUnderutilized DisruptionReason = "Underutilized"
	DisruptDrifted       DisruptionReason = "Drifted"
	DisruptExpired       DisruptionReason = "Expired"
)

// DisruptionPolicy is what a NodePool allows to be done to its nodes.
type DisruptionPolicy struct {
	Pool          string
	Consolidation ConsolidationPolicy
	// Never is consolidateAfter: Never; otherwise After is the quiet time that a
	// node must have had.
	Never bool
	After time.Duration
	// Allowed is how many more nodes may be disrupted now for each reason, all
	// budgets, schedules and nodes already in disruption taken into account. A
	// reason that is absent is not limited.
	Allowed map[DisruptionReason]int
	// Static pools keep a fixed number of nodes: they are replaced when they
	// drift and never consolidated.
	Static bool
}

// MoveTerms are what a move must be worth.
type MoveTerms struct {
	// EvictionPrice is what evicting one pod of EvictionCost 1 is held to cost,
	// once. Payback is the time over which a saving must have earned the
	// evictions that it costs.
	EvictionPrice Money
	Payback       time.Duration
	// MinimumSaving is the least saving per hour, as a share of the price of the
	// nodes given back, for which a node is replaced: hysteresis, so that no pod
	// is moved twice for the same money. Deleting without replacement needs none.
	MinimumSaving float64
	// SpotToSpot allows spot nodes to be replaced by cheaper spot nodes.
	SpotToSpot bool
}

// DefaultMoveTerms are the terms where nobody says otherwise: an eviction is held
// to cost a fifth of a cent, a saving must earn its evictions within an hour, and
// replacements must save a twentieth.
func DefaultMoveTerms() MoveTerms {
	return MoveTerms{EvictionPrice: USD(0.002), Payback: time.Hour, MinimumSaving: 0.05}
}

// Moves is the answer to a Fleet: what to give back, in order, and why the other
// nodes stay.
type Moves struct {
	// Moves are feasible together when they are made in this order, each on the
	// fleet that its predecessors leave.
	Moves []Move
	// Stays has one entry for every node of a NodePool that no move gives back.
	Stays []Stay
	// Before is the price per hour of the fleet as it is, After with the moves
	// made. LowerBound is a floor under the price of any set of nodes that holds
	// the same pods, zero when it was not asked for.
	Before, After, LowerBound Money
	// Evictions is the number of pods that the moves evict.
	Evictions int
	// Tried counts the candidate sets that were evaluated; Rejected those that
	// were feasible or not by the reason that spoke against them.
	Tried    int64
	Rejected map[Reason]int64
}

// Move gives nodes back, after buying New when that is not empty.
type Move struct {
	Reason DisruptionReason
	// Nodes are given back; indices into Problem.Nodes, sorted.
	Nodes []int
	// New are the machines to buy first. Their Pods, and those of Placements,
	// speak of Fleet.Movable.
	New        []NewNode
	Placements []Placement
	// FromTemplate says that the node is of a static pool: one machine made from
	// the pool's template as it is takes its place, and New is empty.
	FromTemplate bool
	// Saving is dollars per hour, negative where drift or expiry costs more.
	Saving Money
	// Evictions counts the pods that must move; DisruptionCost adds up their
	// EvictionCost, in Karpenter's way (1 per node and no less than 0 per pod).
	Evictions      int
	DisruptionCost float64
}

// Stay is why a node is kept.
type Stay struct {
	Node   int
	Reason Reason
	// Message is a full sentence with names and numbers.
	Message string
	// Pod and Budget are what blocks, where something does.
	Pod    PodRef
	Budget string
	// Until is when the reason may end, zero when nothing says.
	Until time.Time
}
