package model

// NodeState says how far a node has come.
type NodeState string

// The states of a node, from bought to leaving.
const (
	// NodeLaunching is capacity on its way: a claim without a registered node.
	NodeLaunching NodeState = "Launching"
	// NodeRegistered has joined but is not initialized.
	NodeRegistered NodeState = "Registered"
	// NodeReady may take pods.
	NodeReady NodeState = "Ready"
	// NodeLeaving is being drained or deleted: it takes no pods, and its pods are
	// among the problem's classes.
	NodeLeaving NodeState = "Leaving"
)

// Node is a machine that exists or is on its way, as a place for pods.
type Node struct {
	// Name of the Node, or of the NodeClaim while there is no Node.
	Name  string
	Claim string
	Pool  string
	State NodeState
	// Labels that the node has or will have; for a claim on its way, those that
	// all its possible offerings share.
	Labels map[string]string
	// Taints without those that vanish before pods run.
	Taints      []Taint
	Allocatable Resources
	// Used is what its pods and the daemons still to come take, HostPorts are those of these.
	Used      Resources
	HostPorts []HostPort
	// Vacating is how many of its pods are not in Used, since they are about to be gone.
	Vacating int
	// VolumeSlots is how many more disks it can attach, per driver; a driver that
	// is absent is not limited. Attached are the disks that it has.
	VolumeSlots map[string]int
	Attached    []Volume
	// Bound counts its pods by shape (Problem.Shapes).
	Bound []BoundPods
	// Price is what it costs per hour, zero for machines that nap does not pay
	// for.
	Price Money
}

// Free is what is left for pods.
func (n *Node) Free() Resources { return n.Allocatable.Sub(n.Used) }

// BoundPods is a number of running pods of one shape.
type BoundPods struct {
	Shape int
	Count int
}
