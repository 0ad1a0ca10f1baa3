package consolidate

import (
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Intent is a command as its executor remembers it: in names, because indices do not
// outlive a DisruptionProblem.
type Intent struct {
	Reason model.DisruptionReason
	// Nodes are removed, named as in Problem.Nodes.
	Nodes []string
	// Replacements are the nodes bought for it, or to be bought.
	Replacements []Replacement
	// FromTemplate is as in model.Command.
	FromTemplate bool
	// Homes names the nodes, or the NodeClaims of replacements, on which the plan has
	// places for pods, as far as that is known. They are tried first.
	Homes map[model.PodRef]string
	// Draining commands have begun to evict their pods. What guards nodes and pods was
	// asked before; the command itself uses PodDisruptionBudgets up now.
	Draining bool
}

// Replacement is a node of an [Intent].
type Replacement struct {
	// Node is the name of its Node or NodeClaim once it is one of Problem.Nodes; empty
	// while it is not bought.
	Node string
	// Pool, InstanceType, Zone and CapacityType say what is to be bought. They count
	// only while Node is empty.
	Pool, InstanceType, Zone string
	CapacityType             model.CapacityType
}

// Objection is something that speaks against executing a command.
type Objection struct {
	// Node is the node concerned, empty when it is the command as a whole.
	Node    string
	Reason  model.Reason
	Message string
	// Passing objections may end by themselves soon: a budget that others draw on at
	// the moment, a node that is not ready again. With replacements bought, it is
	// better to ask again than to remove them. Until is when one ends at the earliest, zero
	// where that is not known.
	Passing bool
	Until   time.Time
}
