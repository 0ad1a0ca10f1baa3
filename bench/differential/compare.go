package differential

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/workload"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/karpenterengine"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

// The kinds of findings.
const (
	// BrokenRule is a plan of nap that breaks a rule.
	BrokenRule = "broken rule"
	// LostPod is a pod that Karpenter schedules and nap does not.
	LostPod = "lost pod"
	// Dearer is a plan of nap that costs more for the same pods.
	Dearer = "dearer"
	// WrongBound is a lower bound above the cost of a plan of Karpenter's for the
	// same pods that breaks no rule.
	WrongBound = "wrong bound"
	// Preferring is a plan of nap that costs more only because of preferences: the
	// engines honour different ones, and without any nap pays no more. It does not
	// contradict the promise.
	Preferring = "preferring"
	// KarpenterBroken is a plan of Karpenter's that breaks a rule. It speaks
	// against the promise of neither, but each such case must be understood.
	KarpenterBroken = "karpenter broken"
)

// Finding is one contradiction.
type Finding struct{ Kind, Message string }

// Comparison is what came of one cluster.
type Comparison struct {
	Findings []Finding
	// Pods were to be placed; NapOnly are those that only nap places.
	Pods, NapOnly int
	// NapCost and KarpenterCost are dollars per hour for the pods that Karpenter
	// places; both are zero where costs cannot be compared.
	NapCost, KarpenterCost float64
}

// Has reports whether there is a finding of the kind.
func (c *Comparison) Has(kind string) bool {
	return slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Kind == kind })
}

func (c *Comparison) find(kind, format string, args ...any) {
	c.Findings = append(c.Findings, Finding{kind, fmt.Sprintf(format, args...)})
}

// Compare runs both engines on a cluster.
func Compare(ctx context.Context, in *workload.Input) (*Comparison, error) {
	c := &Comparison{Pods: in.Pods()}
	s, err := karpenterengine.New(ctx, in, karpenterengine.Options{})
	if err != nil {
		return nil, err
	}
	theirs, err := s.Solve(ctx)
	if err != nil {
		return nil, err
	}
	stated, plan, err := solve(ctx, in, little)
	if err != nil {
		return nil, err
	}
	for _, v := range verify.Check(stated.Problem, plan) {
		c.find(BrokenRule, "%s", v)
	}
	translated, err := translate(stated, theirs)
	if err != nil {
		c.find(LostPod, "%v", err)
		return c, nil
	}
	broken := checkTheirs(stated.Problem, translated, theirs)
	for _, v := range broken {
		c.find(KarpenterBroken, "%s", v)
	}
	if len(broken) == 0 {
		c.lostPods(stated, plan, theirs, translated)
		err = c.samePods(ctx, in, theirs)
	}
	return c, err
}

// checkTheirs checks a plan of Karpenter's.
//
// "minValues counts what can be bought": the plan names one offering for each
// machine, so that minValues must be judged by the NodeClaims.
func checkTheirs(p *model.Problem, plan *model.Plan, theirs *karpenterengine.Result) []verify.Violation {
	relaxed := *p
	relaxed.Policy.RelaxMinValues = true
	broken := verify.Check(&relaxed, plan)
	for i := range theirs.Nodes {
		if why := theirs.Nodes[i].Scant; why != "" {
			broken = append(broken, verify.Violation{Rule: "minValues", Message: why})
		}
	}
	return broken
}

// little and usual are how much nap works on a plan: the controller's default is
// spent only where little does not beat Karpenter.
const (
	little = 20 * time.Millisecond
	usual  = 250 * time.Millisecond
)

// solve plans with a fixed amount of work instead of time, so that a seed
// always gives the same plan.
func solve(ctx context.Context, in *workload.Input, effort time.Duration) (*fleet.Input, *model.Plan, error) {
	n := bench.NewNap(in, model.Policy{})
	stated, err := n.State(ctx)
	if err != nil {
		return nil, nil, err
	}
	return stated, n.SolveSteps(stated, effort), nil
}

