package provisioning

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
)

// BufferPlan is what a plan has for one CapacityBuffer.
type BufferPlan struct {
	Namespace, Name string
	// Wanted is the number of its virtual pods. Those beyond Ready, which have room on
	// nodes that run, and Coming, which will have it on nodes that are on their way, have
	// no room; Why says why, for one of them.
	Wanted, Ready, Coming int
	Why                   string
	// Cost is the price per hour of the room: of each node the share that the virtual pods
	// there take of it, by cpu or memory, whichever is more.
	Cost model.Money
}

// buffers tells what plans have for virtual pods. One goroutine uses it.
type buffers struct {
	mirror Mirror
	// told is nil where there are no buffers.
	told func([]BufferPlan)
}

// planned says where a plan has room for virtual pods, and what its claims came to.
func (b *buffers) planned(in *planInputs, plan *model.Plan, results []result) {
	if b.told == nil {
		return
	}
	c := newBufferCount(in)
	for _, placement := range plan.Placements {
		c.place(in.input.Pods(placement.Pods), placement.Node)
	}
	at := map[string]int{}
	for i := range in.input.Problem.Nodes {
		n := &in.input.Problem.Nodes[i]
		at[n.Name] = i
		at[cmp.Or(n.Claim, n.Name)] = i
	}
	for ref, place := range in.kept {
		if i, known := at[place]; known {
			c.place([]model.PodRef{ref}, i)
		}
	}
	for i := range results {
		if r := &results[i]; r.created() {
			c.bought(r.draft)
		}
	}
	c.unschedulable(plan)
	b.mirror.PlaceBuffers(c.places, in.snapshot)
	b.told(c.list())
}

// bufferCount adds up what a plan has for buffers.
type bufferCount struct {
	in     *planInputs
	plans  map[string]*BufferPlan
	places map[model.PodRef]string
}

func newBufferCount(in *planInputs) *bufferCount {
	c := &bufferCount{in: in, plans: map[string]*BufferPlan{}, places: map[model.PodRef]string{}}
	for _, b := range in.snapshot.Buffers() {
		c.plans[b.Namespace+"/"+b.Name] = &BufferPlan{Namespace: b.Namespace, Name: b.Name, Wanted: b.Pods}
	}
	return c
}

// of returns the buffer that a virtual pod belongs to, and nil for all other pods.
func (c *bufferCount) of(ref model.PodRef) (*BufferPlan, *fleet.Pod) {
	record := c.in.input.Record(ref)
	if record == nil || record.Buffer == "" {
		return nil, nil
	}
	return c.plans[ref.Namespace+"/"+record.Buffer], record
}

// place counts pods on a node of the problem.
func (c *bufferCount) place(refs []model.PodRef, node int) {
	n, axes := &c.in.input.Problem.Nodes[node], c.in.input.Problem.Axes
	for _, ref := range refs {
		plan, record := c.of(ref)
		if plan == nil {
			continue
		}
		c.places[ref] = cmp.Or(n.Claim, n.Name)
		if n.State == model.NodeLaunching || n.State == model.NodeRegistered {
			plan.Coming++
		} else {
			plan.Ready++
		}
		plan.Cost += share(record.Spec.Requests.Vector(axes), n.Allocatable, n.Price)
	}
}

// bought counts the pods of a claim that was created.
func (c *bufferCount) bought(d *draft) {
	for _, ref := range d.pods {
		plan, record := c.of(ref)
		if plan == nil {
			continue
		}
		c.places[ref] = d.claim.Name
		plan.Coming++
		plan.Cost += share(record.Spec.Requests.Vector(c.in.input.Problem.Axes), d.allocatable, d.price)
	}
}

// unschedulable says why virtual pods have no room.
func (c *bufferCount) unschedulable(plan *model.Plan) {
	for i := range plan.Unschedulable {
		u := &plan.Unschedulable[i]
		for _, ref := range c.in.input.Pods([]model.ClassPods{{Class: u.Class, Pods: u.Pods}}) {
			if of, _ := c.of(ref); of != nil && of.Why == "" {
				of.Why = eventText(pausedText(c.in.input.Problem, u), explain.Describe(c.in.input.Problem, u))
			}
		}
	}
	for i := range c.in.input.Rejected {
		if of, _ := c.of(c.in.input.Rejected[i].Pod); of != nil {
			of.Why = c.in.input.Rejected[i].Message
		}
	}
	for i := range c.in.held {
		for _, ref := range c.in.held[i].pods {
			if of, _ := c.of(ref); of != nil && of.Why == "" {
				of.Why = c.in.held[i].text()
			}
		}
	}
}

func (c *bufferCount) list() []BufferPlan {
	var out []BufferPlan
	for _, key := range slices.Sorted(maps.Keys(c.plans)) {
		out = append(out, *c.plans[key])
	}
	return out
}

// share is what a pod takes of a node, by cpu or memory, whichever is more, of its price.
func share(requests, allocatable model.Resources, price model.Money) model.Money {
	most := 0.0
	for _, axis := range []int{model.CPU, model.Memory} {
		if whole := allocatable.Get(axis); whole > 0 {
			most = max(most, float64(requests.Get(axis))/float64(whole))
		}
	}
	return model.Money(min(most, 1) * float64(price))
}
