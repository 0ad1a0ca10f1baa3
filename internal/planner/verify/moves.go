package verify

import (
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// CheckMoves returns everything that is wrong with moves, in a fixed order. It
// replays them one after the other: the nodes that each removes may be removed, every
// pod that it evicts has a place that Check accepts on the fleet that the moves
// before leave, budgets and PodDisruptionBudgets are not exceeded by all of them
// together, each pays for itself, and the sums are right.
func CheckMoves(f *model.DisruptionProblem, moves *model.Commands) []Violation {
	c := &moveChecker{f: f, gone: map[int]bool{}, received: map[int]bool{}, spent: make([]int, len(f.Budgets)),
		spenders: make([]map[int]bool, len(f.Budgets)), taken: make([]int, len(f.Policies))}
	c.start()
	for i := range moves.Commands {
		c.move(&moves.Commands[i])
	}
	c.together(moves)
	return c.found
}

// moveChecker replays commands in their order.
type moveChecker struct {
	f *model.DisruptionProblem
	// p is the problem as the moves so far leave it. Nodes keep their index: those that
	// were bought come behind, those that are gone are leaving.
	p model.Problem
	// shapes is how many shapes the problem has of its own; that of movable class i has
	// index shapes+i.
	shapes int
	// gone are the nodes that were removed, received those that took pods in: a node
	// may not be both, or a pod would move twice.
	gone, received map[int]bool
	// spent is how many evictions draw on each PodDisruptionBudget so far.
	spent []int
	// spenders are the nodes that draw on each PodDisruptionBudget.
	spenders []map[int]bool
	// taken is how many nodes of each policy's NodePool were removed, for its budgets.
	taken []int
	// found are the violations so far.
	found []Violation
}

func (c *moveChecker) report(rule, format string, args ...any) {
	r := checker{}
	r.report(rule, format, args...)
	c.found = append(c.found, r.found...)
}

// start copies what the replay changes. The shapes of movable pods come behind
// those that the problem has.
func (c *moveChecker) start() {
	c.p = *c.f.Problem
	c.p.Nodes = slices.Clone(c.p.Nodes)
	c.p.Pools = slices.Clone(c.p.Pools)
	for i := range c.p.Pools {
		c.p.Pools[i].Usage = slices.Clone(c.p.Pools[i].Usage)
		c.above(&c.p.Pools[i])
	}
	c.p.Quotas = slices.Clone(c.p.Quotas)
	c.p.Shapes = slices.Clone(c.p.Shapes)
	c.shapes = len(c.p.Shapes)
	for i := range c.f.Movable {
		c.p.Shapes = append(c.p.Shapes, c.f.Movable[i].PodShape)
	}
}

// forced reports whether a command replaces its nodes whether that pays or not.
func forced(mv *model.Command) bool {
	return mv.Reason == model.DisruptDrifted || mv.Reason == model.DisruptExpired || mv.Reason == model.DisruptUnhealthy
}

// move checks one command on what those before it leave, and applies it.
func (c *moveChecker) move(mv *model.Command) {
	if len(mv.Nodes) == 0 {
		c.report("move", "a command removes nothing")
		return
	}
	before := slices.Clone(c.p.Pools)
	for _, n := range mv.Nodes {
		c.given(mv, n)
	}
	c.payment(mv)
	if !mv.FromTemplate {
		c.evicted(mv)
	}
	c.keep(before)
}

// given: the node may be removed for the reason. It counts as gone even if not, so that
// later commands are judged on what would be the case. An expired node goes whatever its
// pods and budgets say.
func (c *moveChecker) given(mv *model.Command, n int) {
	t, name := &c.f.Usages[n], c.p.Nodes[n].Name
	if c.gone[n] {
		c.report("given once", "%s is removed twice", name)
	}
	if c.received[n] {
		c.report("moved once", "%s takes pods in and is removed", name)
	}
	c.gone[n] = true
	c.p.Nodes[n].State = model.NodeLeaving
	if t.Policy >= 0 {
		c.static(mv, t.Policy)
		c.release(t)
	}
	if t.Policy < 0 || t.Disrupting || !t.Initialized {
		c.report("candidate", "%s is not to be removed: policy %d, marked %v, initialized %v", name, t.Policy, t.Disrupting, t.Initialized)
		return
	}
	policy := &c.f.Policies[t.Policy]
	if mv.Reason == model.DisruptExpired {
		if t.ExpiresAt.IsZero() {
			c.report("expiry", "%s never expires", name)
		}
		c.taken[t.Policy]++
		return
	}
	c.reason(mv, n)
	if allowed, limited := policy.Allowed[mv.Reason]; limited && c.taken[t.Policy] >= allowed {
		c.report("budgets", "%s is node %d of NodePool %s, allowed for %s are %d",
			name, c.taken[t.Policy]+1, policy.Pool, mv.Reason, allowed)
	}
	c.taken[t.Policy]++
	if !forced(mv) || !t.GracePeriod {
		c.pods(n)
	}
	if !forced(mv) {
		c.policy(mv, n)
	}
}

// static: a static pool has room for one more replacement beside its nodes, or its node
// may go first.
func (c *moveChecker) static(mv *model.Command, policy int) {
	of := &c.f.Policies[policy]
	if of.Count == nil {
		return
	}
	if mv.TerminateFirst {
		if !of.Count.GoesFirst(mv.Reason) {
			c.report("static", "a node of NodePool %s goes before its replacement, for %s", of.Pool, mv.Reason)
		}
		return
	}
	if of.Count.Staying > of.Count.Replicas {
		c.report("static", "a node of NodePool %s is replaced while it has %d nodes of %d", of.Pool, of.Count.Staying, of.Count.Replicas)
	}
	if nodes := of.Count.Nodes + c.taken[policy] + 1; of.Count.Limit >= 0 && nodes > of.Count.Limit {
		c.report("static", "NodePool %s would have %d nodes, its limit is %d", of.Pool, nodes, of.Count.Limit)
	}
}

// reason: a command other than of an expired node finds the node as its reason says.
func (c *moveChecker) reason(mv *model.Command, n int) {
	t, name := &c.f.Usages[n], c.p.Nodes[n].Name
	if mv.Reason == model.DisruptUnhealthy {
		if t.Unhealthy == "" || t.Nominated {
			c.report("repair", "%s is not to be repaired: unhealthy %q, nominated %v", name, t.Unhealthy, t.Nominated)
		}
		return
	}
	if t.Nominated || t.DoNotDisrupt {
		c.report("candidate", "%s is held: nominated %v, do-not-disrupt %v", name, t.Nominated, t.DoNotDisrupt)
	}
	if pods := movable(t); !t.Ready && mv.Reason != model.DisruptDrifted && pods > 0 {
		c.report("ready", "%s is consolidated with %d pods, and its kubelet does not report", name, pods)
	}
	if (mv.Reason == model.DisruptEmpty || mv.Reason == model.DisruptUnderutilized) && c.f.ConsolidateFrom.After(c.f.Now) {
		c.report("window", "%s is consolidated outside the maintenance window", c.f.Problem.Nodes[n].Name)
	}
	if mv.Reason == model.DisruptDrifted && t.Drift == "" {
		c.report("drift", "%s has not drifted", name)
	}
}

// movable counts the pods of a node which need another.
func movable(t *model.NodeUsage) int {
	pods := 0
	for _, cp := range t.Pods {
		pods += len(cp.Pods)
	}
	return pods
}

// pods: no pod on the node may refuse, those of DaemonSets included.
func (c *moveChecker) pods(n int) {
	t, name := &c.f.Usages[n], c.p.Nodes[n].Name
	for _, h := range t.DoNotDisruptPods {
		if h.Until.IsZero() || h.Until.After(c.f.Now) {
			c.report("do-not-disrupt", "%s runs %s, which must not be evicted", name, h.Pod)
		}
	}
	for _, cp := range t.Pods {
		c.budgets(n, c.f.Movable[cp.Class].Budgets, len(cp.Pods))
	}
	for i := range t.DaemonPods {
		c.budgets(n, t.DaemonPods[i].Budgets, 1)
	}
}

// budgets: the PodDisruptionBudgets of pods on the node allow their eviction. Those of all moves
// are added up.
func (c *moveChecker) budgets(n int, budgets []int, pods int) {
	name := c.p.Nodes[n].Name
	if len(budgets) > 1 {
		c.report("one budget per pod", "%s runs a pod of %d PodDisruptionBudgets", name, len(budgets))
	}
	for _, k := range budgets {
		if c.f.Budgets[k].Blocking || c.f.Budgets[k].Allowed < 1 {
			c.report("PodDisruptionBudget", "%s runs a pod of %s, which allows nothing", name, &c.f.Budgets[k])
		}
		c.spent[k] += pods
		if c.spenders[k] == nil {
			c.spenders[k] = map[int]bool{}
		}
		c.spenders[k][n] = true
	}
}

// policy: the NodePool lets the node be consolidated.
func (c *moveChecker) policy(mv *model.Command, n int) {
	t, name := &c.f.Usages[n], c.p.Nodes[n].Name
	policy := &c.f.Policies[t.Policy]
	if policy.Static || policy.Never || c.restless(n) {
		c.report("policy", "%s is static, never consolidated or not quiet", name)
	}
	_, cost := c.evictions([]int{n})
	if cost > 0 && t.Ending > 0 && t.EndingUntil.After(c.f.Now) {
		c.report("policy", "%d pods of %s are ending", t.Ending, name)
	}
	if t.Returning > 0 && t.ReturningUntil.After(c.f.Now) {
		c.report("policy", "%d pods come again to %s", t.Returning, name)
	}
	if mv.Reason == model.DisruptEmpty && cost > 0 || policy.Consolidation == model.WhenEmpty && cost > 0 {
		c.report("policy", "%s is not empty", name)
	}
}

// restless: pods came or went, or the node came up, less than consolidateAfter
// ago.
func (c *moveChecker) restless(n int) bool {
	t := &c.f.Usages[n]
	if t.Policy < 0 {
		return false
	}
	policy := &c.f.Policies[t.Policy]
	since := t.InitializedAt
	if t.LastPodEvent.After(since) {
		since = t.LastPodEvent
	}
	return !policy.Never && !policy.Static && since.Add(policy.After).After(c.f.Now)
}

func (c *moveChecker) evictions(nodes []int) (pods int, cost float64) {
	for _, n := range nodes {
		for _, cp := range c.f.Usages[n].Pods {
			pods += len(cp.Pods)
			cost += float64(len(cp.Pods)) * max(0, c.f.Movable[cp.Class].EvictionCost)
		}
	}
	return pods, cost
}

// payment: the sums of the move, and for consolidation that it is worth it.
func (c *moveChecker) payment(mv *model.Command) {
	var price, saving model.Money
	spot := true
	for _, n := range mv.Nodes {
		price += c.p.Nodes[n].Price
		spot = spot && c.p.Nodes[n].Labels[model.LabelCapacityType] == string(model.Spot)
	}
	saving = price
	for i := range mv.New {
		saving -= mv.New[i].Best().Price
	}
	pods, cost := c.evictions(mv.Nodes)
	if !mv.FromTemplate && saving != mv.Saving || pods != mv.Evictions || math.Abs(mv.DisruptionCost-cost-float64(len(mv.Nodes))) > 1e-6 {
		c.report("sums", "a move says %s, %d evictions, cost %g; it is %s, %d, %g", mv.Saving,
			mv.Evictions, mv.DisruptionCost, saving, pods, cost+float64(len(mv.Nodes)))
	}
	if forced(mv) {
		return
	}
	terms := &c.f.Terms
	var earned model.Money // with the same pods before
	for _, n := range mv.Nodes {
		if t := &c.f.Usages[n]; slices.ContainsFunc(t.Pods, func(cp model.ClassPods) bool { return len(cp.Pods) > 0 }) {
			earned += t.ExpectedSaving
		}
	}
	if saving < earned {
		c.report("same money", "a move saves %s, and moving the pods to where they are was to save %s", saving, earned)
	}
	if saving < 0 || (saving-earned).Dollars()*terms.Payback.Hours() < terms.EvictionPrice.Dollars()*cost-1e-5 {
		c.report("payment", "a move saves %s and evicts at a cost of %g times %s", saving, cost, terms.EvictionPrice)
	}
	if len(mv.New) > 0 && (saving <= 0 || float64(saving) < c.leastShare(mv)*float64(price)-1) {
		c.report("minimum saving", "a replacement saves %s of %s", saving, price)
	}
	c.spotRules(mv, spot)
	c.balanced(mv, price, saving)
}

// spotRules: spot gives way to spot only where that is switched on, and a single
// node only with enough types to choose from. It gives way to on-demand only where pods or
// NodePool refuse spot, or the machine is paid for in advance.
func (c *moveChecker) spotRules(mv *model.Command, spot bool) {
	for i := range mv.New {
		pool := &c.p.Pools[mv.New[i].Pool]
		types := map[int]bool{}
		newSpot := false
		for k, ref := range mv.New[i].Offerings {
			isSpot := c.p.Catalogs[pool.Catalog].InstanceTypes[ref.InstanceType].Offerings[ref.Offering].CapacityType == model.Spot
			newSpot = newSpot || k == 0 && isSpot
			types[ref.InstanceType] = true
			if newSpot && !isSpot {
				c.report("spot", "a spot replacement may turn out on demand")
			}
			offering := &c.p.Catalogs[pool.Catalog].InstanceTypes[ref.InstanceType].Offerings[ref.Offering]
			if spot && offering.CapacityType == model.OnDemand && offering.Uncovered == 0 && c.allowSpot(&mv.New[i]) {
				c.report("spot to on-demand", "spot nodes are replaced by an on-demand node, and spot is allowed")
			}
		}
		if spot && newSpot && (!c.f.Terms.SpotToSpot || len(mv.Nodes) == 1 && len(mv.New) == 1 && len(types) < 15) {
			c.report("spot to spot", "a spot node is replaced by spot with %d types to choose from", len(types))
		}
	}
}

// allowSpot reports whether a NodePool sells spot on which all pods of a new node may be.
func (c *moveChecker) allowSpot(n *model.NewNode) bool {
	pool := &c.p.Pools[n.Pool]
	cloud := cloudLabels(&c.p)
	return slices.ContainsFunc((&checker{p: &c.p, cloud: cloud}).machinesOf(n.Pool), func(m bought) bool {
		if m.labels[model.LabelCapacityType] != string(model.Spot) || !pool.Requirements.MatchLabels(m.labels) {
			return false
		}
		one := &checker{p: &c.p}
		for _, cp := range n.Pods {
			one.nodeRules("", &c.f.Movable[cp.Class].PodClass, m.labels, pool.Taints)
		}
		return len(one.found) == 0
	})
}

// balanced: k = 2, by pool, savings shared by what the pools' nodes cost.
func (c *moveChecker) balanced(mv *model.Command, price, saving model.Money) {
	for i := range c.f.Policies {
		if c.f.Policies[i].Consolidation != model.Balanced || mv.Evictions == 0 && len(mv.New) == 0 {
			continue
		}
		var own, all model.Money
		var nodes, everyone []int
		for n := range c.f.Problem.Nodes {
			if c.f.Usages[n].Policy != i {
				continue
			}
			all += c.f.Problem.Nodes[n].Price
			everyone = append(everyone, n)
			if slices.Contains(mv.Nodes, n) {
				own += c.f.Problem.Nodes[n].Price
				nodes = append(nodes, n)
			}
		}
		if len(nodes) == 0 {
			continue
		}
		_, cost := c.evictions(nodes)
		_, total := c.evictions(everyone)
		savingShare := saving.Dollars() * own.Dollars() / price.Dollars() / all.Dollars()
		if disruptionShare := (cost + float64(len(nodes))) / (total + float64(len(everyone))); savingShare < disruptionShare/2-1e-9 {
			c.report("balanced", "a move saves %g of NodePool %s for %g of its disruption", savingShare, c.f.Policies[i].Pool, disruptionShare)
		}
	}
}

// staying says which pods of a node, by movable class and index, get no place: those which nothing
// may evict when it goes, because it has drifted or expires, before its grace period has ended.
func (c *moveChecker) staying(mv *model.Command, n int) func(class, pod int) bool {
	t, at := &c.f.Usages[n], c.f.Now
	if mv.Reason == model.DisruptExpired && t.ExpiresAt.After(at) {
		at = t.ExpiresAt
	}
	bounded := t.GracePeriod && (mv.Reason == model.DisruptDrifted || mv.Reason == model.DisruptExpired)
	return func(class, pod int) bool {
		budgets, ref := c.f.Movable[class].Budgets, c.f.Movable[class].Pods[pod]
		held := slices.ContainsFunc(t.DoNotDisruptPods, func(h model.DoNotDisruptPod) bool {
			return h.Pod == ref && h.Why == "" && (h.Until.IsZero() || h.Until.After(at))
		})
		return bounded && (held || len(budgets) > 1 || len(budgets) == 1 && c.f.Budgets[budgets[0]].Blocking)
	}
}

// evicted: all pods of the move's nodes have a place, by Check, but those that stay until the
// grace period of their node has ended.
func (c *moveChecker) evicted(mv *model.Command) {
	p := c.p
	p.Classes = nil
	number := map[[2]int]int{} // movable class and pod -> index in its class of p
	class := map[int]int{}
	for _, n := range mv.Nodes {
		stays := c.staying(mv, n)
		for _, cp := range c.f.Usages[n].Pods {
			at, ok := class[cp.Class]
			if !ok {
				at = len(p.Classes)
				class[cp.Class] = at
				pc := c.f.Movable[cp.Class].PodClass
				pc.Pods = nil
				p.Classes = append(p.Classes, pc)
			}
			for _, pod := range cp.Pods {
				if stays(cp.Class, pod) {
					continue
				}
				number[[2]int{cp.Class, pod}] = len(p.Classes[at].Pods)
				p.Classes[at].Pods = append(p.Classes[at].Pods, c.f.Movable[cp.Class].Pods[pod])
			}
		}
	}
	translate := func(list []model.ClassPods) []model.ClassPods {
		var out []model.ClassPods
		for _, cp := range list {
			own := model.ClassPods{Class: -1}
			if at, ok := class[cp.Class]; ok {
				own.Class = at
			}
			for _, pod := range cp.Pods {
				i, ok := number[[2]int{cp.Class, pod}]
				if !ok {
					i = -1
				}
				own.Pods = append(own.Pods, i)
			}
			out = append(out, own)
		}
		return out
	}
	plan := &model.Plan{}
	for _, pl := range mv.Placements {
		c.destination(mv, pl.Node)
		plan.Placements = append(plan.Placements, model.Placement{Node: pl.Node, Pods: translate(pl.Pods)})
	}
	for _, n := range mv.New {
		n.Pods = translate(n.Pods)
		plan.NewNodes = append(plan.NewNodes, n)
		plan.Cost += n.Best().Price
	}
	c.found = append(c.found, Check(&p, plan)...)
	c.apply(mv)
}

// destination: a node that gets pods is ready, stays, and for consolidation is quiet.
func (c *moveChecker) destination(mv *model.Command, n int) {
	t, node, restless := &c.f.Usages[n], &c.p.Nodes[n], !forced(mv) && c.restless(n)
	if c.gone[n] || t.Disrupting || !t.Initialized || !t.Ready || node.State != model.NodeReady || restless {
		c.report("destination", "%s gets pods: gone %v, marked %v, initialized %v, ready %v, restless %v",
			node.Name, c.gone[n], t.Disrupting, t.Initialized, t.Ready, restless)
	}
	c.received[n] = true
}

// apply books what the move does to nodes and limits. The machines that it buys
// count for topology, and no other pods go there.
func (c *moveChecker) apply(mv *model.Command) {
	take := func(node *model.Node, list []model.ClassPods) {
		node.Bound, node.Attached, node.HostPorts = slices.Clone(node.Bound), slices.Clone(node.Attached), slices.Clone(node.HostPorts)
		for _, cp := range list {
			m := &c.f.Movable[cp.Class]
			node.Bound = append(node.Bound, model.BoundPods{Shape: c.shapes + cp.Class, Count: len(cp.Pods)})
			for range cp.Pods {
				r := m.Requests
				if r.Get(model.Pods) == 0 {
					r = r.Add(model.Resources{model.Pods: 1})
				}
				node.Used = node.Used.Add(r)
				node.HostPorts = append(node.HostPorts, m.HostPorts...)
			}
			node.VolumeSlots = c.attach(node, m, len(cp.Pods))
		}
	}
	for _, pl := range mv.Placements {
		take(&c.p.Nodes[pl.Node], pl.Pods)
	}
	cloud := cloudLabels(&c.p)
	for i := range mv.New {
		n := &mv.New[i]
		pool := &c.p.Pools[n.Pool]
		t := &c.p.Catalogs[pool.Catalog].InstanceTypes[n.Best().InstanceType]
		node := model.Node{
			Name: "bought-" + itoa(len(c.p.Nodes)), Pool: pool.Name, State: model.NodeLaunching, Taints: pool.Taints,
			Labels: machineLabels(&c.p, cloud[pool.Catalog], pool, n.Best(), n.Requirements), Allocatable: t.Allocatable(),
		}
		take(&node, n.Pods)
		c.p.Nodes = append(c.p.Nodes, node)
		pool.Usage = pool.Usage.Add(t.Capacity)
		pool.Nodes++
		pool.Cost += n.Best().Price
		for _, q := range t.Offerings[n.Best().Offering].Quotas {
			for k := range c.p.Quotas {
				if c.p.Quotas[k].Name == q.Quota {
					c.p.Quotas[k].Left -= q.Amount
				}
			}
		}
	}
}

// attach returns the slots that are left after so many pods of a class, and notes
// shared disks.
func (c *moveChecker) attach(node *model.Node, m *model.MovableClass, pods int) map[string]int {
	slots := map[string]int{}
	for d, n := range node.VolumeSlots {
		slots[d] = n
	}
	for range pods {
		own := map[model.Volume]bool{}
		for _, v := range m.Volumes {
			if v.ID != "" && slices.Contains(node.Attached, v) || own[v] {
				continue
			}
			if v.ID != "" {
				node.Attached = append(node.Attached, v)
			} else {
				own[v] = true
			}
			if _, limited := slots[v.Driver]; limited {
				slots[v.Driver]--
			}
		}
	}
	return slots
}

// together: PodDisruptionBudgets over all moves, the totals, and a reason for
// every node that stays.
func (c *moveChecker) together(moves *model.Commands) {
	for k, n := range c.spent {
		b := &c.f.Budgets[k]
		if n > 0 && n+b.Owed > b.Allowed && (len(c.spenders[k]) > 1 || b.Owed > 0) {
			c.report("PodDisruptionBudget", "%s: %d evictions from %d nodes, allowed are %d, of which nodes that go already take %d",
				b, n, len(c.spenders[k]), b.Allowed, b.Owed)
		}
	}
	var before, saving model.Money
	evictions := 0
	for i := range moves.Commands {
		saving += moves.Commands[i].Saving
		evictions += moves.Commands[i].Evictions
	}
	stays := map[int]bool{}
	for i := range moves.Kept {
		s := &moves.Kept[i]
		if stays[s.Node] || c.gone[s.Node] || s.Reason == "" || s.Message == "" {
			c.report("stays", "%s stays twice, is removed, or has no reason", c.f.Problem.Nodes[s.Node].Name)
		}
		stays[s.Node] = true
	}
	for n := range c.f.Problem.Nodes {
		before += c.f.Problem.Nodes[n].Price
		if c.f.Usages[n].Policy >= 0 && !c.gone[n] && !stays[n] {
			c.report("stays", "nothing says why %s stays", c.f.Problem.Nodes[n].Name)
		}
	}
	if moves.Before != before || moves.After != before-saving || moves.Evictions != evictions {
		c.report("sums", "from %s to %s with %d evictions, it is from %s to %s with %d",
			moves.Before, moves.After, moves.Evictions, before, before-saving, evictions)
	}
	if moves.LowerBound > moves.After {
		c.report("lower bound", "%s is above %s", moves.LowerBound, moves.After)
	}
}
