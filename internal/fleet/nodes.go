package fleet

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// stateNode is a Node and its NodeClaim, or either of them alone, as planning sees
// them.
type stateNode struct {
	// node is nil until the Node exists, claim for a node that nap did not buy.
	// One of them is there.
	node  *Node
	claim *Claim
	// name is that of the Node once it is registered, until then the claim's.
	name string
	// pool is the name of the NodePool, empty for a node of none.
	pool  string
	state model.NodeState
	// labels and taints are those that the node has, or will have once it is
	// initialized.
	labels map[string]string
	taints []model.Taint
	// capacity and allocatable are what the node has and what pods may use of it.
	// Both are zero while nothing is known of them.
	capacity, allocatable Amounts
	// cost is what the node costs by its catalogue.
	cost nodeCost
	// slots is how many volumes of each CSI driver the node can attach. A driver
	// without an entry is not limited.
	slots map[string]int
	// gpus are the different ones of the instance types that the node has or may have, as
	// far as its catalogue knows of them; nil where it may have none.
	gpus []*model.GPU
	// unlaunched nodes have no instance yet: a label that is not known may still
	// get any value.
	unlaunched bool
	// pods take room on the node, or will: those that run there and those that are
	// nominated for it. They are sorted by namespace and name once
	// pendingPods.sort has run.
	pods []*Pod
}

// boughtAs is the value of a label by which the offering of a node is found. Where the node has
// lost the label, since a user has removed it, it is that of the NodeClaim, or the only one that
// the NodeClaim's requirements leave.
func (n *stateNode) boughtAs(key string) string {
	if value := n.labels[key]; value != "" || n.claim == nil {
		return value
	}
	if value := n.claim.Labels[key]; value != "" {
		return value
	}
	for _, r := range n.claim.Requirements {
		if r.Key == key && r.Operator == model.In && len(r.Values) == 1 {
			return r.Values[0]
		}
	}
	return ""
}

// nodeCost is what a node costs by its catalogue.
type nodeCost struct {
	// price is per hour, zero where the catalogue has no such offering; priced says that it
	// has one.
	price  model.Money
	priced bool
	// diskPrice and nodePrice are parts of price, as in model.Offering.
	diskPrice, nodePrice model.Money
}

// nodeDescriber derives what planning sees of a node from its objects and its
// NodePool's catalogue.
type nodeDescriber struct {
	catalogs *poolCatalogs
	// drivers are the volume limits that nodes report, by the node's name.
	drivers map[string]*DriverLimits
	// own are nodes, by name, with a taint of disruption that does not count.
	own map[string]bool
	// showNames gives nodes their name as the label NodeNameField.
	showNames bool
	// features are those of kubelets for whose absence nodes get a label.
	features []string
	// byDriver are as in model.Problem.
	byDriver []string
	// withoutClaims are the NodePools by name where there is no NodeClaim at all, as in a file
	// without them; nil otherwise.
	withoutClaims map[string]*Pool
}

// describe fills in the fields of a node that has its objects and nothing else.
func (d *nodeDescriber) describe(n *stateNode) {
	switch {
	case n.claim == nil:
		n.describeUnmanaged()
		if pool := d.withoutClaims[n.pool]; pool != nil && !n.node.Initialized {
			n.describeStarting(pool.StartupTaints)
		}
	case n.node == nil || !n.node.Registered:
		n.describeUnregistered()
	default:
		n.describeRegistered()
		n.countByDriver(d.byDriver)
	}
	if n.claim != nil && n.claim.Leaving || n.node != nil && (n.node.Disrupted && !d.own[n.node.Name] || n.node.Deleting) {
		n.state = model.NodeLeaving
	}
	d.catalogs.complete(n)
	if n.labels[model.LabelHostname] == "" {
		n.labels = maps.Clone(n.labels)
		if n.labels == nil {
			n.labels = map[string]string{}
		}
		n.labels[model.LabelHostname] = n.name
	}
	if d.showNames && n.node != nil {
		n.labels = maps.Clone(n.labels)
		n.labels[NodeNameField] = n.node.Name
	}
	n.markFeatures(d.features)
	if n.node == nil {
		return
	}
	if limits := d.drivers[n.node.Name]; limits != nil {
		n.slots = limits.over(n.slots)
	}
}

// over are the limits of a node whose size has such limits: a driver that the node does not
// list yet, since it starts, will have that of the size.
func (l *DriverLimits) over(size map[string]int) map[string]int {
	if len(size) == 0 {
		return l.Limits
	}
	out := maps.Clone(size)
	maps.Copy(out, l.Limits)
	for _, driver := range l.Unlimited {
		delete(out, driver)
	}
	return out
}

// NodeNameField is the key under which a pod's node affinity on the field
// metadata.name becomes a requirement. Nodes carry it as a label only where some
// pod asks for it, new nodes never.
const NodeNameField = "metadata.name"

// podsNameNodes reports whether some pod, or a resource claim, asks for a node by its name.
func podsNameNodes(s *Snapshot) bool {
	if len(s.nodes) == 0 {
		return false
	}
	names := func(r model.Requirement) bool { return r.Key == NodeNameField }
	for _, c := range s.devices.claims {
		if c.Allocation != nil && slices.ContainsFunc(c.Allocation.Where, names) {
			return true
		}
	}
	for _, p := range s.pods {
		if !p.Daemon && !p.Terminal && p.Spec.namesNode() {
			return true
		}
	}
	return false
}

