package provisioning

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// holds remember which pods have a place on a machine that is on its way. Those
// pods are not planned again while the machine comes up and the scheduler fills
// it: in that time the scheduler binds pods in an order of its own, and every
// moment looks as if the plan had failed. Their room is kept from others.
//
// It is an opinion, not state: after a restart it is empty, every pod is planned
// anew, and the claims' capacity keeps anything from being bought twice.
type holds struct {
	clock clock.Clock
	// claims are the claims on whose machines pods have a place, by pod UID.
	claims map[string]string
	// arrived is when a claim's node was first seen initialized.
	arrived map[string]time.Time
}

// A hold ends when the node has been there for settleAtLeast and the scheduler
// has bound no pod for settleQuiet, and in any case after settleAtMost.
const (
	settleAtLeast = 3 * time.Second
	settleQuiet   = 2 * time.Second
	settleAtMost  = time.Minute
	// settleLook is how often the scheduler is looked at.
	settleLook = 500 * time.Millisecond
)

func newHolds(clk clock.Clock) *holds {
	return &holds{clock: clk, claims: map[string]string{}, arrived: map[string]time.Time{}}
}

// put gives a pod a place on a claim's machine.
func (h *holds) put(pod *fleet.Pod, claim string) {
	if pod != nil {
		h.claims[pod.UID] = claim
	}
}

// end takes their places from pods.
func (h *holds) end(pods []types.UID) {
	for _, uid := range pods {
		delete(h.claims, string(uid))
	}
}

// keep takes the pods that have a place out of the problem and charges their
// machines for them. quiet is for how long the scheduler has bound no pod.
func (h *holds) keep(b *basis, quiet time.Duration) {
	p := b.input.Problem
	places := h.places(b, quiet)
	live := make(map[string]string, len(h.claims))
	for i := range p.Classes {
		class := &p.Classes[i]
		taken := map[int]int{}
		class.Pods = slices.DeleteFunc(class.Pods, func(ref model.PodRef) bool {
			record := b.input.Record(ref)
			if record == nil || record.Node != "" {
				return false
			}
			claim, held := h.claims[record.UID]
			node, stands := places[claim]
			if !held || !stands {
				return false
			}
			live[record.UID] = claim
			taken[node]++
			return true
		})
		for node, n := range taken {
			charge(p, node, class, n)
		}
	}
	h.claims = live
	p.Classes = slices.DeleteFunc(p.Classes, func(c model.PodClass) bool { return len(c.Pods) == 0 })
}

// places are the machines whose holds stand, as indices of the problem's nodes.
func (h *holds) places(b *basis, quiet time.Duration) map[string]int {
	now := h.clock.Now()
	arrived, places := map[string]time.Time{}, map[string]int{}
	for i := range b.input.Problem.Nodes {
		n := &b.input.Problem.Nodes[i]
		if n.Claim == "" || n.State == model.NodeLeaving {
			continue
		}
		if n.State == model.NodeReady {
			since, seen := h.arrived[n.Claim]
			if !seen {
				since = now
			}
			arrived[n.Claim] = since
			age := now.Sub(since)
			if age >= settleAtMost || age >= settleAtLeast && quiet >= settleQuiet {
				continue
			}
		}
		places[n.Claim] = i
	}
	h.arrived = arrived
	return places
}

// charge books n pods of a class on a node, as if they ran there.
func charge(p *model.Problem, node int, class *model.PodClass, n int) {
	on := &p.Nodes[node]
	for range n {
		on.Used = on.Used.Add(class.Requests)
	}
	on.HostPorts = append(slices.Clone(on.HostPorts), class.HostPorts...)
	shape := len(p.Shapes)
	p.Shapes = append(p.Shapes, class.PodShape)
	on.Bound = append(slices.Clone(on.Bound), model.BoundPods{Shape: shape, Count: n})
	for _, v := range class.Volumes {
		if slices.Contains(on.Attached, v) {
			continue
		}
		on.Attached = append(slices.Clone(on.Attached), v)
		if free, limited := on.VolumeSlots[v.Driver]; limited {
			on.VolumeSlots[v.Driver] = max(0, free-1)
		}
	}
}
