package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// nodeLifecycle says how far nodes are in their lifecycle, as disruption sees it.
type nodeLifecycle struct {
	// pools are the NodePools by name.
	pools map[string]*Pool
	// disrupting are nodes, by name, that are being removed although their objects
	// do not show it yet.
	disrupting map[string]bool
	// unclaimed counts nodes without a NodeClaim as their NodePool's.
	unclaimed bool
	// repairs says that unhealthy nodes are replaced.
	repairs bool
}

// poolOf is the NodePool that a node belongs to, empty when nap may not remove it.
func (l *nodeLifecycle) poolOf(n *stateNode) string {
	if n.pool == "" || l.pools[n.pool] == nil || n.claim == nil && !l.unclaimed {
		return ""
	}
	return n.pool
}

// initialized reports whether the node can run pods.
func (l *nodeLifecycle) initialized(n *stateNode) bool {
	return n.node != nil && (n.node.Initialized || n.claim == nil && n.state != model.NodeRegistered)
}

// ready reports whether the kubelet works. Nodes in files often do not say.
func (l *nodeLifecycle) ready(n *stateNode) bool {
	return n.node != nil && (n.node.Ready || n.claim == nil && l.unclaimed && !n.node.Unready)
}

// leaves reports whether the node is being removed already.
func (l *nodeLifecycle) leaves(n *stateNode) bool {
	return n.state == model.NodeLeaving || n.node != nil && l.disrupting[n.node.Name]
}

// drainStalls is how long a node may be drained without that a pod goes before it counts as stuck:
// what it owes PodDisruptionBudgets holds no other node then. A pod whose successor takes longer to
// become ready is rare.
const drainStalls = 15 * time.Minute

// drained are the nodes, by name, of which pods are evicted now or as soon as their replacements
// are there.
func (l *nodeLifecycle) drained(nodes []*stateNode, opts *DisruptionOptions) map[string]bool {
	out := map[string]bool{}
	for _, n := range nodes {
		if n.node == nil || !l.leaves(n) || opts.Own[n.node.Name] || opts.Untouched[n.node.Name] {
			continue
		}
		if c := n.claim; c != nil && c.Leaving {
			stuck := opts.Now.Sub(c.LeavingSince) >= drainStalls && opts.Now.Sub(c.LastPodEvent) >= drainStalls
			if c.Terminating || stuck {
				continue
			}
		}
		out[n.node.Name] = true
	}
	return out
}

// poolNodes counts the nodes of a NodePool as its budgets do.
type poolNodes struct {
	// total are those that run pods or did before their reboot, leaving those of them
	// that are removed or rebooted, and notReady the others whose kubelet does not report.
	total, leaving, notReady int
}

// consuming is how many nodes count against the budgets for a reason. Those that are not
// ready do not count against their own repair.
func (c *poolNodes) consuming(reason model.DisruptionReason) int {
	if reason == model.DisruptUnhealthy {
		return c.leaving
	}
	return c.leaving + c.notReady
}

// countNodes counts the nodes of every NodePool, by its name.
func (l *nodeLifecycle) countNodes(nodes []*stateNode) map[string]*poolNodes {
	out := map[string]*poolNodes{}
	for _, n := range nodes {
		rebooting := n.claim != nil && n.claim.Rebooting
		if l.poolOf(n) == "" || n.node == nil || !l.initialized(n) && !rebooting || n.claim != nil && n.claim.Terminating {
			continue
		}
		c := out[n.pool]
		if c == nil {
			c = &poolNodes{}
			out[n.pool] = c
		}
		c.total++
		switch {
		case l.leaves(n) || rebooting:
			c.leaving++
		case !l.ready(n):
			c.notReady++
		}
	}
	return out
}

// voluntary are the reasons that a freeze of a NodePool holds up.
var voluntary = [...]model.DisruptionReason{model.DisruptEmpty, model.DisruptUnderutilized, model.DisruptDrifted}

// policies are the disruption settings of the NodePools, in the same order, with
// their budgets evaluated now and for these nodes.
func (l *nodeLifecycle) policies(pools []*Pool, nodes []*stateNode, now time.Time) []model.DisruptionPolicy {
	counts := l.countNodes(nodes)
	var out []model.DisruptionPolicy
	for _, pool := range pools {
		d := &pool.Disruption
		count := cmp.Or(counts[pool.Name], &poolNodes{})
		policy := model.DisruptionPolicy{
			Pool: pool.Name, Consolidation: d.Policy, Never: d.Never, After: d.After, Static: pool.Static, Counted: count.total,
		}
		if pool.Static {
			policy.Count = l.count(pool, nodes)
		}
		if d.Allowed != nil {
			l.evaluate(&policy, d, count, now)
		}
		if d.Frozen.Holds(now) {
			policy.Frozen, policy.FrozenUntil = d.Frozen.String(), d.Frozen.Until
			freeze(&policy)
		}
		out = append(out, policy)
	}
	return out
}

