package provisioning

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeautoprovision/nap/internal/model"
)

// rearrangeable are pods with a place on machines that are not ready yet. Nothing runs there, so that
// a plan may still arrange these pods in another way: where the scheduler has put pods
// elsewhere than planned, that makes room without a purchase.
type rearrangeable struct {
	// nodes are the machines as they were before these pods were charged, by the index of
	// the node in the problem.
	nodes map[int]model.Node
	// classes have these pods alone.
	classes []model.PodClass
}

// add books those pods of a class whose machines are not ready, before they are charged;
// taken is how many pods of the class have a place on each node.
func (m *rearrangeable) add(p *model.Problem, class *model.PodClass, pods []model.PodRef, taken map[int]int) {
	if len(pods) == 0 {
		return
	}
	for node := range taken {
		n := p.Nodes[node]
		if _, known := m.nodes[node]; !known && n.State != model.NodeReady {
			n.VolumeSlots = maps.Clone(n.VolumeSlots) // charge writes into it
			m.nodes[node] = n
		}
	}
	one := *class
	one.Pods = pods
	m.classes = append(m.classes, one)
}

// into is the problem with these pods in it, whose places are free again.
func (m *rearrangeable) into(p *model.Problem) *model.Problem {
	out := *p
	out.Nodes, out.Classes = slices.Clone(p.Nodes), slices.Clone(p.Classes)
	for i, n := range m.nodes {
		out.Nodes[i] = n
	}
	for i := range m.classes {
		class := &m.classes[i]
		same := slices.IndexFunc(out.Classes, func(c model.PodClass) bool {
			c.Pods = class.Pods
			return reflect.DeepEqual(c, *class)
		})
		if same < 0 {
			out.Classes = append(out.Classes, *class)
			continue
		}
		out.Classes[same].Pods = slices.Concat(out.Classes[same].Pods, class.Pods)
	}
	return &out
}

// plan plans a round. Where pods have lost their places and machines would be bought, it
// also plans with the pods whose machines are not ready, and takes that plan where it costs less.
// The problem of the inputs is then the one of that plan.
func (l *Loop) plan(in *planInputs) *model.Plan {
	plan := l.solve(in.input.Problem)
	// What was charged or held back since is not in those nodes.
	if !in.lost || len(plan.NewNodes) == 0 || len(in.settled) > 0 || len(in.held) > 0 || len(in.rearrangeable.classes) == 0 {
		return plan
	}
	rearranged := in.rearrangeable.into(in.input.Problem)
	rearranged.Policy.Elapsed = stopwatch(l.clock)
	other := l.solve(rearranged)
	if other.Cost >= plan.Cost || podsWithout(other) > podsWithout(plan) {
		return plan
	}
	in.input.Problem = rearranged
	return other
}

// podsWithout counts the pods for which a plan has no place.
func podsWithout(plan *model.Plan) int {
	n := 0
	for i := range plan.Unschedulable {
		n += len(plan.Unschedulable[i].Pods)
	}
	return n
}

// leaveReady ends the reservations of pods that a plan has moved to nodes which are ready: the
// scheduler can bind them at once.
func (l *Loop) leaveReady(in *planInputs, plan *model.Plan) {
	var moved []types.UID
	for _, placement := range plan.Placements {
		if n := &in.input.Problem.Nodes[placement.Node]; n.Claim != "" && n.State != model.NodeReady {
			continue
		}
		for _, ref := range in.input.Pods(placement.Pods) {
			if record := in.input.Record(ref); record != nil {
				moved = append(moved, types.UID(record.UID))
			}
		}
	}
	l.reservations.end(moved)
	if l.nominations != nil {
		l.nominations.endPods(moved, 0)
	}
}
