package verify

import (
	"github.com/nodeautoprovision/nap/internal/model"
)

// Optimum is the best that any plan can do.
type Optimum struct {
	// Unschedulable is the least number of pods that must stay without a place,
	// Cost the lowest price per hour at which that is reached.
	Unschedulable int
	Cost          model.Money
	// Plan reaches it, with one offering per machine.
	Plan *model.Plan
}

// Cheapest finds the optimum by trying every assignment of every pod. It is
// meant for a handful of pods and offerings. Preferences, minValues and weights
// are not looked at.
func Cheapest(p *model.Problem) Optimum {
	easy := *p
	easy.Policy.RelaxMinValues = true
	s := &search{check: &checker{p: &easy, cloud: cloudLabels(p)}}
	for class := range p.Classes {
		for pod := range p.Classes[class].Pods {
			s.pods = append(s.pods, [2]int{class, pod})
		}
	}
	s.byClass = make([][]bought, len(p.Classes))
	for class := range p.Classes {
		for pool := range p.Pools {
			all := s.check.machinesFor(pool, &p.Classes[class], func(map[string]string) bool { return true })
			s.byClass[class] = append(s.byClass[class], all...)
		}
	}
	s.plan = &model.Plan{}
	for missing := 0; ; missing++ {
		s.try(0, missing)
		if s.best != nil {
			return Optimum{missing, s.best.Cost, s.best}
		}
	}
}

// search is the state of trying everything.
type search struct {
	// check judges single nodes of the problem; its plan is not set.
	check *checker
	// pods are all pods, each as its class and its index there.
	pods [][2]int
	// byClass are, by class, the nodes that can be bought for one of its pods alone.
	byClass [][]bought
	// plan is the one under construction, with its price so far; its pods are those up
	// to the present one.
	plan *model.Plan
	// best is the cheapest complete plan that broke no rule, or nil.
	best *model.Plan
}

// try places the pods from the i-th on, of which just missing stay out: on every new node
// that the plan has, every existing one, every node that could be bought, and nowhere. It
// leaves the plan as it was.
func (s *search) try(i, missing int) {
	if s.best != nil && s.plan.Cost >= s.best.Cost { // prices are not negative: it cannot become cheaper
		return
	}
	if i == len(s.pods) {
		if missing == 0 {
			s.judge()
		}
		return
	}
	class, pod := s.pods[i][0], s.pods[i][1]
	plan := s.plan
	for n := range plan.NewNodes {
		node := &plan.NewNodes[n]
		before := node.Pods
		node.Pods = with(before, class, pod)
		if s.machineHolds(node) {
			s.try(i+1, missing)
		}
		plan.NewNodes[n].Pods = before
	}
	for n := range s.check.p.Nodes {
		s.tryNode(i, missing, n)
	}
	for _, m := range s.byClass[class] {
		plan.NewNodes = append(plan.NewNodes, model.NewNode{
			Pool: m.pool, Offerings: []model.OfferingRef{m.ref}, Requirements: m.narrow, Pods: with(nil, class, pod),
		})
		plan.Cost += m.ref.Price
		s.try(i+1, missing)
		plan.Cost -= m.ref.Price
		plan.NewNodes = plan.NewNodes[:len(plan.NewNodes)-1]
	}
	if missing > 0 {
		plan.Unschedulable = append(plan.Unschedulable, model.Unschedulable{Class: class, Pods: []int{pod}, Reason: "left out"})
		s.try(i+1, missing-1)
		plan.Unschedulable = plan.Unschedulable[:len(plan.Unschedulable)-1]
	}
}

// tryNode puts the i-th pod on an existing node, if it fits there, and tries the rest.
func (s *search) tryNode(i, missing, n int) {
	plan := s.plan
	at := -1
	for k := range plan.Placements {
		if plan.Placements[k].Node == n {
			at = k
		}
	}
	if at < 0 {
		plan.Placements = append(plan.Placements, model.Placement{Node: n})
		at = len(plan.Placements) - 1
		defer func() { plan.Placements = plan.Placements[:at] }()
	}
	before := plan.Placements[at].Pods
	plan.Placements[at].Pods = with(before, s.pods[i][0], s.pods[i][1])
	s.check.found = nil
	s.check.placement(&plan.Placements[at])
	if len(s.check.found) == 0 {
		s.try(i+1, missing)
	}
	plan.Placements[at].Pods = before
}

// machineHolds reports whether the one offering of a new node may and can hold its pods.
func (s *search) machineHolds(n *model.NewNode) bool {
	s.check.found = nil
	s.check.machine("", n, n.Offerings[0])
	return len(s.check.found) == 0
}

// judge keeps the plan if it breaks no rule, also of those that speak of several places:
// limits and topology. Precondition: it is cheaper than the best so far.
func (s *search) judge() {
	c := &checker{p: s.check.p, cloud: s.check.cloud, plan: s.plan}
	c.places()
	if len(c.found) == 0 {
		c.topology()
	}
	if len(c.found) > 0 {
		return
	}
	best := *s.plan
	best.NewNodes = append([]model.NewNode(nil), s.plan.NewNodes...)
	best.Placements = append([]model.Placement(nil), s.plan.Placements...)
	best.Unschedulable = append([]model.Unschedulable(nil), s.plan.Unschedulable...)
	s.best = &best
}

// with returns the pods and one more. Neither list shares what the other changes, so that
// the caller can go back to the old one.
func with(pods []model.ClassPods, class, pod int) []model.ClassPods {
	out := make([]model.ClassPods, 0, len(pods)+1)
	found := false
	for _, cp := range pods {
		if cp.Class == class {
			cp.Pods = append(cp.Pods[:len(cp.Pods):len(cp.Pods)], pod)
			found = true
		}
		out = append(out, cp)
	}
	if !found {
		out = append(out, model.ClassPods{Class: class, Pods: []int{pod}})
	}
	return out
}
