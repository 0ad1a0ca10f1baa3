package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// NodeView is a node as people see it: a Node, its NodeClaim, or a NodeClaim that is no
// node yet.
type NodeView struct {
	// Name is that of the Node, or of the NodeClaim until it is registered. Claim is empty
	// for nodes that nap did not buy, Pool for those of no NodePool.
	Name, Claim, Pool string
	State             model.NodeState
	// Labels are those that it has, or will have.
	Labels map[string]string
	// Allocatable is what its pods may use, Requested what those which run there ask for,
	// Pods how many those are, Daemons included.
	Allocatable, Requested Amounts
	Pods                   int
	// Price is per hour, zero where it is not known: that of its offering now, or what the machine
	// cost when it was bought where the catalogue does not have the offering. DiskPrice and
	// NodePrice are parts of it, as in model.Offering.
	Price, DiskPrice, NodePrice model.Money
	// Counted is what it counts for in its NodePool's limit in dollars per hour.
	Counted model.Money

	Created time.Time
	// Drift is why it is not what would be bought now, DoNotDisrupt that it must not be
	// disrupted.
	Drift        string
	DoNotDisrupt bool
	// NotReady says that a node which has started is not ready, or not reached; Cordoned that the
	// scheduler puts no pods on it.
	NotReady, Cordoned bool
}

// CapacityType is on-demand, spot or reserved, or empty for nodes that do not say.
func (v *NodeView) CapacityType() string { return v.Labels[model.LabelCapacityType] }

// Status is the state as kubectl says it: of a node that has started whether it is ready, and of
// each whether it is cordoned.
func (v *NodeView) Status() string {
	status := string(v.State)
	if v.State == model.NodeReady && v.NotReady {
		status = "NotReady"
	}
	if v.Cordoned {
		status += ",SchedulingDisabled"
	}
	return status
}

// Views are all nodes and the NodeClaims that are no nodes yet, by name. It fails only when
// ctx ends.
func (s *Snapshot) Views(ctx context.Context, source Catalogs) ([]NodeView, error) {
	catalogs, err := readCatalogs(ctx, s.Pools(), source, nil)
	if err != nil {
		return nil, err
	}
	nodes := joinNodes(s, &nodeDescriber{catalogs: catalogs, drivers: s.attaching.drivers, withoutClaims: s.withoutClaims()})
	type load struct {
		requests Amounts
		pods     int
	}
	loads := map[string]*load{}
	for _, p := range s.pods {
		if !p.Bound() {
			continue
		}
		l := loads[p.Node]
		if l == nil {
			l = &load{}
			loads[p.Node] = l
		}
		l.pods++
		l.requests.CPU += p.Spec.Requests.CPU
		l.requests.Memory += p.Spec.Requests.Memory
	}
	out := make([]NodeView, 0, len(nodes.list))
	for _, n := range nodes.list {
		cost := n.shown()
		v := NodeView{
			Name: n.name, Pool: n.pool, State: n.state, Labels: n.labels, Allocatable: n.allocatable, Price: cost.price,
			DiskPrice: cost.diskPrice, NodePrice: cost.nodePrice,
		}
		v.Counted, _ = n.counted()
		if n.claim != nil {
			v.Claim, v.Created, v.Drift = n.claim.Name, n.claim.Created, n.claim.Drift
		}
		if n.node != nil {
			v.DoNotDisrupt, v.NotReady, v.Cordoned = n.node.DoNotDisrupt, n.node.notReady(), n.node.cordoned()
			if v.Created.IsZero() {
				v.Created = n.node.Created
			}
			if l := loads[n.node.Name]; l != nil {
				v.Requested, v.Pods = l.requests, l.pods
			}
		}
		out = append(out, v)
	}
	return out, nil
}

// notReady reports whether the node says that it is not ready, or has the taint of one that is
// not, or that the cluster does not reach. Nodes in files often have no conditions.
func (n *Node) notReady() bool {
	return n.Unready || slices.ContainsFunc(n.Taints, func(t model.Taint) bool {
		return t.Key == "node.kubernetes.io/not-ready" || t.Key == "node.kubernetes.io/unreachable"
	})
}

// cordoned reports whether the scheduler puts no pods on the node.
func (n *Node) cordoned() bool {
	return slices.ContainsFunc(n.Taints, func(t model.Taint) bool { return t.Key == "node.kubernetes.io/unschedulable" })
}
