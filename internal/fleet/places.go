package fleet

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// machine is a node and its claim, or either of them alone.
type machine struct {
	node     *Node
	claim    *Claim
	name     string
	pool     string
	state    model.NodeState
	labels   map[string]string
	taints   []model.Taint
	capacity Amounts
	room     Amounts
	price    model.Money
	slots    map[string]int
	// vague machines are not launched: labels that are not yet known may still
	// get any value.
	vague bool
	pods  []*Pod
}

// joinMachines brings nodes and claims together, by provider ID or node name,
// and derives what planning sees of each. Azure's identifiers mean the same in
// any case, and its components do not agree on one.
func (a *assembly) joinMachines() {
	byProvider := map[string]*Node{}
	for _, n := range a.nodes {
		if n.ProviderID != "" {
			byProvider[strings.ToLower(n.ProviderID)] = n
		}
	}
	taken := map[string]bool{}
	a.byNode = make(map[string]*machine, len(a.nodes))
	add := func(m *machine) {
		a.describe(m)
		a.machines = append(a.machines, m)
		if m.node != nil {
			a.byNode[m.node.Name] = m
		}
	}
	for _, c := range a.allClaims() {
		m := &machine{claim: c, node: byProvider[strings.ToLower(c.ProviderID)]}
		if m.node == nil && c.NodeName != "" {
			m.node = a.nodes[c.NodeName]
		}
		if m.node != nil {
			if taken[m.node.Name] {
				continue
			}
			taken[m.node.Name] = true
		}
		add(m)
	}
	for _, n := range a.nodes {
		if !taken[n.Name] {
			add(&machine{node: n})
		}
	}
	slices.SortFunc(a.machines, func(x, y *machine) int { return cmp.Compare(x.name, y.name) })
}

func (a *assembly) allClaims() []*Claim {
	claims := slices.AppendSeq(slices.Collect(maps.Values(a.claims)), maps.Values(a.expected))
	slices.SortFunc(claims, func(x, y *Claim) int { return cmp.Compare(x.Name, y.Name) })
	return claims
}

func (a *assembly) describe(m *machine) {
	switch {
	case m.claim == nil:
		m.describeUnmanaged()
	case m.node == nil || !m.node.Registered:
		m.describeArriving()
	default:
		m.describeRegistered()
	}
	if m.claim != nil && m.claim.Leaving || m.node != nil && (m.node.Disrupted && !a.own[m.node.Name] || m.node.Deleting) {
		m.state = model.NodeLeaving
	}
	a.consultCatalog(m)
	if m.labels[model.LabelHostname] == "" {
		m.labels = maps.Clone(m.labels)
		if m.labels == nil {
			m.labels = map[string]string{}
		}
		m.labels[model.LabelHostname] = m.name
	}
	if a.resolver.pinsToNames && m.node != nil {
		m.labels = maps.Clone(m.labels)
		m.labels[NodeNameField] = m.node.Name
	}
	if m.node == nil {
		return
	}
	if d := a.drivers[m.node.Name]; d != nil {
		m.slots = d.Limits
	}
}

// NodeNameField is the key under which a pod's node affinity on the field
// metadata.name becomes a requirement. Nodes carry it as a label only where some
// pod asks for it, new nodes never.
const NodeNameField = "metadata.name"

func (m *machine) describeUnmanaged() {
	n := m.node
	m.name, m.pool, m.state = n.Name, n.Labels[model.LabelNodePool], model.NodeReady
	m.labels, m.taints = n.Labels, n.Taints
	m.capacity, m.room = n.Capacity, n.Allocatable
}

// describeArriving is a machine that is bought and has not joined, or has joined
// but does not carry its labels and taints yet.
func (m *machine) describeArriving() {
	c := m.claim
	m.name, m.pool, m.state = c.Name, c.Pool, model.NodeLaunching
	m.labels, m.taints = c.Labels, m.settled(c.Taints)
	m.capacity, m.room = c.Capacity, c.Allocatable
	if m.node != nil {
		m.capacity, m.room = m.node.Capacity.fill(c.Capacity), m.node.Allocatable.fill(c.Allocatable)
	}
	m.vague = m.room.IsZero()
}

func (m *machine) describeRegistered() {
	n, c := m.node, m.claim
	m.name, m.pool, m.labels = n.Name, cmp.Or(c.Pool, n.Labels[model.LabelNodePool]), n.Labels
	if n.Initialized {
		m.state, m.taints = model.NodeReady, n.Taints
		m.capacity, m.room = n.Capacity, n.Allocatable
		return
	}
	m.state, m.taints = model.NodeRegistered, m.settled(n.Taints)
	m.capacity, m.room = n.Capacity.fill(c.Capacity), n.Allocatable.fill(c.Allocatable)
}

// settled are the taints that remain once the node is initialized.
func (m *machine) settled(taints []model.Taint) []model.Taint {
	var left []model.Taint
	for _, t := range taints {
		startup := slices.ContainsFunc(m.claim.StartupTaints, func(s model.Taint) bool { return s.Key == t.Key && s.Effect == t.Effect })
		if !startup && !passing(t) {
			left = append(left, t)
		}
	}
	return left
}