// lostPods compares which pods stay pending.
//
// "Who waits when something is short": the engines may pick different pods, but
// nap never leaves more of them waiting, those of the highest priority first, and
// given only the pods that Karpenter places, it places all of them.
//
// "A spread counts what the scheduler counts": where nap buys for pods that Karpenter
// leaves out, and the spread pods of Karpenter's plan could not all run with those
// machines there, it may leave more of them waiting.
func (c *Comparison) lostPods(stated *fleet.Input, plan *model.Plan, theirs *karpenterengine.Result, translated *model.Plan) {
	pending := waiting(stated, plan)
	lost := 0
	for _, pod := range pending {
		if _, neither := theirs.Unschedulable[types.NamespacedName(pod)]; !neither {
			lost++
		}
	}
	c.NapOnly = len(theirs.Unschedulable) - (len(pending) - lost)
	// more are, by priority, how many pods more than Karpenter's plan nap's leaves out.
	more := map[int32]int{}
	for i := range stated.Problem.Classes {
		class := &stated.Problem.Classes[i]
		for _, pod := range class.Pods {
			if _, left := theirs.Unschedulable[types.NamespacedName(pod)]; left {
				more[class.Priority]--
			}
			if slices.Contains(pending, pod) {
				more[class.Priority]++
			}
		}
	}
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(more))) {
		if more[priority] != 0 {
			if more[priority] > 0 && !breaksSpread(stated.Problem, plan, translated) {
				c.lose(stated, plan, theirs)
			}
			return
		}
	}
}

// breaksSpread reports whether pods that Karpenter places exceed the maxSkew of a spread
// once the pods that only nap places are there, too, each on a machine of its own where
// nap has it.
func breaksSpread(p *model.Problem, plan, theirs *model.Plan) bool {
	both, extra := beside(plan, theirs)
	relaxed := *p
	relaxed.Policy.RelaxMinValues = true
	found := verify.Check(&relaxed, both)
	for _, v := range found {
		var pods, class int
		if _, err := fmt.Sscanf(v.Message, "%d pods of class %d", &pods, &class); err != nil ||
			extra[class] || !strings.Contains(v.Message, "spread over") {
			return false
		}
	}
	return len(found) > 0
}

// beside is Karpenter's plan with machines for the pods that only nap places, and the
// classes of these.
func beside(plan, theirs *model.Plan) (*model.Plan, map[int]bool) {
	type pod struct{ class, index int }
	left := map[pod]bool{}
	for _, u := range theirs.Unschedulable {
		for _, i := range u.Pods {
			left[pod{u.Class, i}] = true
		}
	}
	both, extra := *theirs, map[int]bool{}
	both.NewNodes, both.Unschedulable = slices.Clone(theirs.NewNodes), nil
	for _, n := range plan.NewNodes {
		var pods []model.ClassPods
		for _, cp := range n.Pods {
			only := slices.DeleteFunc(slices.Clone(cp.Pods), func(i int) bool { return !left[pod{cp.Class, i}] })
			if len(only) > 0 {
				pods, extra[cp.Class] = append(pods, model.ClassPods{Class: cp.Class, Pods: only}), true
			}
			for _, i := range only {
				delete(left, pod{cp.Class, i})
			}
		}
		if n.Pods = pods; len(pods) > 0 {
			both.NewNodes, both.Cost = append(both.NewNodes, n), both.Cost+n.Best().Price
		}
	}
	for _, u := range theirs.Unschedulable {
		u.Pods = slices.DeleteFunc(slices.Clone(u.Pods), func(i int) bool { return !left[pod{u.Class, i}] })
		if len(u.Pods) > 0 {
			both.Unschedulable = append(both.Unschedulable, u)
		}
	}
	return &both, extra
}

// lose records the pods that nap leaves out and Karpenter does not.
func (c *Comparison) lose(stated *fleet.Input, plan *model.Plan, theirs *karpenterengine.Result) {
	for _, pod := range waiting(stated, plan) {
		if _, neither := theirs.Unschedulable[types.NamespacedName(pod)]; !neither {
			c.find(LostPod, "%s; Karpenter puts it on %s", pod, theirs.Where(types.NamespacedName(pod)))
		}
	}
}

// waiting are the pods that a plan leaves out.
func waiting(stated *fleet.Input, plan *model.Plan) []model.PodRef {
	var entries []model.ClassPods
	for i := range plan.Unschedulable {
		entries = append(entries, model.ClassPods{Class: plan.Unschedulable[i].Class, Pods: plan.Unschedulable[i].Pods})
	}
	return stated.Pods(entries)
}

