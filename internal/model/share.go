package model

import "fmt"

// NodeShare caps what one node may hold of a workload and of the fleet, so that the loss of
// a node is the loss of a share. The caps bind the planner, and not the scheduler.
type NodeShare struct {
	// Workload is the most of a workload's replicas on one node, as a share of them, but
	// at least one replica. Fleet is the most of the CPU that all pods of the cluster ask
	// for, as a share of it, but at least enough for the largest pod. Zero is no cap.
	Workload, Fleet float64
}

// Check reports the first cap that cannot be, naming its flag, the value and what is
// allowed.
func (s NodeShare) Check() error {
	for _, n := range []struct {
		flag  string
		value float64
	}{{"--workload-share-per-node", s.Workload}, {"--fleet-share-per-node", s.Fleet}} {
		if !(n.value >= 0 && n.value <= 1) {
			return fmt.Errorf("%s %g: allowed are 0 (no cap) to 1", n.flag, n.value)
		}
	}
	return nil
}

// ShareGivenUp names the cap of a workload in [Plan.Relaxed], where a pod has found no
// place under it.
const ShareGivenUp = "share of the workload on one node"

// LabelWorkload is the label by which caps of workloads count pods. No object has it: it
// stands for the labels that all pods of a workload have, and exists in problems only.
const LabelWorkload = "nap/workload"

// Shares are the caps of the class that are preferences.
func (c *PodClass) Shares() []SpreadConstraint {
	var out []SpreadConstraint
	for i := range c.Spread {
		if c.Spread[i].Share && !c.Spread[i].Hard {
			out = append(out, c.Spread[i])
		}
	}
	return out
}
