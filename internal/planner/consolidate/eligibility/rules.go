package eligibility

import (
	"cmp"
	"fmt"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
)

// Rules are what the nodes, their pods and their NodePools say about disruption. Each
// rule takes the index of a node that has a NodeUsage.
type Rules struct{ p *compiled.Problem }

// Expires reports whether a node's end is near enough to prepare for.
func (r Rules) Expires(n int) bool {
	t := &r.p.Input.Usages[n]
	return t.Policy >= 0 && !t.ExpiresAt.IsZero() && !t.PrepareAt().After(r.p.Input.Now)
}

// Expired reports whether a node's end has come.
func (r Rules) Expired(n int) bool {
	t := &r.p.Input.Usages[n]
	return t.Policy >= 0 && !t.ExpiresAt.IsZero() && !t.ExpiresAt.After(r.p.Input.Now)
}

// Drifts reports whether a node has drifted.
func (r Rules) Drifts(n int) bool {
	t := &r.p.Input.Usages[n]
	return t.Policy >= 0 && t.Drift != ""
}

// Unhealthy reports whether a node is due for repair.
func (r Rules) Unhealthy(n int) bool {
	t := &r.p.Input.Usages[n]
	return t.Policy >= 0 && t.Unhealthy != ""
}

// takesIn reports whether a node may take in pods of nodes that have to go: it is ready,
// in good health and not promised to others.
func (r Rules) takesIn(n int) bool {
	t, node := &r.p.Input.Usages[n], &r.p.Planning.Nodes[n]
	return node.State == model.NodeReady && t.Initialized && t.Ready && t.Unhealthy == "" && !t.Disrupting && !t.Reserved
}

// ComingFor is how long a machine counts as being on its way: so long may it take to
// register, and one that takes longer may never run a pod.
const ComingFor = 15 * time.Minute

// coming reports whether a node is on its way and not promised to others.
func (r Rules) coming(n int) bool {
	t, node := &r.p.Input.Usages[n], &r.p.Planning.Nodes[n]
	return (node.State != model.NodeReady || !t.Initialized) && !t.Reserved && r.young(n)
}

// replacing reports whether a node was bought for others that go, and has not been given free
// yet: it is on its way, or their pods are moving there. Of machines of static pools it is not
// known which pods come.
func (r Rules) replacing(n int) bool {
	t := &r.p.Input.Usages[n]
	return t.Reserved && t.Policy >= 0 && !r.p.Input.Policies[t.Policy].Static && r.young(n)
}

// young reports whether a machine was bought lately and is to stay.
func (r Rules) young(n int) bool {
	t := &r.p.Input.Usages[n]
	return r.p.Planning.Nodes[n].State != model.NodeLeaving &&
		!t.Disrupting && t.Drift == "" && t.Unhealthy == "" && r.p.Input.Now.Sub(t.Created) < ComingFor
}

// quiet reports whether a node's own quiet time is over. A pod that moved in would start
// it again, so consolidation, which can wait, moves none there before.
func (r Rules) quiet(n int) bool {
	t := &r.p.Input.Usages[n]
	if t.Policy < 0 {
		return true
	}
	policy := &r.p.Input.Policies[t.Policy]
	return policy.Never || policy.Static || !quietSince(t).Add(policy.After).After(r.p.Input.Now)
}

// quietSince is when pods last came to or left a node, no earlier than when it could
// run any.
func quietSince(t *model.NodeUsage) time.Time {
	if t.LastPodEvent.After(t.InitializedAt) {
		return t.LastPodEvent
	}
	return t.InitializedAt
}

// consolidation says why a node is no candidate for consolidation, or nil.
func (r Rules) consolidation(n int) *model.KeptNode {
	t, name := &r.p.Input.Usages[n], r.p.NodeName(n)
	if t.Policy < 0 {
		return compiled.Keep(n, model.ReasonNoPool, "%s belongs to no NodePool and is not nap's to remove.", name)
	}
	policy := &r.p.Input.Policies[t.Policy]
	if why := cmp.Or(r.silent(n), r.Node(n)); why != nil {
		return why
	}
	if policy.Static {
		return compiled.Keep(n, model.ReasonStaticPool, "%s belongs to NodePool %s, which keeps a fixed number of nodes.", name, policy.Pool)
	}
	if why := r.Frozen(n); why != nil {
		return why
	}
	if policy.Never {
		return compiled.Keep(n, model.ReasonNeverConsolidate, "NodePool %s has consolidateAfter Never.", policy.Pool)
	}
	if from := r.p.Input.ConsolidateFrom; from.After(r.p.Input.Now) {
		why := compiled.Keep(n, model.ReasonWindow, "Consolidation waits for the maintenance window, until %s.", compiled.FormatTime(from))
		why.Until = from
		return why
	}
	if why := r.Pods(n); why != nil {
		return why
	}
	if until := quietSince(t).Add(policy.After); until.After(r.p.Input.Now) {
		why := compiled.Keep(n, model.ReasonNotQuiet, "Pods last came to or left %s at %s; NodePool %s wants %s of quiet, until %s.",
			name, compiled.FormatTime(quietSince(t)), policy.Pool, model.FormatDuration(policy.After), compiled.FormatTime(until))
		why.Until = until
		return why
	}
	if node := &r.p.Nodes[n]; policy.Consolidation == model.WhenEmpty && !node.Empty() {
		return compiled.Keep(n, model.ReasonPolicy, "NodePool %s lets only empty nodes go, and %s runs %s.",
			policy.Pool, name, compiled.Plural(node.Evictions, "pod"))
	}
	return cmp.Or(r.returning(n), r.ending(n))
}

