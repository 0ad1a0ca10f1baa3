package provisioning

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nodeautoprovision/nap/internal/controller/purchasebackoff"
	"github.com/nodeautoprovision/nap/internal/model"
)

// bufferRoom is where virtual pods have room without a purchase, on nodes that are there or on
// their way, beside the pods that wait. They have no node of their own, so that a plan has to say
// which of them a machine helps. A nil one knows of none.
type bufferRoom struct {
	// at is the node of the problem with room for a virtual pod; lacking are those without.
	at      map[model.PodRef]int
	lacking map[model.PodRef]bool
	// ready are the workloads of virtual pods with room on the node of a claim, which can run pods.
	ready map[roomOn]bool
}

type roomOn struct {
	workload purchasebackoff.Workload
	claim    string
}

func (r *bufferRoom) lacks(ref model.PodRef) bool { return r != nil && r.lacking[ref] }

func (r *bufferRoom) holds(w purchasebackoff.Workload, claim string) bool {
	return r != nil && r.ready[roomOn{w, claim}]
}

// bufferRoom looks for room for virtual pods. It is nil unless something is known of purchases for
// any of them.
func (b *backoff) bufferRoom(in *planInputs) *bufferRoom {
	virtual := b.followedBuffers(in)
	if len(virtual) == 0 {
		return nil
	}
	p := in.input.Problem
	plan := b.solve(&model.Problem{
		Axes: p.Axes, Shapes: p.Shapes, Nodes: p.Nodes, Classes: p.Classes, ByDriver: p.ByDriver,
		Policy: model.Policy{IgnorePreferences: p.Policy.IgnorePreferences, Share: p.Policy.Share},
	})
	r := &bufferRoom{at: map[model.PodRef]int{}, lacking: map[model.PodRef]bool{}, ready: map[roomOn]bool{}}
	for _, placement := range plan.Placements {
		n := &p.Nodes[placement.Node]
		for _, ref := range in.input.Pods(placement.Pods) {
			w, is := virtual[ref]
			if !is {
				continue
			}
			r.at[ref] = placement.Node
			if n.State == model.NodeReady && n.Claim != "" {
				r.ready[roomOn{w, n.Claim}] = true
			}
		}
	}
	for ref := range virtual {
		if _, has := r.at[ref]; !has {
			r.lacking[ref] = true
		}
	}
	return r
}

// followedBuffers are the virtual pods of the problem, with their workloads, of whose purchases
// anything is known.
func (b *backoff) followedBuffers(in *planInputs) map[model.PodRef]purchasebackoff.Workload {
	if len(in.snapshot.Buffers()) == 0 {
		return nil
	}
	p, workloads := in.input.Problem, purchasebackoff.Workloads{}
	out, follows := map[model.PodRef]purchasebackoff.Workload{}, map[purchasebackoff.Workload]bool{}
	for i := range p.Classes {
		for _, ref := range p.Classes[i].Pods {
			record := in.input.Record(ref)
			if record == nil || record.Buffer == "" {
				continue
			}
			w := workloads.Of(record)
			followed, asked := follows[w]
			if !asked {
				followed = b.purchases.Follows(w)
				follows[w] = followed
			}
			if followed {
				out[ref] = w
			}
		}
	}
	return out
}

// keepPreferring leaves virtual pods where they have room that would rather be elsewhere: a plan
// would buy for what they prefer, whatever came of earlier purchases.
func (r *bufferRoom) keepPreferring(in *planInputs) {
	if r == nil {
		return
	}
	p := in.input.Problem
	for i := range p.Classes {
		class := &p.Classes[i]
		if !prefers(class) {
			continue
		}
		kept := map[int]int{} // number by node
		class.Pods = slices.DeleteFunc(slices.Clone(class.Pods), func(ref model.PodRef) bool {
			node, has := r.at[ref]
			if has {
				kept[node]++
				in.keep(ref, cmp.Or(p.Nodes[node].Claim, p.Nodes[node].Name))
			}
			return has
		})
		for _, node := range slices.Sorted(maps.Keys(kept)) {
			charge(p, node, class, kept[node])
		}
	}
}