// passing are the taints that every node of a cluster has while it starts.
func passing(t model.Taint) bool {
	const readinessGates = "readiness.k8s.io/"
	switch t.Key {
	case "node.kubernetes.io/not-ready", "node.cloudprovider.kubernetes.io/uninitialized", "karpenter.sh/unregistered":
		return true
	case "node.kubernetes.io/unreachable":
		return t.Effect == model.NoSchedule
	}
	return len(t.Key) > len(readinessGates) && t.Key[:len(readinessGates)] == readinessGates
}

// consultCatalog adds what only the pool's catalogue knows: the price, and for
// a machine that is not launched yet everything that its possible offerings have
// in common.
func (a *assembly) consultCatalog(m *machine) {
	catalog := a.catalogs[m.pool]
	if catalog == nil {
		return
	}
	if m.vague {
		a.foresee(m, catalog)
		return
	}
	t := a.instanceType(catalog, m.labels[model.LabelInstanceType])
	if t == nil {
		return
	}
	m.slots = t.VolumeSlots
	for i := range t.Offerings {
		o := &t.Offerings[i]
		if o.Zone == m.labels[model.LabelZone] && string(o.CapacityType) == m.labels[model.LabelCapacityType] {
			m.price = o.Price
			return
		}
	}
}

func (a *assembly) instanceType(c *Catalog, name string) *model.InstanceType {
	index := a.types[c]
	if index == nil {
		index = make(map[string]*model.InstanceType, len(c.InstanceTypes))
		for i := range c.InstanceTypes {
			index[c.InstanceTypes[i].Name] = &c.InstanceTypes[i]
		}
		a.types[c] = index
	}
	return index[name]
}

func (a *assembly) addNodes(p *model.Problem) {
	daemons := a.sortedDaemons()
	requests := a.daemonRequests()
	for _, m := range a.machines {
		n := model.Node{
			Name:        m.name,
			Pool:        m.pool,
			State:       m.state,
			Labels:      m.labels,
			Taints:      m.taints,
			Allocatable: m.room.Vector(a.axes),
			Used:        make(model.Resources, len(a.axes)),
			Price:       m.price,
		}
		if m.claim != nil {
			n.Claim = m.claim.Name
		}
		present := map[objectKey]bool{}
		for _, pod := range m.pods {
			pod.Spec.Requests.addTo(n.Used, a.axes)
			n.HostPorts = append(n.HostPorts, pod.Spec.HostPorts...)
			n.Attached = append(n.Attached, a.attached(pod)...)
			if pod.Daemon {
				present[objectKey{pod.Ref.Namespace, pod.Owner.Name}] = true
			}
		}
		if m.state != model.NodeLeaving {
			for _, d := range daemons {
				key := objectKey{d.Namespace, d.Name}
				if !present[key] && m.runs(d.Spec) {
					requests[key].addTo(n.Used, a.axes)
					n.HostPorts = append(n.HostPorts, d.Spec.HostPorts...)
				}
			}
		}
		n.Attached = distinctVolumes(n.Attached)
		n.VolumeSlots = freeSlots(m.slots, n.Attached)
		n.Bound = a.resolver.bound(m)
		p.Nodes = append(p.Nodes, n)
	}
}

// daemonRequests are what a pod of each DaemonSet takes, on nodes that exist and on
// those that will be bought: what the newest pod asks for, since admission (a
// LimitRange, a webhook, the VerticalPodAutoscaler) may have changed the template, and
// the template's requests where there is no pod yet. A pod that still waits for its
// node counts: it may be the only one that shows what admission makes of the template.
func (s *Snapshot) daemonRequests() map[objectKey]*Amounts {
	newest := map[objectKey]*Pod{}
	for _, p := range s.pods {
		key := objectKey{p.Ref.Namespace, p.Owner.Name}
		if p.Daemon && !p.Terminal && s.daemons[key] != nil && newerPod(p, newest[key]) {
			newest[key] = p
		}
	}
	requests := make(map[objectKey]*Amounts, len(s.daemons))
	for key, d := range s.daemons {
		requests[key] = &d.Spec.Requests
		if p := newest[key]; p != nil {
			requests[key] = &p.Spec.Requests
		}
	}
	return requests
}

// newerPod reports whether a pod was created after another, which may be nil. Of pods
// of one second the name decides, so that a snapshot always says the same.
func newerPod(p, than *Pod) bool {
	return than == nil || cmp.Or(p.Created.Compare(than.Created), cmp.Compare(p.Ref.Name, than.Ref.Name)) > 0
}

// runs reports whether a DaemonSet puts a pod on the machine.
func (m *machine) runs(s *PodSpec) bool {
	if model.Untolerated(m.taints, s.Tolerations) != nil {
		return false
	}
	if !m.satisfies(s.NodeRequirements) {
		return false
	}
	return len(s.NodeAlternatives) == 0 || slices.ContainsFunc(s.NodeAlternatives, m.satisfies)
}

func (m *machine) satisfies(rs model.Requirements) bool {
	for _, r := range rs {
		value, known := m.labels[r.Key]
		if !known && m.vague {
			continue
		}
		if !r.Matches(value, known) {
			return false
		}
	}
	return true
}

func freeSlots(limits map[string]int, attached []model.Volume) map[string]int {
	if len(limits) == 0 {
		return nil
	}
	free := maps.Clone(limits)
	for _, v := range attached {
		if n, limited := free[v.Driver]; limited {
			free[v.Driver] = max(0, n-1)
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