// returning keeps a node, empty or not, on which pods of a Job have just ended, while the Job is
// about to create others in their place: those would wait for another machine.
func (r Rules) returning(n int) *model.KeptNode {
	t := &r.p.Input.Usages[n]
	if t.Returning == 0 || !t.ReturningUntil.After(r.p.Input.Now) {
		return nil
	}
	why := compiled.Keep(n, model.ReasonPodsEnding, "%s waits until %s for %s that Jobs create in the place of those that have ended on it.",
		r.p.NodeName(n), compiled.FormatTime(t.ReturningUntil), compiled.Plural(t.Returning, "pod"))
	why.Until = t.ReturningUntil
	return why
}

// ending keeps a node, unless it is empty, while pods of it end: what room they leave, there and
// elsewhere, is known in moments, and what is bought or moved before may be for nothing.
func (r Rules) ending(n int) *model.KeptNode {
	t := &r.p.Input.Usages[n]
	if t.Ending == 0 || r.p.Nodes[n].Empty() || !t.EndingUntil.After(r.p.Input.Now) {
		return nil
	}
	are, they := "are", "they are"
	if t.Ending == 1 {
		are, they = "is", "it is"
	}
	why := compiled.Keep(n, model.ReasonPodsEnding, "%s of %s %s ending; %s waited for until %s at the latest.",
		compiled.Plural(t.Ending, "pod"), r.p.NodeName(n), are, they, compiled.FormatTime(t.EndingUntil))
	why.Until = t.EndingUntil
	return why
}

// Frozen says that the NodePool of a node is frozen, or is nil.
func (r Rules) Frozen(n int) *model.KeptNode {
	policy := &r.p.Input.Policies[r.p.Input.Usages[n].Policy]
	if policy.Frozen == "" {
		return nil
	}
	why := compiled.Keep(n, model.ReasonFrozen, "NodePool %s is frozen %s.", policy.Pool, policy.Frozen)
	why.Until = policy.FrozenUntil
	return why
}

// silent keeps a node whose kubelet does not report from consolidation while it has pods:
// whether they run, and whether the node comes back with them, is not known.
func (r Rules) silent(n int) *model.KeptNode {
	t := &r.p.Input.Usages[n]
	if !t.Initialized || t.Ready || t.Disrupting || r.p.Planning.Nodes[n].State != model.NodeReady || r.p.Nodes[n].Evictions == 0 {
		return nil
	}
	return compiled.Keep(n, model.ReasonNotInitialized, "%s is not ready: its kubelet does not report.", r.p.NodeName(n))
}

// Node is what speaks against disrupting a node, its pods aside; nil when nothing does. A
// kubelet that does not report is no reason to keep its node. Repair asks less, see
// [Rules.Repair].
func (r Rules) Node(n int) *model.KeptNode {
	if why := r.Repair(n); why != nil {
		return why
	}
	if r.p.Input.Usages[n].DoNotDisrupt {
		return compiled.Keep(n, model.ReasonNodeHeld, "%s carries the annotation karpenter.sh/do-not-disrupt.", r.p.NodeName(n))
	}
	return nil
}

// Repair is what speaks against removing an unhealthy node, its pods aside; nil when
// nothing does. That its kubelet does not report is what it is repaired for, and the
// annotation karpenter.sh/do-not-disrupt does not speak of repair.
func (r Rules) Repair(n int) *model.KeptNode {
	t, node, name := &r.p.Input.Usages[n], &r.p.Planning.Nodes[n], r.p.NodeName(n)
	switch {
	case t.Disrupting || node.State == model.NodeLeaving:
		return compiled.Keep(n, model.ReasonBeingDisrupted, "%s is already being given up.", name)
	case !t.Initialized || node.State != model.NodeReady:
		return compiled.Keep(n, model.ReasonNotInitialized, "%s is not initialized yet.", name)
	case t.RetryAfter.After(r.p.Input.Now):
		why := compiled.Keep(n, model.ReasonMoveFailed,
			"The last move of %s failed; it is tried again at %s.", name, compiled.FormatTime(t.RetryAfter))
		why.Until = t.RetryAfter
		return why
	case t.Reserved:
		return compiled.Keep(n, model.ReasonNominated, "%s is promised to the pods of a move under way.", name)
	case t.Nominated:
		return compiled.Keep(n, model.ReasonNominated, "%s is promised to pods that are not bound yet.", name)
	}
	return nil
}

