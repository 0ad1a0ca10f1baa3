package fleet

import (
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// pendingPods are the pods that need a place, and those among them that cannot be
// planned.
type pendingPods struct {
	nodes   *clusterNodes
	daemons *daemonSets
	budgets *podBudgets
	// placements name the node, or its claim, on which a command under way has
	// reserved room for a pod of a node that leaves.
	placements map[model.PodRef]string
	// keepDisplaced is as in DisruptionOptions.
	keepDisplaced bool
	// now decides which do-not-disrupt periods have ended.
	now time.Time
	// wanted are the pods to plan, in no order; rejected are the others.
	wanted   []*Pod
	rejected []Rejection
	// announced are those of wanted that do not exist yet.
	announced []*Pod
}

// sort gives every bound pod to its node, ordered by name, and collects the pods
// that need a place: the waiting ones, and the ones that must leave their node.
// Their volume claims and resource claims are counted as used.
func (q *pendingPods) sort(pods map[model.PodRef]*Pod, volumes *volumeResolver, claims *deviceResolver) {
	var moving []*Pod
	for _, p := range pods {
		expected := q.nominated(p)
		volumes.use(p, expected != nil)
		claims.use(p, expected != nil)
		switch {
		case expected != nil:
			expected.pods = append(expected.pods, p)
		case q.placement(p) != nil:
			moving = append(moving, p)
		default:
			q.settle(p)
		}
	}
	q.expect(moving)
	for _, n := range q.nodes.list {
		slices.SortFunc(n.pods, func(x, y *Pod) int { return compareRefs(x.Ref, y.Ref) })
	}
}

// settle leaves a pod where it is, or lets it wait for a place.
func (q *pendingPods) settle(p *Pod) {
	switch {
	case p.Wanted:
		q.add(p)
	case p.Bound():
		n := q.nodes.byNode[p.Node]
		if n == nil {
			return
		}
		if n.state == model.NodeLeaving && p.Movable(q.now) && !q.budgets.block(p) {
			q.add(p)
			return
		}
		n.pods = append(n.pods, p)
	}
}

// expect gives pods their placements as far as there is room: the scheduler knows of no
// plan and may have put others there, whose own places are then free. A node of which nothing
// is known yet has room. All other pods are with their nodes by now.
func (q *pendingPods) expect(moving []*Pod) {
	slices.SortFunc(moving, func(x, y *Pod) int { return compareRefs(x.Ref, y.Ref) })
	for _, p := range moving {
		switch n := q.placement(p); {
		case n.allocatable.IsZero() || q.daemons.leaveRoom(p, n):
			n.pods = append(n.pods, p)
		case q.keepDisplaced:
			n = q.nodes.byNode[p.Node]
			n.pods = append(n.pods, p)
		default:
			q.settle(p)
		}
	}
}

// nominated returns the node for which a waiting pod is nominated, unless that
// node leaves or is not there.
func (q *pendingPods) nominated(p *Pod) *stateNode {
	if p.Nominated == "" || p.Node != "" || p.Terminal {
		return nil
	}
	if n := q.nodes.byNode[p.Nominated]; n != nil && n.state != model.NodeLeaving {
		return n
	}
	return nil
}

// placement returns the node on which a command under way has room for a pod
// whose own node leaves, or nil.
func (q *pendingPods) placement(p *Pod) *stateNode {
	name, known := q.placements[p.Ref]
	if !known || !p.Bound() || !p.Movable(q.now) {
		return nil
	}
	if n := q.nodes.byNode[p.Node]; n == nil || n.state != model.NodeLeaving {
		return nil
	}
	if n := q.nodes.named(name); n != nil && n.state != model.NodeLeaving {
		return n
	}
	return nil
}

func (q *pendingPods) add(p *Pod) {
	switch {
	case p.Spec.TooMuch != "":
		q.reject(p, Rejection{Reason: model.ReasonAsksTooMuch, Message: p.Spec.TooMuch})
	case p.Spec.AvoidsPools:
		q.reject(p, Rejection{Reason: model.ReasonPodRequirement, Message: "the pod asks for a node outside every NodePool", Quiet: true})
	case p.Spec.Invalid != "":
		q.reject(p, Rejection{Reason: model.ReasonPodInvalid, Message: p.Spec.Invalid})
	default:
		q.wanted = append(q.wanted, p)
	}
}

// reject leaves a pod out, whose name is still to be filled in. One that should have
// moved stays where it is, and counts there.
func (q *pendingPods) reject(p *Pod, why Rejection) {
	if n := q.nodes.byNode[p.Node]; n != nil {
		i, _ := slices.BinarySearchFunc(n.pods, p, func(x, y *Pod) int { return compareRefs(x.Ref, y.Ref) })
		n.pods = slices.Insert(n.pods, i, p)
	}
	why.Pod, why.Owner = p.Ref, ShownName(p)
	q.rejected = append(q.rejected, why)
}

// older orders pods by age, then by name.
func older(x, y *Pod) int {
	if c := x.Created.Compare(y.Created); c != 0 {
		return c
	}
	return compareRefs(x.Ref, y.Ref)
}

// classes groups the pods to plan by the records that they share, in the order of
// each group's oldest pod, and rejects the pods with volumes or devices that cannot be placed.
func (q *pendingPods) classes(volumes *volumeResolver, claims *deviceResolver) []*podClass {
	index := map[recordKey]int{}
	var groups []podClass
	at, sizes := make([]int, len(q.wanted)), make([]int, 0, len(q.wanted))
	for i, p := range q.wanted {
		at[i] = -1
		var d disks
		if len(p.Claims) > 0 {
			var problem *Rejection
			if d, problem = volumes.disksOf(p); problem != nil {
				q.reject(p, *problem)
				continue
			}
		}
		held, problem := claims.devicesOf(p)
		if problem != "" {
			q.reject(p, Rejection{Reason: model.ReasonResourceClaims, Message: problem, Fix: held.fix()})
			continue
		}
		key := recordKey{p.Spec, p.Labels, p.Ref.Namespace, d.key, held.key}
		c, known := index[key]
		if !known {
			c = len(groups)
			index[key] = c
			groups = append(groups, podClass{spec: p.Spec, labels: p.Labels, namespace: p.Ref.Namespace, disks: d, devices: held})
			sizes = append(sizes, 0)
		}
		at[i] = c
		sizes[c]++
	}
	q.fill(groups, at, sizes)
	classes := make([]*podClass, len(groups))
	for i := range groups {
		classes[i] = &groups[i]
	}
	slices.SortFunc(classes, func(x, y *podClass) int { return older(x.pods[0], y.pods[0]) })
	return classes
}

// fill gives each class its pods, the oldest first: at is the class of every
// wanted pod, or -1, and sizes how many pods each class gets.
func (q *pendingPods) fill(classes []podClass, at, sizes []int) {
	pods := make([]*Pod, len(q.wanted))
	for i := range classes {
		classes[i].pods, pods = pods[:0:sizes[i]], pods[sizes[i]:]
	}
	for i, p := range q.wanted {
		if at[i] >= 0 {
			classes[at[i]].pods = append(classes[at[i]].pods, p)
		}
	}
	for i := range classes {
		slices.SortFunc(classes[i].pods, older)
	}
}