// evaluate states what the budgets of a NodePool allow now.
func (l *nodeLifecycle) evaluate(policy *model.DisruptionPolicy, d *Disruption, count *poolNodes, now time.Time) {
	policy.Allowed, policy.Budgeted, policy.Consuming = map[model.DisruptionReason]int{}, map[model.DisruptionReason]int{},
		map[model.DisruptionReason]int{}
	reasons := voluntary[:]
	if l.repairs {
		reasons = append(slices.Clone(reasons), model.DisruptUnhealthy)
	}
	for _, reason := range reasons {
		policy.Budgeted[reason], policy.Consuming[reason] = d.Allowed(now, count.total, reason), count.consuming(reason)
		policy.Allowed[reason] = max(0, policy.Budgeted[reason]-policy.Consuming[reason])
		if d.Ends == nil {
			continue
		}
		if end := d.Ends(now, reason); !end.IsZero() {
			if policy.BudgetEnds == nil {
				policy.BudgetEnds = map[model.DisruptionReason]time.Time{}
			}
			policy.BudgetEnds[reason] = end
		}
	}
}

// freeze lets no node be removed voluntarily. Repair goes on.
func freeze(policy *model.DisruptionPolicy) {
	if policy.Allowed == nil {
		policy.Allowed, policy.Budgeted = map[model.DisruptionReason]int{}, map[model.DisruptionReason]int{}
	}
	for _, reason := range voluntary {
		policy.Allowed[reason], policy.Budgeted[reason] = 0, 0
	}
}

// count counts the nodes of a static pool.
func (l *nodeLifecycle) count(pool *Pool, nodes []*stateNode) *model.StaticCount {
	out := &model.StaticCount{Replicas: pool.Replicas, Limit: pool.NodeLimit}
	for _, n := range nodes {
		if l.poolOf(n) != pool.Name {
			continue
		}
		out.Nodes++
		if !l.leaves(n) {
			out.Staying++
		}
	}
	return out
}

// usageWriter states what runs on nodes and what blocks their disruption.
type usageWriter struct {
	opts      *DisruptionOptions
	lifecycle *nodeLifecycle
	// movable has its place filled in.
	movable *movablePods
	budgets *podBudgets
	// policies index DisruptionProblem.Policies by the name of the NodePool.
	policies map[string]int
	// returning are the pods that are about to come again, by the node.
	returning map[string]int
}

func newUsageWriter(
	opts *DisruptionOptions, l *nodeLifecycle, movable *movablePods, budgets *podBudgets, policies []model.DisruptionPolicy,
) *usageWriter {
	w := &usageWriter{opts: opts, lifecycle: l, movable: movable, budgets: budgets, policies: make(map[string]int, len(policies))}
	for i := range policies {
		w.policies[policies[i].Pool] = i
	}
	return w
}

// write states the usage of one node.
func (w *usageWriter) write(n *stateNode) model.NodeUsage {
	l := w.lifecycle
	u := model.NodeUsage{Policy: -1, Initialized: l.initialized(n), Ready: l.ready(n), Disrupting: l.leaves(n)}
	if pool := l.poolOf(n); pool != "" {
		u.Policy = w.policies[pool]
	}
	if n.node != nil {
		u.DoNotDisrupt = n.node.DoNotDisrupt
		u.RetryAfter = w.opts.RetryAfter[n.node.Name]
		u.Created, u.InitializedAt = n.node.Created, n.node.Created
	}
	if n.claim != nil {
		w.addClaim(&u, n)
	}
	w.addMovable(&u, n)
	w.addEnding(&u, n)
	w.addReturning(&u, n)
	u.DoNotDisruptPods, u.DaemonPods = w.doNotDisrupt(n), w.daemonPods(n)
	return u
}

func (w *usageWriter) addClaim(u *model.NodeUsage, n *stateNode) {
	c := n.claim
	u.Created, u.LastPodEvent, u.GracePeriod = c.Created, lastEvent(n), c.GracePeriod
	u.Reserved = w.opts.Reserved[c.Name]
	if !c.Initialized.IsZero() {
		u.InitializedAt = c.Initialized
	}
	if w.opts.Now.Before(u.InitializedAt.Add(w.opts.Terms.Payback)) {
		u.ExpectedSaving = model.Money(remainingShare(c.Requests, n) * float64(c.ExpectedSaving))
	}
	u.Drift, u.DriftSince = c.Drift, c.DriftSince
	if c.Repair != nil && w.lifecycle.repairs {
		u.Unhealthy, u.UnhealthySince = c.Repair.Condition, c.Repair.Since
		u.GracePeriod = u.GracePeriod || c.Repair.Drain != nil
	}
	if c.ExpireAfter > 0 {
		u.ExpiresAt = c.Created.Add(c.ExpireAfter)
	}
}

