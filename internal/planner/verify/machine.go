package verify

import (
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// cloudLabels are, per catalogue, the labels that a pool cannot make up.
func cloudLabels(p *model.Problem) []map[string]bool {
	out := make([]map[string]bool, len(p.Catalogs))
	for c := range p.Catalogs {
		cloud := map[string]bool{}
		for _, k := range []string{model.LabelZone, model.LabelCapacityType, model.LabelInstanceType,
			"kubernetes.io/arch", "kubernetes.io/os", "topology.kubernetes.io/region"} {
			cloud[k] = true
		}
		for _, k := range p.Catalogs[c].LabelKeys {
			cloud[k] = true
		}
		for i := range p.Catalogs[c].InstanceTypes {
			t := &p.Catalogs[c].InstanceTypes[i]
			for k := range t.Labels {
				cloud[k] = true
			}
			for k := range t.Choices {
				cloud[k] = true
			}
			for j := range t.Offerings {
				for k := range t.Offerings[j].Labels {
					cloud[k] = true
				}
			}
		}
		out[c] = cloud
	}
	return out
}

// labelsOf are the labels of a new machine under one of its offerings, with what narrowed,
// the NodeClaim's own requirements, settles of the labels that are open.
func (c *checker) labelsOf(pool int, ref model.OfferingRef, narrowed model.Requirements) map[string]string {
	src := &c.p.Pools[pool]
	return machineLabels(c.p, c.cloud[src.Catalog], src, ref, narrowed)
}

// someValue stands for the value of a label that machines of a pool have although
// it is not settled which one it is.
const someValue = "some value"

// machineLabels are the labels of a machine bought from the pool under an
// offering, as far as they are determined; the node's own requirements say
// which of the open ones it gets.
func machineLabels(p *model.Problem, cloud map[string]bool, pool *model.Pool,
	ref model.OfferingRef, narrowed model.Requirements) map[string]string {
	t := &p.Catalogs[pool.Catalog].InstanceTypes[ref.InstanceType]
	o := &t.Offerings[ref.Offering]
	labels := map[string]string{}
	for k, v := range pool.Labels {
		if !cloud[k] {
			labels[k] = v
		}
	}
	for _, r := range pool.Requirements {
		// A label of the pool's own exists on its nodes unless the pool allows
		// its absence; which value it has is open unless there is but one.
		if cloud[r.Key] || r.Matches("", false) {
			continue
		}
		if _, set := labels[r.Key]; !set {
			labels[r.Key] = someValue
		}
		if value, ok := onlyValue(pool.Requirements, r); ok {
			labels[r.Key] = value
		}
	}
	for k, v := range t.Labels {
		labels[k] = v
	}
	for _, r := range narrowed {
		_, choice := t.Choices[r.Key]
		if r.Operator == model.In && len(r.Values) == 1 && (choice || !cloud[r.Key]) {
			labels[r.Key] = r.Values[0]
		}
	}
	labels[model.LabelInstanceType] = t.Name
	if o.Zone != "" {
		labels[model.LabelZone] = o.Zone
	}
	if o.CapacityType != "" {
		labels[model.LabelCapacityType] = string(o.CapacityType)
	}
	for k, v := range o.Labels {
		labels[k] = v
	}
	labels[model.LabelNodePool] = pool.Name
	labels[model.LabelHostname] = "not known yet"
	labels["karpenter.sh/registered"] = "true"
	labels["karpenter.sh/initialized"] = "true"
	return labels
}

// onlyValue is the value of a requirement's list that all other requirements on its
// key allow, if there is exactly one.
func onlyValue(all model.Requirements, r model.Requirement) (only string, ok bool) {
	if r.Operator != model.In {
		return "", false
	}
	for _, v := range r.Values {
		allowed := true
		for _, other := range all {
			allowed = allowed && (other.Key != r.Key || other.Matches(v, true))
		}
		if allowed && ok {
			return "", false
		}
		if allowed {
			only, ok = v, true
		}
	}
	return only, ok
}

// newNode: every offering of the machine may and can hold its pods next to the
// daemons that will run there, and follows the pool's rules. The first offering is the plan
// and need not be the cheapest: a limit may leave no room for that one. All others come
// cheapest first.
func (c *checker) newNode(i int, n *model.NewNode) {
	if n.Pool < 0 || n.Pool >= len(c.p.Pools) || len(n.Offerings) == 0 || len(n.Pods) == 0 {
		c.report("new node", "new node %d has no pool, no offering or no pods", i)
		return
	}
	pool := &c.p.Pools[n.Pool]
	types := c.p.Catalogs[pool.Catalog].InstanceTypes
	distinct := map[string]bool{}
	seen := map[[2]int]bool{}
	for k, ref := range n.Offerings {
		if ref.InstanceType < 0 || ref.InstanceType >= len(types) || ref.Offering < 0 || ref.Offering >= len(types[ref.InstanceType].Offerings) {
			c.report("new node", "new node %d names an offering that does not exist", i)
			return
		}
		t := &types[ref.InstanceType]
		where := fmt.Sprintf("new node %d as %s in %s", i, t.Name, t.Offerings[ref.Offering].Zone)
		if seen[[2]int{ref.InstanceType, ref.Offering}] {
			c.report("alternatives", "%s: listed twice", where)
		}
		seen[[2]int{ref.InstanceType, ref.Offering}] = true
		if ref.Price != t.Offerings[ref.Offering].Price {
			c.report("alternatives", "%s: price %s, the catalogue says %s", where, ref.Price, t.Offerings[ref.Offering].Price)
		}
		if k > 1 && ref.Price < n.Offerings[k-1].Price {
			c.report("alternatives", "%s: cheaper than the one before it", where)
		}
		distinct[t.Name] = true
		c.machine(where, n, ref)
	}
	limit := c.p.Policy.MaxInstanceTypes
	if limit == 0 {
		limit = 600
	}
	if len(distinct) > limit {
		c.report("alternatives", "new node %d has %d instance types, allowed are %d", i, len(distinct), limit)
	}
	c.minValues(i, n)
}

// machine: under one of its offerings, a new node is sold, has the labels that its pool and
// its own requirements ask for, and allows and holds its pods beside the daemons that run
// there. The plan's own limits are not looked at (lines).
func (c *checker) machine(where string, n *model.NewNode, ref model.OfferingRef) {
	pool := &c.p.Pools[n.Pool]
	t := &c.p.Catalogs[pool.Catalog].InstanceTypes[ref.InstanceType]
	if !t.Offerings[ref.Offering].Available {
		c.report("availability", "%s: not available", where)
	}
	labels := c.labelsOf(n.Pool, ref, n.Requirements)
	for _, rs := range []model.Requirements{pool.Requirements, n.Requirements} {
		for _, r := range rs {
			v, ok := labels[r.Key]
			if !r.Matches(v, ok) && v != someValue {
				if _, choice := t.Choices[r.Key]; !choice {
					c.report("pool requirements", "%s: label %q=%q does not meet %s", where, r.Key, v, r)
				}
			}
		}
	}
	for _, r := range n.Requirements {
		_, fixed := pool.Labels[r.Key]
		known := slices.ContainsFunc(pool.Requirements, func(o model.Requirement) bool { return o.Key == r.Key })
		if !fixed && !known && !c.cloud[pool.Catalog][r.Key] && !r.Matches("", false) {
			c.report("pool requirements", "%s: NodePool %s does not know the label that %s asks for", where, pool.Name, r)
		}
	}
	for _, cp := range n.Pods {
		class := &c.p.Classes[cp.Class]
		c.nodeRules(where, class, labels, pool.Taints)
		if price := t.Offerings[ref.Offering].Price; class.MaxPrice > 0 && price > class.MaxPrice {
			c.report("maximum price", "%s: costs %s, pods of class %d allow %s", where, price, cp.Class, class.MaxPrice)
		}
	}
	free := t.Capacity.Sub(t.Overhead)
	var ports []model.HostPort
	for i := range pool.Daemons {
		d := &pool.Daemons[i]
		if model.Untolerated(pool.Taints, d.Tolerations) != nil || !oneHolds(d.Requirements, labels) {
			continue
		}
		r := d.Requests
		if r.Get(model.Pods) == 0 {
			r = r.Add(model.Resources{model.Pods: 1})
		}
		free = free.Sub(r)
		ports = append(ports, d.HostPorts...)
	}
	c.podsFit(where, n.Pods, free, ports, t.VolumeSlots, nil)
}

// minValues: the alternatives keep enough different values of every key for
// which the pool asks that, unless the policy gives it up.
func (c *checker) minValues(i int, n *model.NewNode) {
	if c.p.Policy.RelaxMinValues {
		return
	}
	pool := &c.p.Pools[n.Pool]
	for _, r := range pool.Requirements {
		values := map[string]bool{}
		for _, ref := range n.Offerings {
			if v, ok := c.labelsOf(n.Pool, ref, n.Requirements)[r.Key]; ok {
				values[v] = true
			}
		}
		if len(values) < r.MinValues {
			c.report("minValues", "new node %d keeps %d values of %s, pool %s wants %d", i, len(values), r.Key, pool.Name, r.MinValues)
		}
	}
}

// lines: what the plan counts on, the first offering of each new node, stays within limits,
// quotas and reservations. A line that is exceeded already is no violation as long as the
// plan adds nothing to it.
func (c *checker) lines() {
	usage := make([]model.Resources, len(c.p.Pools))
	nodes := make([]int, len(c.p.Pools))
	costs := make([]model.Money, len(c.p.Pools))
	quota := map[string]int64{}
	reserved := map[string]int{}
	room := map[string]int{}
	for i := range c.plan.NewNodes {
		n := &c.plan.NewNodes[i]
		pool := &c.p.Pools[n.Pool]
		t := &c.p.Catalogs[pool.Catalog].InstanceTypes[n.Offerings[0].InstanceType]
		o := &t.Offerings[n.Offerings[0].Offering]
		usage[n.Pool] = usage[n.Pool].Add(t.Capacity)
		nodes[n.Pool]++
		costs[n.Pool] += o.Price
		for _, q := range o.Quotas {
			quota[q.Quota] += q.Amount
		}
		if o.CapacityType == model.Reserved {
			id := o.Reservation
			if id == "" {
				id = fmt.Sprintf("%s/%s/%d", pool.Name, t.Name, n.Offerings[0].Offering)
			}
			reserved[id]++
			room[id] = o.Remaining
			if reserved[id] > room[id] {
				c.report("reservations", "%d machines from reservation %s, which holds %d", reserved[id], id, room[id])
			}
		}
	}
	for i := range c.p.Pools {
		pool := &c.p.Pools[i]
		for _, l := range pool.Limits {
			if used := usage[i].Get(l.Axis); used > 0 && pool.Usage.Get(l.Axis)+used > l.Value {
				c.report("limits", "pool %s: axis %d would reach %d of %d", pool.Name, l.Axis, pool.Usage.Get(l.Axis)+used, l.Value)
			}
		}
		if nodes[i] > 0 && pool.NodeLimit >= 0 && pool.Nodes+nodes[i] > pool.NodeLimit {
			c.report("limits", "pool %s: %d nodes of %d", pool.Name, pool.Nodes+nodes[i], pool.NodeLimit)
		}
		if costs[i] > 0 && pool.CostLimit != nil && pool.Cost+costs[i] > *pool.CostLimit {
			c.report("limits", "pool %s: %s of %s", pool.Name, pool.Cost+costs[i], *pool.CostLimit)
		}
	}
	for _, q := range c.p.Quotas {
		if used := quota[q.Name]; used > 0 && used > q.Left {
			c.report("quotas", "quota %s: %d of %d", q.Name, used, q.Left)
		}
	}
}

// sums: the plan's cost is that of its machines, and its bound is below it.
func (c *checker) sums() {
	var cost model.Money
	for i := range c.plan.NewNodes {
		cost += c.plan.NewNodes[i].Offerings[0].Price
	}
	if cost != c.plan.Cost {
		c.report("cost", "machines cost %s, the plan says %s", cost, c.plan.Cost)
	}
	if c.plan.LowerBound > cost {
		c.report("lower bound", "bound %s is above the plan's own cost %s", c.plan.LowerBound, cost)
	}
	if c.plan.Fewer != (model.FewerMachines{}) {
		c.nearTie(cost)
	}
}
