package model

import (
	"slices"
	"time"
)

// Plan is the planner's answer: what to buy, what goes where, what cannot, and
// how good it is.
type Plan struct {
	NewNodes      []NewNode
	Placements    []Placement
	Unschedulable []Unschedulable
	// Cost is the price per hour of NewNodes, each at its best offering.
	Cost Money
	// LowerBound is a proven floor: no plan that places the same pods (those not
	// in Unschedulable) can cost less per hour. Zero when nothing is bought.
	LowerBound Money
	// Fewer is what of Cost was paid for fewer machines.
	Fewer FewerMachines
	// Relaxed lists preferences that had to be given up, for explanation.
	Relaxed []Relaxation
	// Rejected lists what the planner left out because it contradicts itself.
	// Pods among it are in Unschedulable instead.
	Rejected []Rejection
	Stats    Stats
}

// NewNode is a machine to buy.
type NewNode struct {
	// Pool indexes Problem.Pools.
	Pool int
	// Offerings are all ways to buy a machine that holds these pods, cheapest
	// first; the first is the plan, the rest are for when the cloud says no.
	Offerings []OfferingRef
	// Requirements narrow the pool's for this node: what its pods need of labels
	// that the offerings leave open (zones, choices, custom labels).
	Requirements Requirements
	// Requests is what the pods take; Daemons what DaemonSets add.
	Requests Resources
	Daemons  Resources
	Pods     []ClassPods
}

// Best returns the offering that the plan counts on.
func (n *NewNode) Best() OfferingRef { return n.Offerings[0] }

// OfferingRef points into Problem.Catalogs[pool.Catalog].
type OfferingRef struct {
	InstanceType int
	Offering     int
	Price        Money
}

// ClassPods are pods of one class: the indices into its Pods.
type ClassPods struct {
	Class int
	Pods  []int
}

// Placement puts pods on a node that exists or is on its way.
type Placement struct {
	// Node indexes Problem.Nodes.
	Node int
	Pods []ClassPods
}

// Unschedulable are pods of one class that found no place, and why.
type Unschedulable struct {
	Class  int
	Pods   []int
	Reason Reason
	// Message is the verdict, one sentence without the figures of the nearest miss;
	// empty stands for the meaning of the reason.
	Message string
	// LeftOut indexes the NodePools of Problem.LeftOut that would take the pods, as far as
	// requirements, taints and what is on sale say. Where no other NodePool would, the first
	// is the reason.
	LeftOut []int
	// Pools says, for every pool, how many offerings each check removed.
	Pools []PoolVerdict
	// Nearest is the offering or node that came closest; nil when there is none.
	Nearest *NearestMiss
}

// PoolVerdict counts what happened to a pool's offerings for one class.
type PoolVerdict struct {
	Pool      int
	Offerings int
	Removed   []ReasonCount
}

// ReasonCount is how many offerings (or nodes) one check removed.
type ReasonCount struct {
	Reason Reason
	Count  int
	Detail string
}

// NearestMiss is the candidate that failed the fewest checks, with numbers.
type NearestMiss struct {
	Pool         string
	InstanceType string
	Zone         string
	CapacityType CapacityType
	Node         string
	Reason       Reason
	// Have and Want are what the failing check compared, as text with units.
	Have, Want string
	// Fix is one sentence: what to change so that it fits.
	Fix string
	// Quota is the name of the quota that is short, empty where none is.
	Quota string
	// Fails are the reasons of all checks that the offering fails, Reason the first of them;
	// empty for a node.
	Fails []Reason
}

// Rejection is a pool, instance type, offering or node that was left out of
// planning because it is malformed.
type Rejection struct {
	// Kind is "NodePool", "InstanceType", "Offering" or "Node".
	Kind, Name string
	// Message names the field, its value and what is allowed.
	Message string
}

// Relaxation is a preference that a class had to give up.
type Relaxation struct {
	Class      int
	Pods       int
	Preference string
}

// Stats are how the plan was made; they decide nothing.
type Stats struct {
	// Engine names the solver that made the plan.
	Engine string
	// Steps counts units of work, so that two runs can be compared without a
	// clock.
	Steps int64
	// Rounds is how many improvement rounds ran; FirstCost is the cost of the
	// first feasible plan, before any improvement, or of this plan where that is
	// more, since it places pods that the first one left out.
	Rounds    int
	FirstCost Money
	// Replay is what it takes to make the same plan again, if a clock decided when the
	// search ended; nil if the problem alone did.
	Replay *Replay
}

// Replay is what the search for a plan asked of the clock, and what the answers were.
// With the same problem and these answers it takes the same course.
type Replay struct {
	// Seed and Budget are those of the policy.
	Seed   uint64        `json:"seed"`
	Budget time.Duration `json:"budgetNanoseconds"`
	// Readings are the times that the search read, since its caller began to wait.
	Readings []time.Duration `json:"readingsNanoseconds,omitempty"`
	// Late says which of the questions whether time is over were answered by yes: the
	// first and the last number of each run of them, from 0.
	Late [][2]int `json:"late,omitempty"`
	// Stops is after how many steps time ended each part of the search that it ended:
	// packings of nodes and proofs of the bound, by number, and the workers of each.
	Stops map[string]int64 `json:"stops,omitempty"`
	// Parts are the records of the parts in which the problem was planned, one after the
	// other; nothing but the seed and the budget of the whole is valid beside them.
	Parts []*Replay `json:"parts,omitempty"`
}

// Cut reports whether time ended the search for a better plan before its steps did, so
// that a quieter machine might have found a better one. A nil record was not cut.
func (r *Replay) Cut() bool {
	return r != nil && (len(r.Late)+len(r.Stops) > 0 || slices.ContainsFunc(r.Parts, (*Replay).Cut))
}