// samePods compares plans for the pods that Karpenter places: nap places all of
// them, and pays no more.
//
// "Weights are strict": where weights differ, costs are not compared, since
// Karpenter fills the open node of a lighter pool first, which may cost less.
func (c *Comparison) samePods(ctx context.Context, in *workload.Input, theirs *karpenterengine.Result) error {
	same := placedBy(theirs, in)
	stated, plan, err := solve(ctx, same, little)
	if err != nil {
		return err
	}
	translated, err := translate(stated, theirs)
	if err != nil || len(checkTheirs(stated.Problem, translated, theirs)) > 0 {
		return err
	}
	comparable := equalWeights(in)
	if len(plan.Unschedulable) > 0 || comparable && plan.Cost > translated.Cost {
		if _, plan, err = solve(ctx, same, usual); err != nil {
			return err
		}
	}
	if len(plan.Unschedulable) > 0 {
		if !c.Has(LostPod) {
			c.lose(stated, plan, theirs)
		}
		return nil
	}
	if !comparable {
		return nil
	}
	c.NapCost, c.KarpenterCost = plan.Cost.Dollars(), translated.Cost.Dollars()
	if plan.Cost > translated.Cost {
		kind := Dearer
		if fair, err := c.fairWithoutPreferences(ctx, same, stated); err != nil {
			return err
		} else if fair {
			kind = Preferring
		}
		c.find(kind, "$%.4f/h, Karpenter pays $%.4f/h", c.NapCost, c.KarpenterCost)
	}
	if plan.LowerBound > translated.Cost {
		c.find(WrongBound, "bound $%.4f/h, Karpenter's plan costs $%.4f/h", plan.LowerBound.Dollars(), c.KarpenterCost)
	}
	return nil
}

// placedBy is the cluster without the pods that Karpenter leaves out.
func placedBy(theirs *karpenterengine.Result, in *workload.Input) *workload.Input {
	same := *in
	same.Objects = slices.DeleteFunc(slices.Clone(in.Objects), func(o client.Object) bool {
		_, isPod := o.(*corev1.Pod)
		_, unplaced := theirs.Unschedulable[client.ObjectKeyFromObject(o)]
		return isPod && unplaced
	})
	return &same
}

// fairWithoutPreferences reports whether some pods have preferences and nap pays no
// more than Karpenter when both ignore them, for the pods that Karpenter places then.
func (c *Comparison) fairWithoutPreferences(ctx context.Context, in *workload.Input, stated *fleet.Input) (bool, error) {
	if !preferring(stated.Problem) {
		return false, nil
	}
	// Both heed taints that are only preferred even then.
	in = withoutSoftTaints(in)
	s, err := karpenterengine.New(ctx, in, karpenterengine.Options{IgnorePreferences: true})
	if err != nil {
		return false, err
	}
	theirs, err := s.Solve(ctx)
	if err != nil {
		return false, err
	}
	n := bench.NewNap(placedBy(theirs, in), model.Policy{IgnorePreferences: true})
	if stated, err = n.State(ctx); err != nil {
		return false, err
	}
	plan := n.SolveSteps(stated, usual)
	return len(plan.Unschedulable) == 0 && plan.Cost <= model.USD(theirs.Cost), nil
}

// withoutSoftTaints is the cluster without PreferNoSchedule taints.
func withoutSoftTaints(in *workload.Input) *workload.Input {
	hard := func(taints []corev1.Taint) []corev1.Taint {
		return slices.DeleteFunc(taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule })
	}
	out := *in
	out.Objects = slices.Clone(in.Objects)
	for i := range out.Objects {
		switch o := out.Objects[i].DeepCopyObject().(type) {
		case *v1.NodePool:
			o.Spec.Template.Spec.Taints = hard(o.Spec.Template.Spec.Taints)
			out.Objects[i] = o
		case *v1.NodeClaim:
			o.Spec.Taints = hard(o.Spec.Taints)
			out.Objects[i] = o
		case *corev1.Node:
			o.Spec.Taints = hard(o.Spec.Taints)
			out.Objects[i] = o
		}
	}
	return &out
}

