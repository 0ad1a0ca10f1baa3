package model

import (
	"slices"
	"strconv"
)

// Pool is a NodePool that may buy machines: policy, limits and the shape of the
// nodes that it makes.
type Pool struct {
	Name string
	// Weight orders pools: a heavier pool that can take a pod takes it. Equal
	// weights compete by price.
	Weight int
	// Requirements are the template's requirements together with its labels as
	// In requirements; Labels alone repeats the fixed ones for display.
	Requirements Requirements
	Labels       map[string]string
	// Taints that pods must tolerate. StartupTaints vanish before pods run and do
	// not matter to planning; they are carried so that a plan can be applied.
	Taints        []Taint
	StartupTaints []Taint
	// Catalog indexes Problem.Catalogs.
	Catalog int
	// Limits and Usage: nil entries of Limits (see Limit) mean no limit. Usage counts nodes as
	// Nodes does.
	Limits []Limit
	Usage  Resources
	// NodeLimit is the most nodes that the pool may have, -1 for no limit; Nodes
	// is how many it has, in flight ones included. Nodes that a command removes count until
	// they are deleted, and their replacements for what they exceed them.
	NodeLimit int
	Nodes     int
	// Returnable and ReturnableNodes are what of Usage and Nodes belongs to nodes that may be
	// removed in the same plan (NodeUsage.Held). Limits have room for as much more once they are.
	Returnable      Resources
	ReturnableNodes int
	// CostLimit is the most that the pool's nodes may cost per hour together, nil without
	// a limit; Cost is what they cost, in flight and leaving ones included. What it points
	// at never changes.
	CostLimit *Money
	Cost      Money
	// Daemons are the DaemonSet pods that may run on this pool's nodes. The
	// planner decides for every instance type which of them do.
	Daemons []Daemon
}

// NamesNoZone reports whether the pool's requirements name [NoZone] among its zones. Its
// machines without a zone are then one more zone to spread pods over, as the scheduler
// counts them.
func (p *Pool) NamesNoZone() bool {
	return slices.ContainsFunc(p.Requirements, func(r Requirement) bool {
		return r.Key == LabelZone && r.Operator == In && slices.Contains(r.Values, NoZone)
	})
}

// LeftOut is a NodePool that buys nothing, and why.
type LeftOut struct {
	// Pool is the name of the NodePool.
	Pool   string
	Reason Reason
	// Message says what is wrong, without the name of the NodePool.
	Message string
	// Static says that nothing is wrong: the NodePool keeps a fixed number of nodes, and buys
	// for no pod.
	Static bool
	// Requirements and Taints are those of a [Pool].
	Requirements Requirements
	Taints       []Taint
	// Catalog indexes Problem.Catalogs; it is -1 where the catalogue could not be read.
	Catalog int
}

// Limit is a ceiling on the pool's total capacity along one axis.
type Limit struct {
	Axis  int
	Value int64
}

// Daemon is one DaemonSet's pod, as overhead on a new node.
type Daemon struct {
	Name         string
	Requests     Resources
	Requirements []Requirements // OR-ed alternatives; empty means anywhere
	Tolerations  []Toleration
	HostPorts    []HostPort
}

// TaintEffect is a Kubernetes taint effect.
type TaintEffect string

// The effects of taints.
const (
	NoSchedule       TaintEffect = "NoSchedule"
	PreferNoSchedule TaintEffect = "PreferNoSchedule"
	NoExecute        TaintEffect = "NoExecute"
)

// Taint repels pods that do not tolerate it.
type Taint struct {
	Key, Value string
	Effect     TaintEffect
}

// String prints the taint as kubectl does: "key=value:Effect".
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + string(t.Effect)
	}
	return t.Key + "=" + t.Value + ":" + string(t.Effect)
}

// Toleration lets a pod ignore matching taints. An empty Key with Exists
// tolerates everything; an empty Effect matches all effects.
type Toleration struct {
	Key    string
	Exists bool // operator Exists; otherwise Compare
	// Compare is how a taint's value must be to Value: Gt or Lt as whole numbers, or
	// empty for equal.
	Compare Operator
	Value   string
	Effect  TaintEffect
}

// Tolerates reports whether the toleration matches the taint, by the rules of
// Kubernetes.
func (t Toleration) Tolerates(taint Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Key != "" && t.Key != taint.Key {
		return false
	}
	if t.Exists {
		return true
	}
	if t.Key == "" {
		return false
	}
	if t.Compare == "" {
		return t.Value == taint.Value
	}
	want, errWant := strconv.ParseInt(t.Value, 10, 64)
	have, errHave := strconv.ParseInt(taint.Value, 10, 64)
	if errWant != nil || errHave != nil {
		return false
	}
	return t.Compare == Gt && have > want || t.Compare == Lt && have < want
}

// Untolerated returns the first taint that keeps a pod away, or nil. A
// PreferNoSchedule taint keeps no pod away here: it is a preference, which the
// planner weighs itself.
func Untolerated(taints []Taint, tolerations []Toleration) *Taint {
next:
	for i := range taints {
		if taints[i].Effect == PreferNoSchedule {
			continue
		}
		for _, t := range tolerations {
			if t.Tolerates(taints[i]) {
				continue next
			}
		}
		return &taints[i]
	}
	return nil
}

// HostPort is a port that a pod takes on its node. An empty IP or 0.0.0.0
// clashes with every IP.
type HostPort struct {
	IP       string
	Port     int32
	Protocol string
}

// Conflicts reports whether two pods with these ports cannot share a node.
func (p HostPort) Conflicts(o HostPort) bool {
	if p.Port != o.Port || p.Protocol != o.Protocol {
		return false
	}
	wild := func(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }
	return wild(p.IP) || wild(o.IP) || p.IP == o.IP
}
