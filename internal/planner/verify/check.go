// Package verify checks plans with none of the planner's code: it states every
// rule again, plainly and slowly.
//
// [Check] verifies a whole plan, [CheckPlaces] the part of it that is cheap
// enough to run before each purchase, and [CheckMoves] the commands of
// consolidation. [Cheapest] is the reference solver: it finds the optimum of
// tiny problems by trying every assignment.
//
// See docs/planner.md, section "Explanation and verification".
package verify

import (
	"fmt"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Violation is one rule that a plan breaks.
type Violation struct {
	// Rule is a short name of the rule, Message the sentence with the figures.
	Rule, Message string
}

// String is "rule: message".
func (v Violation) String() string { return v.Rule + ": " + v.Message }

// checker collects violations of one plan. A method that is named for a rule reports what
// breaks it, and goes on: one plan may break several.
type checker struct {
	p    *model.Problem
	plan *model.Plan
	// cloud are, by catalogue, the labels that a NodePool cannot make up.
	cloud []map[string]bool
	// machines remembers machinesOf.
	machines map[int][]bought
	// found are the violations so far, in the order in which rules were checked.
	found []Violation
}

func (c *checker) report(rule, format string, args ...any) {
	c.found = append(c.found, Violation{rule, fmt.Sprintf(format, args...)})
}

// Check returns everything that is wrong with the plan, in a fixed order.
// It checks topology by finding an order in which a scheduler would let every
// pod into its place.
func Check(p *model.Problem, plan *model.Plan) []Violation {
	c := &checker{p: p, plan: plan, cloud: cloudLabels(p)}
	c.places()
	if len(c.found) == 0 {
		c.topology()
	}
	return c.found
}

// CheckPlaces checks everything but topology: that every pod is accounted for
// once, that every node and every offering of every new machine may and can
// hold its pods, that limits, quotas and reservations suffice, and the sums.
func CheckPlaces(p *model.Problem, plan *model.Plan) []Violation {
	c := &checker{p: p, plan: plan, cloud: cloudLabels(p)}
	c.places()
	return c.found
}

// places states every rule but topology. Sums are worth checking only if the parts are
// sound: a pod that is placed twice breaks all of them.
func (c *checker) places() {
	if !c.everyPodOnce() {
		return
	}
	for i := range c.plan.Placements {
		c.placement(&c.plan.Placements[i])
	}
	for i := range c.plan.NewNodes {
		c.newNode(i, &c.plan.NewNodes[i])
	}
	if len(c.found) == 0 {
		c.lines()
		c.sums()
		c.shares()
	}
}

// everyPodOnce: each pod is on exactly one place or unschedulable.
func (c *checker) everyPodOnce() bool {
	seen := make([][]bool, len(c.p.Classes))
	for i := range seen {
		seen[i] = make([]bool, len(c.p.Classes[i].Pods))
	}
	ok := true
	visit := func(class int, pods []int, where string) {
		if class < 0 || class >= len(seen) {
			c.report("every pod once", "%s names class %d, which does not exist", where, class)
			ok = false
			return
		}
		if len(pods) == 0 {
			c.report("every pod once", "%s names class %d without pods", where, class)
			ok = false
		}
		for _, i := range pods {
			if i < 0 || i >= len(seen[class]) || seen[class][i] {
				c.report("every pod once", "%s: pod %d of class %d does not exist or is placed twice", where, i, class)
				ok = false
				return
			}
			seen[class][i] = true
		}
	}
	for i, n := range c.plan.NewNodes {
		for _, cp := range n.Pods {
			visit(cp.Class, cp.Pods, fmt.Sprintf("new node %d", i))
		}
	}
	for i, n := range c.plan.Placements {
		for _, cp := range n.Pods {
			visit(cp.Class, cp.Pods, fmt.Sprintf("placement %d", i))
		}
	}
	for _, u := range c.plan.Unschedulable {
		visit(u.Class, u.Pods, "unschedulable")
		if u.Reason == "" {
			c.report("every pod once", "class %d is unschedulable without a reason", u.Class)
		}
	}
	for class := range seen {
		for i := range seen[class] {
			if !seen[class][i] {
				c.report("every pod once", "pod %s is neither placed nor unschedulable", c.p.Classes[class].Pods[i])
				return false
			}
		}
	}
	return ok
}

// podsFit: requests, ports and disks of the pods fit together into what is free, beside the
// ports that are taken and the disks that are attached. A disk that is there already, or
// that another of these pods brings, takes no further slot; a driver without an entry in
// slots has no limit.
func (c *checker) podsFit(where string, pods []model.ClassPods, free model.Resources,
	ports []model.HostPort, slots map[string]int, attached []model.Volume) {
	var sum model.Resources
	disks := map[string]int{}
	have := map[model.Volume]bool{}
	for _, v := range attached {
		have[v] = true
	}
	for _, cp := range pods {
		class := &c.p.Classes[cp.Class]
		for range cp.Pods {
			r := class.Requests
			if r.Get(model.Pods) == 0 {
				r = r.Add(model.Resources{model.Pods: 1})
			}
			sum = sum.Add(r)
			for _, hp := range class.HostPorts {
				for _, taken := range ports {
					if hp.Conflicts(taken) {
						c.report("host ports", "%s: port %d is taken twice", where, hp.Port)
					}
				}
			}
			ports = append(ports[:len(ports):len(ports)], class.HostPorts...)
			for _, v := range class.Volumes {
				if v.ID != "" && have[v] {
					continue
				}
				have[v] = true
				disks[v.Driver]++
			}
		}
	}
	if !fits(sum, free) {
		c.report("resources", "%s: pods take %v, free are %v", where, sum, free)
	}
	for driver, limit := range slots {
		if disks[driver] > limit {
			c.report("volume slots", "%s: %d new disks of %s, %d slots", where, disks[driver], driver, limit)
		}
	}
}

// nodeRules: labels meet the pod's node rules and taints are tolerated.
func (c *checker) nodeRules(where string, class *model.PodClass, labels map[string]string, taints []model.Taint) {
	if !class.NodeRequirements.MatchLabels(labels) {
		c.report("node selector", "%s: labels do not meet %s", where, class.NodeRequirements)
	}
	if !oneHolds(class.NodeAlternatives, labels) {
		c.report("node affinity", "%s: labels meet none of %v", where, class.NodeAlternatives)
	}
	if !oneHolds(class.VolumeAlternatives, labels) {
		c.report("volume topology", "%s: labels meet none of %v", where, class.VolumeAlternatives)
	}
	if !class.Devices.MatchLabels(labels) {
		c.report("devices", "%s: labels do not meet %s", where, class.Devices)
	}
	if t := model.Untolerated(taints, class.Tolerations); t != nil {
		c.report("taints", "%s: %s is not tolerated", where, t)
	}
}

// oneHolds reports whether the labels meet one of the alternatives, or there are none.
func oneHolds(alternatives []model.Requirements, labels map[string]string) bool {
	for _, rs := range alternatives {
		if rs.MatchLabels(labels) {
			return true
		}
	}
	return len(alternatives) == 0
}

// placement: pods go only to a node that exists and stays, whose labels and taints allow
// them and which has room for all of them together.
func (c *checker) placement(pl *model.Placement) {
	if pl.Node < 0 || pl.Node >= len(c.p.Nodes) {
		c.report("placement", "node %d does not exist", pl.Node)
		return
	}
	node := &c.p.Nodes[pl.Node]
	where := "node " + node.Name
	if node.State == model.NodeLeaving {
		c.report("leaving", "%s is being drained and gets pods", where)
	}
	for _, cp := range pl.Pods {
		c.nodeRules(where, &c.p.Classes[cp.Class], nodeLabels(node), node.Taints)
	}
	c.podsFit(where, pl.Pods, node.Free(), node.HostPorts, node.VolumeSlots, node.Attached)
}

// nodeLabels are the labels that the node has, and those that it will have
// once it is up.
func nodeLabels(n *model.Node) map[string]string {
	labels := map[string]string{}
	if n.Pool != "" {
		labels[model.LabelNodePool] = n.Pool
	}
	if n.State == model.NodeLaunching {
		labels[model.LabelHostname] = "not known yet"
	}
	if n.State == model.NodeLaunching || n.State == model.NodeRegistered {
		labels["karpenter.sh/registered"] = "true"
		labels["karpenter.sh/initialized"] = "true"
	}
	for k, v := range n.Labels {
		labels[k] = v
	}
	return labels
}

// fits is the scheduler's rule: a pod that asks for nothing of a resource may also come
// where there is less than nothing left of it.
func fits(wanted, free model.Resources) bool {
	for axis, amount := range wanted {
		if amount > 0 && amount > free.Get(axis) {
			return false
		}
	}
	return true
}
