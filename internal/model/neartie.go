package model

// Plans whose costs nearly tie are told apart by the number of their machines: each is a
// boot, a kubelet, a set of DaemonSets and an address. See docs/planner.md, section
// "Fewer machines".
const (
	// NearTie is the most that a plan costs more for fewer machines, as a share of what
	// it costs with more.
	NearTie = 0.005
	// NearBound is the most that a plan that pays for fewer machines costs above its
	// bound, as a share of that.
	NearBound = 0.01
	// NearBoundSpread is NearBound where a required rule of topology binds a pod: bounds
	// leave these rules out.
	NearBoundSpread = 0.02
	// LeastSplit is the least saving for which consolidation replaces machines by more
	// machines, as a share of their price. No machine that stands for several is dearer
	// than these by more, so that consolidation does not take it apart again.
	LeastSplit = 0.05
)

// FewerMachines is what a plan has paid for fewer machines than the cheapest plan that
// was found.
type FewerMachines struct {
	// Machines is how many machines the plan does without.
	Machines int
	// Paid is how much more the plan costs per hour; zero where it costs no more.
	Paid Money
}

// StatesNodeCost reports whether a catalogue says of any offering what a node costs
// beside its machine. Where it does not, more machines cost more than the plan knows.
func (c *Catalog) StatesNodeCost() bool {
	for i := range c.InstanceTypes {
		for j := range c.InstanceTypes[i].Offerings {
			if o := &c.InstanceTypes[i].Offerings[j]; o.DiskPrice > 0 || o.NodePrice > 0 {
				return true
			}
		}
	}
	return false
}