// preferring reports whether the place of some pod is a matter of preference.
func preferring(p *model.Problem) bool {
	soft := func(taints []model.Taint) bool {
		return slices.ContainsFunc(taints, func(t model.Taint) bool { return t.Effect == model.PreferNoSchedule })
	}
	return slices.ContainsFunc(p.Classes, func(c model.PodClass) bool {
		return len(c.Preferences)+len(c.NodePreferences) > 0 ||
			slices.ContainsFunc(c.Spread, func(s model.SpreadConstraint) bool { return !s.Hard })
	}) || slices.ContainsFunc(p.Pools, func(pool model.Pool) bool { return soft(pool.Taints) }) ||
		slices.ContainsFunc(p.Nodes, func(n model.Node) bool { return soft(n.Taints) })
}

func equalWeights(in *workload.Input) bool {
	weights := map[int32]bool{}
	for _, o := range in.Objects {
		if p, ok := o.(*v1.NodePool); ok {
			weight := int32(0)
			if p.Spec.Weight != nil {
				weight = *p.Spec.Weight
			}
			weights[weight] = true
		}
	}
	return len(weights) < 2
}

// translate states Karpenter's result as a plan for the problem that nap solved,
// so that the independent checker can judge it.
func translate(in *fleet.Input, r *karpenterengine.Result) (*model.Plan, error) {
	p := in.Problem
	t := translator{problem: p, place: map[model.PodRef][2]int{}}
	for class := range p.Classes {
		for i, pod := range p.Classes[class].Pods {
			t.place[pod] = [2]int{class, i}
		}
	}
	plan := &model.Plan{}
	for _, n := range r.Nodes {
		node, err := t.node(&n)
		if err != nil {
			return nil, err
		}
		plan.NewNodes = append(plan.NewNodes, node)
		plan.Cost += node.Best().Price
	}
	for i := range p.Nodes {
		if names := r.Existing[p.Nodes[i].Name]; len(names) > 0 {
			pods, err := t.pods(names)
			if err != nil {
				return nil, err
			}
			plan.Placements = append(plan.Placements, model.Placement{Node: i, Pods: pods})
		}
	}
	for name := range r.Unschedulable {
		if at, known := t.place[model.PodRef(name)]; known {
			plan.Unschedulable = append(plan.Unschedulable,
				model.Unschedulable{Class: at[0], Pods: []int{at[1]}, Reason: model.ReasonNothingCompatible})
		}
	}
	return plan, nil
}

type translator struct {
	problem *model.Problem
	place   map[model.PodRef][2]int
}

func (t *translator) pods(names []types.NamespacedName) ([]model.ClassPods, error) {
	var out []model.ClassPods
	for _, name := range names {
		at, known := t.place[model.PodRef(name)]
		if !known {
			return nil, fmt.Errorf("%s: nap refuses a pod that Karpenter schedules", name)
		}
		i := slices.IndexFunc(out, func(cp model.ClassPods) bool { return cp.Class == at[0] })
		if i < 0 {
			i = len(out)
			out = append(out, model.ClassPods{Class: at[0]})
		}
		out[i].Pods = append(out[i].Pods, at[1])
	}
	return out, nil
}

func (t *translator) node(n *karpenterengine.Node) (model.NewNode, error) {
	out := model.NewNode{Pool: slices.IndexFunc(t.problem.Pools, func(p model.Pool) bool { return p.Name == n.Pool })}
	if out.Pool < 0 {
		return out, fmt.Errorf("pool %s: nap leaves a NodePool out that Karpenter buys from", n.Pool)
	}
	catalog := &t.problem.Catalogs[t.problem.Pools[out.Pool].Catalog]
	for i := range catalog.InstanceTypes {
		for j := range catalog.InstanceTypes[i].Offerings {
			o := &catalog.InstanceTypes[i].Offerings[j]
			if catalog.InstanceTypes[i].Name == n.InstanceType && o.Zone == n.Zone && string(o.CapacityType) == n.CapacityType {
				out.Offerings = []model.OfferingRef{{InstanceType: i, Offering: j, Price: o.Price}}
			}
		}
	}
	for key, value := range n.Labels {
		if !strings.HasPrefix(key, "example.com/") {
			continue
		}
		out.Requirements = append(out.Requirements, model.Requirement{Key: key, Operator: model.In, Values: []string{value}})
	}
	slices.SortFunc(out.Requirements, func(a, b model.Requirement) int { return strings.Compare(a.Key, b.Key) })
	var err error
	out.Pods, err = t.pods(n.Pods)
	return out, err
}
