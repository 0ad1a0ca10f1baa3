package fleet

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// daemonSets are the DaemonSets of a snapshot and what a pod of each requests.
type daemonSets struct {
	// list is sorted by namespace and name.
	list []*Daemon
	// requests has one entry per DaemonSet. It holds for nodes that exist and for
	// those that will be bought.
	requests map[objectKey]*Amounts
}

// newDaemonSets takes as requests what the newest pod of a DaemonSet asks for,
// since admission (a LimitRange, a webhook, the VerticalPodAutoscaler) may have
// changed the template, and the template's requests where there is no pod yet. A
// pod that still waits for its node counts: it may be the only one that shows what
// admission makes of the template.
func newDaemonSets(s *Snapshot) *daemonSets {
	newest := map[objectKey]*Pod{}
	for _, p := range s.pods {
		key := objectKey{p.Ref.Namespace, p.Owner.Name}
		if p.Daemon && !p.Terminal && s.daemons[key] != nil && newerPod(p, newest[key]) {
			newest[key] = p
		}
	}
	requests := make(map[objectKey]*Amounts, len(s.daemons))
	daemons := maps.Clone(s.daemons)
	if s.devices.ofGPU == nil { // as in Karpenter, which then ignores them
		maps.DeleteFunc(daemons, func(_ objectKey, d *Daemon) bool { return len(d.Spec.DeviceClaims) > 0 })
	}
	for key, d := range daemons {
		requests[key] = &d.Spec.Requests
		if p := newest[key]; p != nil {
			requests[key] = &p.Spec.Requests
		}
	}
	list := slices.SortedFunc(maps.Values(daemons), func(x, y *Daemon) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return &daemonSets{list: list, requests: requests}
}

// newerPod reports whether a pod was created after another, which may be nil. Of pods
// of one second the name decides, so that a snapshot always says the same.
func newerPod(p, than *Pod) bool {
	return than == nil || cmp.Or(p.Created.Compare(than.Created), cmp.Compare(p.Ref.Name, than.Ref.Name)) > 0
}

// onNewNodes are the DaemonSets as a problem's NodePools list them, the same for
// every NodePool.
func (d *daemonSets) onNewNodes(axes model.Axes) []model.Daemon {
	var out []model.Daemon
	for _, set := range d.list {
		out = append(out, model.Daemon{
			Name:         set.Namespace + "/" + set.Name,
			Requests:     d.requests[set.key()].Vector(axes),
			Requirements: set.Spec.nodeRules(),
			Tolerations:  set.Spec.Tolerations,
			HostPorts:    set.Spec.HostPorts,
		})
	}
	return out
}

// addMissing adds to the problem's node what the missing DaemonSets will use.
func (d *daemonSets) addMissing(n *stateNode, to *model.Node, axes model.Axes) {
	for _, set := range d.missing(n) {
		d.requests[set.key()].addTo(to.Used, axes)
		to.HostPorts = append(to.HostPorts, set.Spec.HostPorts...)
	}
}

// missing are the DaemonSets that run on a node and have no pod there yet. A node that
// leaves gets no more pods.
func (d *daemonSets) missing(n *stateNode) []*Daemon {
	if n.state == model.NodeLeaving {
		return nil
	}
	present := map[objectKey]bool{}
	for _, p := range n.pods {
		if p.Daemon {
			present[objectKey{p.Ref.Namespace, p.Owner.Name}] = true
		}
	}
	var out []*Daemon
	for _, set := range d.list {
		if !present[set.key()] && n.runs(set.Spec) {
			out = append(out, set)
		}
	}
	return out
}

// leaveRoom reports whether a node has room for one more pod beside its own and those of the
// missing DaemonSets.
func (d *daemonSets) leaveRoom(p *Pod, n *stateNode) bool {
	missing := d.missing(n)
	for _, name := range p.Spec.Requests.Names() {
		free := n.allocatable.Get(name) - p.Spec.Requests.Get(name)
		for _, other := range n.pods {
			free -= other.Spec.Requests.Get(name)
		}
		for _, set := range missing {
			free -= d.requests[set.key()].Get(name)
		}
		if free < 0 {
			return false
		}
	}
	return true
}

func (d *Daemon) key() objectKey { return objectKey{d.Namespace, d.Name} }

// nodeRules are the nodeSelector and the required node affinity as OR-ed
// alternatives.
func (s *PodSpec) nodeRules() []model.Requirements {
	if len(s.NodeAlternatives) == 0 {
		if len(s.NodeRequirements) == 0 {
			return nil
		}
		return []model.Requirements{s.NodeRequirements}
	}
	rules := make([]model.Requirements, len(s.NodeAlternatives))
	for i, alternative := range s.NodeAlternatives {
		rules[i] = slices.Concat(s.NodeRequirements, alternative)
	}
	return rules
}
