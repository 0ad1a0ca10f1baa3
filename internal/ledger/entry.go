package ledger

import "time"

// Cost are dollars by what they are paid for, or dollars per hour.
type Cost struct {
	// Machine is the virtual machine, Disk its managed disk, Node what the user adds.
	Machine float64 `json:"machine,omitempty"`
	Disk    float64 `json:"disk,omitempty"`
	Node    float64 `json:"node,omitempty"`
}

// Total is all of it.
func (c Cost) Total() float64 { return c.Machine + c.Disk + c.Node }

func (c Cost) plus(o Cost) Cost { return Cost{c.Machine + o.Machine, c.Disk + o.Disk, c.Node + o.Node} }

func (c Cost) times(f float64) Cost { return Cost{c.Machine * f, c.Disk * f, c.Node * f} }

// How a machine ended.
const (
	EndMoved   = "Moved"   // a command removed it, for consolidation, drift or expiry
	EndEvicted = "Evicted" // Azure took the spot machine back
	EndBoot    = "BootFailed"
	EndDeleted = "Deleted" // its NodeClaim was deleted for any other reason
)

// Machine is a machine that was bought.
type Machine struct {
	// NodeClaim is its name, which with Launched tells it from every other one.
	NodeClaim    string `json:"nodeClaim"`
	NodePool     string `json:"nodePool"`
	Size         string `json:"size"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	// Launched is since when it is billed.
	Launched time.Time `json:"launched"`
	// Ended is when it was gone; nil while it is there. End is how it ended.
	Ended *time.Time `json:"ended,omitempty"`
	End   string     `json:"end,omitempty"`
	// Move is the id of the command for which it was bought, empty for pods.
	Move string `json:"move,omitempty"`
	// Planned is what it was to cost in dollars per hour, zero where no plan says; Paid is
	// what it costs.
	Planned float64 `json:"planned,omitempty"`
	Paid    Cost    `json:"paid"`
	// Cost is what it has cost in dollars.
	Cost Cost `json:"cost"`
}

// key tells a machine from all others: a name may be given twice, one after the other.
func (m *Machine) key() machineKey { return machineKey{m.NodeClaim, m.Launched.UnixMilli()} }

type machineKey struct {
	name     string
	launched int64
}

// What became of a move.
const (
	MoveUnderWay   = "UnderWay"
	MoveDone       = "Done"
	MoveRolledBack = "RolledBack"
)

// Move is a removal of nodes, with the machines that replace them.
type Move struct {
	ID     string    `json:"id"`
	Reason string    `json:"reason"`
	Begun  time.Time `json:"begun"`
	// Ended is when the last removed machine was gone; nil while the move is under way.
	Ended *time.Time `json:"ended,omitempty"`
	State string     `json:"state"`
	// NodePools are those of the removed nodes, Removed and Bought the names of NodeClaims.
	NodePools []string `json:"nodePools"`
	Removed   []string `json:"removed"`
	Bought    []string `json:"bought,omitempty"`
	// Evictions is how many pods had to move.
	Evictions int `json:"evictions"`
	// Planned is what it was to save in dollars per hour. Before and After are what the
	// removed machines and those that were bought cost per hour as they were paid.
	Planned float64 `json:"planned"`
	Before  float64 `json:"before"`
	After   float64 `json:"after"`
	// Spent is what the replacements cost in dollars while both were there, Saved what the
	// move has saved since.
	Spent float64 `json:"spent"`
	Saved float64 `json:"saved"`
}

// Realised is what the move saves in dollars per hour by what was paid; zero until the
// removed nodes are gone.
func (m *Move) Realised() float64 {
	if m.State != MoveDone {
		return 0
	}
	return m.Before - m.After
}

// Paid reports whether the move has saved more than it has cost.
func (m *Move) Paid() bool { return m.State == MoveDone && m.Saved > m.Spent }

// Rows that are no namespace and no value of a label.
const (
	Idle     = "(idle)"
	Daemons  = "(daemons)"
	Starting = "(starting)"
	// Others are rows that were too many to be kept apart, None is for pods without a label.
	Others = "(others)"
	None   = "(none)"
)

// Share is what was paid for pods of one namespace in the NodePool Of, or for pods with one
// value of the label Of.
type Share struct {
	Of   string `json:"of"`
	Name string `json:"name"`
	Cost Cost   `json:"cost"`
}

// Folded are machines and moves of which only sums are kept, for want of room.
type Folded struct {
	NodePool string `json:"nodePool"`
	Machines int    `json:"machines"`
	Cost     Cost   `json:"cost"`
	Moves    int    `json:"moves"`
	// Paid is how many of the moves have paid; Spent and Saved are theirs in dollars.
	Paid      int     `json:"paid"`
	Evictions int     `json:"evictions"`
	Spent     float64 `json:"spent"`
	Saved     float64 `json:"saved"`
}
