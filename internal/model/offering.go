package model

// CapacityType says how a machine is paid for.
type CapacityType string

// The capacity types of karpenter.sh/capacity-type.
const (
	OnDemand CapacityType = "on-demand"
	Spot     CapacityType = "spot"
	Reserved CapacityType = "reserved"
)

// Well-known label keys that the planner itself must understand. All other
// labels are opaque to it.
const (
	LabelInstanceType = "node.kubernetes.io/instance-type"
	LabelZone         = "topology.kubernetes.io/zone"
	LabelCapacityType = "karpenter.sh/capacity-type"
	LabelNodePool     = "karpenter.sh/nodepool"
	LabelHostname     = "kubernetes.io/hostname"
)

// NoZone is the zone of machines which are in none, as their label has it.
const NoZone = "0"

// ZoneName is a zone as sentences have it: a machine in none is regional, as the label
// karpenter.azure.com/placement-scope says.
func ZoneName(zone string) string {
	if zone == NoZone {
		return "regional"
	}
	return zone
}

// Catalog is what one kind of node class can buy: instance types with the
// capacity that a node of that class would have.
type Catalog struct {
	InstanceTypes []InstanceType
	// LabelKeys are the labels that only the cloud decides: where a type lacks
	// one, its nodes lack it too, whatever a NodePool requires. Keys that any
	// type carries count as such without being listed.
	LabelKeys []string
}

// InstanceType is one VM size as a node: its labels, what it holds, and the
// offerings under which it can be bought.
type InstanceType struct {
	Name string
	// Labels are those that every node of this type carries, whatever its
	// offering.
	Labels map[string]string
	// Choices are labels whose value the buyer picks per node, such as
	// karpenter.azure.com/sku-storage-ultra-ssd In [true false].
	Choices map[string][]string
	// Capacity is the machine's size; Overhead is what the system keeps, so that
	// pods may use Capacity-Overhead.
	Capacity Resources
	Overhead Resources
	// VolumeSlots are the data disks that a node of this type can attach, per
	// CSI driver. A driver that is absent is not limited.
	VolumeSlots map[string]int
	// CapacityOverlaid says that a NodeOverlay added to Capacity.
	CapacityOverlaid bool
	// GPU is what is known of its GPUs; nil for types without GPUs, and for those of
	// which not enough is known. The planner does not look at it.
	GPU       *GPU
	Offerings []Offering
}

// Allocatable is what pods and daemons may use on a node of this type.
func (t *InstanceType) Allocatable() Resources { return t.Capacity.Sub(t.Overhead) }

// Offering is one way to buy an instance type.
type Offering struct {
	Zone         string
	CapacityType CapacityType
	// Labels are those that only this offering adds or changes: zone, capacity
	// type, placement scope, priority.
	Labels map[string]string
	// Price is what the node costs per hour, all that is known of included: the
	// machine, DiskPrice and NodePrice.
	Price Money
	// Unpriced says that the machine's price is not known: Price, or Uncovered, is so high that
	// it is the last choice, and says nothing about machines that exist.
	Unpriced bool
	// Uncovered is Price for machines beyond what is paid in advance, of which the next
	// one is; zero where it is not. Quotas say how many are.
	Uncovered Money
	// DiskPrice is the part of Price for the managed operating system disk: zero
	// where the disk is local (ephemeral) or the catalogue does not say.
	DiskPrice Money
	// NodePrice is the part of Price that the user adds to every node, such as the
	// licence of an agent.
	NodePrice Money
	// PriceOverlaid says that a NodeOverlay decides the machine's part of Price.
	PriceOverlaid bool
	// Available is false while the cloud is known not to sell it: quota used up,
	// capacity gone. Unavailable explains it in one sentence.
	Available   bool
	Unavailable string
	// NoQuota says that it is not available since a quota leaves no room for one machine.
	NoQuota bool
	// Reservation names a capacity reservation; Remaining is how many machines
	// it still holds. Both are zero for other capacity types.
	Reservation string
	Remaining   int
	// Quotas are the quota lines that a purchase draws on, see [Quota].
	Quotas []QuotaUse
}

// MachinePrice is the part of Price for the machine itself.
func (o *Offering) MachinePrice() Money { return o.Price - o.DiskPrice - o.NodePrice }

// PriceWithDisk is Price for a machine whose disk costs something else than DiskPrice; nil is
// a disk of which that is not known.
func (o *Offering) PriceWithDisk(disk *Money) Money {
	if disk == nil {
		return o.Price
	}
	return o.Price - o.DiskPrice + *disk
}

// QuotaUse is what one machine takes from a quota line.
type QuotaUse struct {
	Quota  string
	Amount int64
}

// Quota is a subscription limit that several offerings share: the vCPUs of a
// family, of the region, of spot. Left is what remains after everything that
// exists or is on its way.
type Quota struct {
	Name string
	Left int64
}