func (s *PodSpec) namesNode() bool {
	return slices.ContainsFunc(s.NodeAlternatives, func(rs model.Requirements) bool {
		return slices.ContainsFunc(rs, func(r model.Requirement) bool { return r.Key == NodeNameField })
	})
}

func (n *stateNode) describeUnmanaged() {
	node := n.node
	n.name, n.pool, n.state = node.Name, node.Labels[model.LabelNodePool], model.NodeReady
	n.labels, n.taints = node.Labels, node.Taints
	n.capacity, n.allocatable = node.Capacity, node.Allocatable
}

// describeStarting is for a node of a NodePool whose NodeClaim is not known, without the label
// of initialized nodes. It starts where it says that it is not ready, or has a taint of the
// start. Nodes in files often say neither, and run pods.
func (n *stateNode) describeStarting(startups []model.Taint) {
	if left := settled(n.taints, startups); n.node.Unready || len(left) < len(n.taints) {
		n.state, n.taints = model.NodeRegistered, left
	}
}

// describeUnregistered is for a node that is bought and has not joined, or has
// joined but does not carry its labels and taints yet.
func (n *stateNode) describeUnregistered() {
	c := n.claim
	n.name, n.pool, n.state = c.Name, c.Pool, model.NodeLaunching
	n.labels, n.taints = c.Labels, settled(c.Taints, c.StartupTaints)
	n.capacity, n.allocatable = c.Capacity, c.Allocatable
	if n.node != nil {
		n.capacity, n.allocatable = n.node.Capacity.fill(c.Capacity), n.node.Allocatable.fill(c.Allocatable)
	}
	n.unlaunched = n.allocatable.IsZero()
}

func (n *stateNode) describeRegistered() {
	node, c := n.node, n.claim
	n.name, n.pool, n.labels = node.Name, cmp.Or(c.Pool, node.Labels[model.LabelNodePool]), node.Labels
	if node.Initialized && !c.Rebooting {
		n.state, n.taints = model.NodeReady, node.Taints
		n.capacity, n.allocatable = node.Capacity, node.Allocatable
		return
	}
	// A node that reboots comes back as it was, and what it drains may wait for it.
	n.state, n.taints = model.NodeRegistered, settled(node.Taints, c.StartupTaints)
	n.capacity, n.allocatable = node.Capacity.fill(c.Capacity), node.Allocatable.fill(c.Allocatable)
}

// countByDriver counts of resources that drivers may bring what the size has of them where
// the node reports none.
func (n *stateNode) countByDriver(resources []string) {
	for _, name := range resources {
		if n.allocatable.Get(name) == 0 {
			n.capacity, n.allocatable = n.capacity.with(name, n.claim.Capacity.Get(name)), n.allocatable.with(name, n.claim.Allocatable.Get(name))
		}
	}
}

// settled are the taints that remain once a node with such startup taints is initialized.
func settled(taints, startups []model.Taint) []model.Taint {
	var left []model.Taint
	for _, t := range taints {
		startup := slices.ContainsFunc(startups, func(s model.Taint) bool { return s.Key == t.Key && s.Effect == t.Effect })
		if !startup && !temporary(t) {
			left = append(left, t)
		}
	}
	return left
}

// temporary reports whether every node of a cluster has the taint while it starts or reboots.
func temporary(t model.Taint) bool {
	const readinessGates = "readiness.k8s.io/"
	switch t.Key {
	case "node.kubernetes.io/not-ready", "node.cloudprovider.kubernetes.io/uninitialized", "karpenter.sh/unregistered",
		"karpenter.sh/rebooting":
		return true
	case "node.kubernetes.io/unreachable":
		return t.Effect == model.NoSchedule
	}
	return len(t.Key) > len(readinessGates) && t.Key[:len(readinessGates)] == readinessGates
}

// runsPod reports whether a pod runs on the node, and is not only expected there.
func (n *stateNode) runsPod(p *Pod) bool { return n.node != nil && p.Node == n.node.Name }

// runs reports whether a DaemonSet puts a pod on the node.
func (n *stateNode) runs(s *PodSpec) bool {
	if model.Untolerated(n.taints, s.Tolerations) != nil {
		return false
	}
	if !n.satisfies(s.NodeRequirements) {
		return false
	}
	return len(s.NodeAlternatives) == 0 || slices.ContainsFunc(s.NodeAlternatives, n.satisfies)
}

func (n *stateNode) satisfies(rs model.Requirements) bool {
	for _, r := range rs {
		value, known := n.labels[r.Key]
		if !known && n.unlaunched {
			continue
		}
		if !r.Matches(value, known) {
			return false
		}
	}
	return true
}

// freeSlots is how many more volumes of each driver a node can attach, nil without
// limits.
func freeSlots(limits map[string]int, attached []model.Volume) map[string]int {
	if len(limits) == 0 {
		return nil
	}
	free := maps.Clone(limits)
	for _, v := range attached {
		if slots, limited := free[v.Driver]; limited {
			free[v.Driver] = max(0, slots-1)
		}
	}
	return free
}

func distinctVolumes(volumes []model.Volume) []model.Volume {
	if len(volumes) < 2 {
		return volumes
	}
	slices.SortFunc(volumes, func(a, b model.Volume) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.ID, b.ID))
	})
	return slices.Compact(volumes)
}

// created is when the NodeClaim was made, or else the Node; zero where neither says.
func (n *stateNode) created() time.Time {
	if n.claim != nil && !n.claim.Created.IsZero() || n.node == nil {
		return n.claim.Created
	}
	return n.node.Created
}