// Pods is what the pods of a node have against being evicted, nil when nothing.
func (r Rules) Pods(n int) *model.KeptNode {
	if why := r.doNotDisrupt(n); why != nil {
		return why
	}
	t, name := &r.p.Input.Usages[n], r.p.NodeName(n)
	for _, cp := range t.Pods {
		if len(cp.Pods) == 0 {
			continue
		}
		m := &r.p.Input.Movable[cp.Class]
		if why := r.budgets(n, m.Pods[cp.Pods[0]], m.Budgets); why != nil {
			return why
		}
	}
	for i := range t.DaemonPods {
		if why := r.budgets(n, t.DaemonPods[i].Pod, t.DaemonPods[i].Budgets); why != nil {
			return why
		}
	}
	for _, cp := range t.Pods {
		if len(cp.Pods) > 0 && r.p.Classes[r.p.FirstMovable+cp.Class].Invalid {
			pod := r.p.Input.Movable[cp.Class].Pods[cp.Pods[0]]
			why := compiled.Keep(n, model.ReasonPodInvalid,
				"Pod %s on %s asks for something that no scheduler can grant, so it would find no other place.", pod, name)
			why.Pod = pod
			return why
		}
	}
	return nil
}

// Undrainable is the first pod of a node which needs another place and which a drain at a time
// would not evict, because it must not be disrupted then or its budgets never allow it. It is nil
// for none, and for a node whose drain ends by force.
func (r Rules) Undrainable(n int, at time.Time) *model.KeptNode {
	t := &r.p.Input.Usages[n]
	if t.GracePeriod {
		return nil
	}
	movable := map[model.PodRef]bool{}
	for _, cp := range t.Pods {
		m := &r.p.Input.Movable[cp.Class]
		for _, i := range cp.Pods {
			movable[m.Pods[i]] = true
		}
		if len(cp.Pods) > 0 && r.p.NeverEvicted(cp.Class) {
			return r.budgets(n, m.Pods[cp.Pods[0]], m.Budgets)
		}
	}
	for i := range t.DoNotDisruptPods {
		if pod := &t.DoNotDisruptPods[i]; pod.Why == "" && movable[pod.Pod] && pod.At(at) {
			return r.doNotDisruptPod(n, pod)
		}
	}
	return nil
}

// doNotDisrupt is the first pod of a node which must not be evicted now.
func (r Rules) doNotDisrupt(n int) *model.KeptNode {
	pods := r.p.Input.Usages[n].DoNotDisruptPods
	for i := range pods {
		if pods[i].At(r.p.Input.Now) {
			return r.doNotDisruptPod(n, &pods[i])
		}
	}
	return nil
}

// doNotDisruptPod says why a pod on a node must not be evicted.
func (r Rules) doNotDisruptPod(n int, pod *model.DoNotDisruptPod) *model.KeptNode {
	name := r.p.NodeName(n)
	why := compiled.Keep(n, model.ReasonPodHeld, "Pod %s on %s must not be disrupted (karpenter.sh/do-not-disrupt).", pod.Pod, name)
	switch {
	case pod.Why != "": // there is no annotation to remove
		why.Reason = model.ReasonNoPlace
		why.Message = fmt.Sprintf("Pod %s on %s would find no other place: %s.", pod.Pod, name, pod.Why)
	case !pod.Until.IsZero():
		why.Message = fmt.Sprintf("Pod %s on %s must not be disrupted before %s (karpenter.sh/do-not-disrupt).",
			pod.Pod, name, compiled.FormatTime(pod.Until))
	}
	why.Pod, why.Until = pod.Pod, pod.Until
	return why
}

// budgets is what the PodDisruptionBudgets of a pod on a node say by themselves, other
// evictions aside. The eviction API refuses pods which several budgets select.
func (r Rules) budgets(n int, pod model.PodRef, budgets []int) *model.KeptNode {
	name := r.p.NodeName(n)
	if len(budgets) > 1 {
		a, b := &r.p.Input.Budgets[budgets[0]], &r.p.Input.Budgets[budgets[1]]
		why := compiled.Keep(n, model.ReasonPodBudgets,
			"%d PodDisruptionBudgets (%s, %s) speak of pod %s on %s, which the eviction API refuses.", len(budgets), a, b, pod, name)
		why.Pod, why.Budget = pod, a.String()
		return why
	}
	for _, k := range budgets {
		if b := &r.p.Input.Budgets[k]; b.Blocking || b.Allowed <= 0 {
			why := compiled.Keep(n, model.ReasonPodBudget, "PodDisruptionBudget %s allows no eviction of pod %s on %s now.", b, pod, name)
			if b.Blocking {
				why.Message = fmt.Sprintf("PodDisruptionBudget %s never allows an eviction of pod %s on %s.", b, pod, name)
			}
			why.Pod, why.Budget = pod, b.String()
			return why
		}
	}
	return nil
}