// lastEvent is when a pod last came to or left a node. Its NodeClaim says so up to
// ten seconds late, as Karpenter writes it; pods that leave right now are known at
// once, so that nothing is decided in the midst of a workload that shrinks.
func lastEvent(n *stateNode) time.Time {
	last := n.claim.LastPodEvent
	for _, p := range n.pods {
		if n.runsPod(p) && p.Leaving != nil && !p.Daemon && p.Leaving.Since.After(last) {
			last = p.Leaving.Since
		}
	}
	return last
}

// remainingShare is the share of what a node was bought for that its pods still ask
// for, from 0 to 1, by cpu or memory, whichever is more. It is 1 where bought says
// nothing. Pods that have ended have nothing to lose.
func remainingShare(bought Amounts, n *stateNode) float64 {
	var now Amounts
	for _, p := range n.pods {
		if n.runsPod(p) && !p.Terminating {
			now.CPU += p.Spec.Requests.CPU
			now.Memory += p.Spec.Requests.Memory
		}
	}
	share, said := 0.0, false
	for _, name := range []string{"cpu", "memory"} {
		if whole := bought.Get(name); whole > 0 {
			share, said = max(share, float64(now.Get(name))/float64(whole)), true
		}
	}
	if !said {
		return 1
	}
	return min(1, share)
}

// addMovable lists the movable pods of a node by class. Pods that must not be
// evicted are movable too: a drain that ends by force is their end, and a repair moves them.
func (w *usageWriter) addMovable(u *model.NodeUsage, n *stateNode) {
	byClass := map[int][]int{}
	for _, p := range n.pods {
		switch place, movable := w.movable.place[p]; {
		case !n.runsPod(p):
			u.Nominated = true
		case movable:
			byClass[place.Class] = append(byClass[place.Class], place.Pods[0])
		}
	}
	for class, pods := range byClass {
		slices.Sort(pods)
		u.Pods = append(u.Pods, model.ClassPods{Class: class, Pods: pods})
	}
	slices.SortFunc(u.Pods, func(x, y model.ClassPods) int { return cmp.Compare(x.Class, y.Class) })
}

// addEnding counts the pods of a node that end.
func (w *usageWriter) addEnding(u *model.NodeUsage, n *stateNode) {
	for _, p := range n.pods {
		if !n.runsPod(p) {
			continue
		}
		if until := endingUntil(p, w.opts.Now); !until.IsZero() {
			u.Ending++
			if until.After(u.EndingUntil) {
				u.EndingUntil = until
			}
		}
	}
}

// addReturning counts the pods that come again to a node, until it was left for long.
func (w *usageWriter) addReturning(u *model.NodeUsage, n *stateNode) {
	if n.node == nil || u.LastPodEvent.IsZero() {
		return
	}
	if until := u.LastPodEvent.Add(returnsWithin); until.After(w.opts.Now) {
		if u.Returning = w.returning[n.node.Name]; u.Returning > 0 {
			u.ReturningUntil = until
		}
	}
}

// doNotDisrupt are the pods of a node that must not be evicted, by name: those with
// volumes that cannot be attached elsewhere and those with the annotation.
func (w *usageWriter) doNotDisrupt(n *stateNode) []model.DoNotDisruptPod {
	var out []model.DoNotDisruptPod
	for _, p := range n.pods {
		if p.Terminating || !n.runsPod(p) {
			continue
		}
		if why := w.movable.stuck[p]; why != "" {
			out = append(out, model.DoNotDisruptPod{Pod: p.Ref, Why: why})
		} else if p.KeepUntil.After(w.opts.Now) {
			pod := model.DoNotDisruptPod{Pod: p.Ref}
			if p.KeepUntil.Before(Forever) {
				pod.Until = p.KeepUntil
			}
			out = append(out, pod)
		}
	}
	slices.SortFunc(out, func(x, y model.DoNotDisruptPod) int { return strings.Compare(x.Pod.String(), y.Pod.String()) })
	return out
}

// daemonPods are the DaemonSet pods of a node that count against PodDisruptionBudgets when it
// is drained, by name.
func (w *usageWriter) daemonPods(n *stateNode) []model.DaemonPod {
	var out []model.DaemonPod
	for _, p := range n.pods {
		if !p.Daemon || !n.runsPod(p) {
			continue
		}
		if counted := w.budgets.of(p); len(counted) > 0 {
			out = append(out, model.DaemonPod{Pod: p.Ref, Budgets: counted})
		}
	}
	slices.SortFunc(out, func(x, y model.DaemonPod) int { return compareRefs(x.Pod, y.Pod) })
	return out
}