// worth says why removing a node would not be worth it even if its pods found room
// without anything being bought, or nil.
func (r Rules) worth(n int) *model.KeptNode {
	node, name := &r.p.Nodes[n], r.p.NodeName(n)
	if node.Price <= 0 {
		return r.unpriced(n)
	}
	if float64(node.Price) < node.EvictionCost {
		return r.p.DoesNotPay(n, name, "its ", node.Evictions, node.Price, node.EvictionCost, node.EvictionUnits)
	}
	policy := &r.p.Input.Policies[node.Policy]
	if policy.Consolidation != model.Balanced || node.Empty() {
		return nil
	}
	if savingShare, disruptionShare, ok := Balanced(&r.p.Pools[node.Policy], float64(node.Price), 1+node.EvictionUnits); !ok {
		return compiled.Keep(n, model.ReasonUnbalanced, "%s is %.1f%% of what NodePool %s costs and giving it back causes "+
			"%.1f%% of its disruption; Balanced wants at least half as much saving as disruption.",
			name, 100*savingShare, policy.Pool, 100*disruptionShare)
	}
	return nil
}

// unpriced says that the price of node n is not known, and which label its offering would be found by.
func (r Rules) unpriced(n int) *model.KeptNode {
	name, pods := r.p.NodeName(n), compiled.Plural(r.p.Nodes[n].Evictions, "pod")
	for _, key := range []string{model.LabelInstanceType, model.LabelCapacityType, model.LabelZone} {
		if r.p.Planning.Nodes[n].Labels[key] == "" {
			return compiled.Keep(n, model.ReasonPriceUnknown,
				"%s runs %s and has no label %s, without which its price is not known.", name, pods, key)
		}
	}
	if zone := r.p.Planning.Nodes[n].Labels[model.LabelZone]; !r.sold(zone) {
		return compiled.Keep(n, model.ReasonPriceUnknown,
			"%s runs %s and is in zone %s, in which nothing is sold by the price list, so its price is not known.", name, pods, zone)
	}
	return compiled.Keep(n, model.ReasonPriceUnknown,
		"%s runs %s and costs nothing that nap knows of, so giving it back saves nothing.", name, pods)
}

// sold reports whether any catalogue has offerings in a zone: those of one region have none in the
// zones of another.
func (r Rules) sold(zone string) bool {
	for c := range r.p.Planning.Catalogs {
		types := r.p.Planning.Catalogs[c].InstanceTypes
		for t := range types {
			for o := range types[t].Offerings {
				if types[t].Offerings[o].Zone == zone {
					return true
				}
			}
		}
	}
	return false
}

// Unbalanced are the scores of the nodes for which the policy Balanced rules out
// whatever could become of their pods.
func (r Rules) Unbalanced() []model.BalancedScore {
	var out []model.BalancedScore
	for n := range min(len(r.p.Nodes), len(r.p.Input.Usages)) {
		node := &r.p.Nodes[n]
		if node.Evictions == 0 || r.consolidation(n) != nil {
			continue
		}
		if why := r.worth(n); why == nil || why.Reason != model.ReasonUnbalanced {
			continue
		}
		saving, disruption, _ := Balanced(&r.p.Pools[node.Policy], float64(node.Price), 1+node.EvictionUnits)
		out = append(out, model.BalancedScore{Policy: node.Policy, Nodes: []int{n}, Saving: saving, Disruption: disruption})
	}
	return out
}

// BalancedK is Karpenter's k of the policy Balanced: a command is worth it when its
// share of the pool's price is at least 1/k of its share of the pool's disruption.
const BalancedK = 2

// Balanced is the rule of the policy Balanced, for a saving in Money per hour and a
// disruption in the unit of PoolTotals. It returns both as shares of the pool and
// whether the rule allows them. A pool that costs nothing allows nothing.
func Balanced(pool *compiled.PoolTotals, saving, disruption float64) (savingShare, disruptionShare float64, ok bool) {
	if pool.Price <= 0 || pool.Disruption <= 0 {
		return 0, 0, false
	}
	savingShare, disruptionShare = saving/float64(pool.Price), disruption/pool.Disruption
	return savingShare, disruptionShare, savingShare >= disruptionShare/BalancedK
}
