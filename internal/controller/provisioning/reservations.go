package provisioning

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// reservations remember which pods have a place on a node that is on its way. Those
// pods are not planned again while the node comes up and the scheduler fills it: in
// that time the scheduler binds pods in an order of its own, and every moment looks
// as if the plan had failed. Their room is kept from other pods.
//
// Reservations are not written down. After a restart there are none, every pod is
// planned again, and the capacity of the claims keeps nodes from being bought twice.
// One goroutine uses them.
type reservations struct {
	clock clock.Clock
	// claims names the claim on whose node a pod has a place, by the UID of the pod.
	// keep drops the entries of pods that no longer wait or whose node has settled.
	claims map[string]string
	// patterns are the specs, by their keys, of those of these pods that were announced when
	// they got their places: only pods of the same spec may have these.
	patterns map[string]string
	// transferred are the pods that took over the place of another pod in keep, and have not
	// been taken by takeTransferred.
	transferred []transferredPod
	// arrived is when a claim's node was first seen initialized, by the name of the
	// claim; only for the nodes of the last call of keep.
	arrived map[string]time.Time
}

// A reservation ends when the node has been there for settleBackoff and the scheduler has
// bound no pod for settleQuiet, and in any case after settleAtMost; where other pods have
// taken the room, after settleAtLeast and settleQuiet. That the scheduler is quiet does not
// say that it is done: a pod which it could not place waits for up to ten seconds until it
// is looked at again (podMaxBackoffSeconds of KubeSchedulerConfiguration v1).
const (
	settleAtLeast = 3 * time.Second
	settleQuiet   = 2 * time.Second
	settleBackoff = 11 * time.Second
	settleAtMost  = time.Minute
	// settleLook is how often the scheduler is looked at.
	settleLook = 500 * time.Millisecond
)

// transferredPod is a pod that has taken over the place of another one: it has come after
// a place was reserved for it, or the other one has taken its own.
type transferredPod struct {
	record *fleet.Pod
	claim  string
}

func newReservations(clk clock.Clock) *reservations {
	return &reservations{clock: clk, claims: map[string]string{}, patterns: map[string]string{}, arrived: map[string]time.Time{}}
}

// put reserves a place for a pod on a claim's node.
func (r *reservations) put(pod *fleet.Pod, claim string) {
	if pod == nil {
		return
	}
	r.claims[pod.UID] = claim
	if pod.Announced > 0 {
		r.patterns[pod.UID] = pod.Spec.Key
	}
}

// end drops the reservations of these pods.
func (r *reservations) end(pods []types.UID) {
	for _, uid := range pods {
		delete(r.claims, string(uid))
	}
}

// keep takes the pods that have a place out of the problem and charges their
// nodes for them. quiet is for how long the scheduler has bound no pod. Of all pods, those
// that are nominated are not in the problem: they keep their places, too, for the
// scheduler may take a nomination back.
func (r *reservations) keep(in *fleet.Input, quiet time.Duration, all iter.Seq[*fleet.Pod]) kept {
	p := in.Problem
	k := keeping{
		in: in, claims: r.claims, patterns: r.patterns, places: r.nodes(in, quiet), live: make(map[string]string, len(r.claims)),
	}
	free, waiting := r.unclaimed(in)
	if k.free = free; waiting < len(r.claims) { // it looks at all pods
		k.left = r.left(in, all)
	}
	k.kept = kept{claims: map[string][]model.PodRef{}, rearrangeable: rearrangeable{nodes: map[int]model.Node{}}}
	for _, i := range largestFirst(p) {
		class := &p.Classes[i]
		taken, coming := map[int]int{}, []model.PodRef(nil)
		class.Pods = slices.DeleteFunc(class.Pods, func(ref model.PodRef) bool {
			at, keeps := k.place(ref, class, taken)
			if !keeps {
				return false
			}
			if taken[at.node]++; p.Nodes[at.node].State != model.NodeReady {
				coming = append(coming, ref)
			}
			return true
		})
		k.kept.rearrangeable.add(p, class, coming, taken)
		for node, n := range taken {
			charge(p, node, class, n)
		}
	}
	if len(r.claims) > len(k.live) { // it looks at all pods
		for pod := range all {
			claim, held := r.claims[pod.UID]
			if _, stands := k.places[claim]; held && stands && pod.Nominated != "" && pod.Wanted && pod.Node == "" {
				k.live[pod.UID] = claim
			}
		}
	}
	r.claims, r.transferred = k.live, append(r.transferred, k.transferred...)
	maps.DeleteFunc(r.patterns, func(uid, _ string) bool { return r.claims[uid] == "" })
	p.Classes = slices.DeleteFunc(p.Classes, func(c model.PodClass) bool { return len(c.Pods) == 0 })
	return k.kept
}

// kept are the pods that keep their places in one round.
type kept struct {
	// claims are the pods by the claim of their node.
	claims map[string][]model.PodRef
	// lost says that some pod has lost its place since other pods have taken the room.
	lost bool
	// rearrangeable are those whose machine is not ready.
	rearrangeable rearrangeable
}

// keeping is one call of keep under way.
type keeping struct {
	in *fleet.Input
	// claims are the reservations before the call, live those that hold after it.
	claims, live map[string]string
	// patterns are as in reservations.
	patterns map[string]string
	places   map[string]reserved
	// free is what unclaimed has returned, less what has been taken since.
	free map[sameKind][]string
	// left is what reservations.left has returned, less what has been taken since.
	left        map[sameKind][]string
	transferred []transferredPod
	kept        kept
}

// place is where a pod of a class keeps its place, if it has one; taken is how many pods of
// the class keep theirs on a node already.
func (k *keeping) place(ref model.PodRef, class *model.PodClass, taken map[int]int) (at reserved, keeps bool) {
	record := k.in.Record(ref)
	if record == nil || record.Node != "" {
		return at, false
	}
	claim, held := k.claims[record.UID]
	held = held && (record.Announced == 0 || k.patterns[record.UID] == record.Spec.Key)
	fits := func(claim string) bool {
		at, stands := k.places[claim]
		return stands && hasRoom(&k.in.Problem.Nodes[at.node], class, taken[at.node])
	}
	moved := false
	if held {
		claim, moved = k.exchange(record, claim, fits)
	} else if claim, held = k.arrive(record, fits); !held {
		return at, false
	}
	at, stands := k.places[claim]
	if !stands || at.settled && !fits(claim) {
		k.kept.lost = k.kept.lost || stands || moved
		return at, false
	}
	if moved || k.claims[record.UID] == "" {
		k.transferred = append(k.transferred, transferredPod{record, claim})
	}
	k.live[record.UID] = claim
	k.kept.claims[claim] = append(k.kept.claims[claim], ref)
	return at, true
}

// largestFirst are the classes of a problem, by their indices, in the order of what a pod
// takes of the largest node. Where room is short, small pods find a place more easily than
// large ones.
func largestFirst(p *model.Problem) []int {
	var most model.Resources
	for i := range p.Nodes {
		for axis, amount := range p.Nodes[i].Allocatable {
			if axis >= len(most) {
				most = append(most, make(model.Resources, axis+1-len(most))...)
			}
			most[axis] = max(most[axis], amount)
		}
	}
	order, shares := make([]int, len(p.Classes)), make([]float64, len(p.Classes))
	for i := range p.Classes {
		order[i] = i
		shares[i] = p.Classes[i].Requests.ShareOf(most)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(shares[b], shares[a]) })
	return order
}

// unclaimed are the claims with a place for pods that were announced when they were
// planned and are so no more, since they have come or are to come with another spec, by the spec
// and the UID of the owner or the name of the set. Each place is listed once, in the order of the pods' numbers. waiting is how
// many pods of the problem have a place.
func (r *reservations) unclaimed(in *fleet.Input) (free map[sameKind][]string, waiting int) {
	still := map[string]bool{}
	for i := range in.Problem.Classes {
		for _, ref := range in.Problem.Classes[i].Pods {
			record := in.Record(ref)
			if record == nil {
				continue
			}
			if record.Announced > 0 && r.patterns[record.UID] == record.Spec.Key {
				still[record.UID] = true
			}
			if _, held := r.claims[record.UID]; held {
				waiting++
			}
		}
	}
	free = map[sameKind][]string{}
	for _, uid := range slices.Sorted(maps.Keys(r.claims)) {
		if owner, announced := fleet.AnnouncedFor(uid); announced && !still[uid] {
			kind := sameKind{owner: owner, spec: r.patterns[uid]}
			free[kind] = append(free[kind], r.claims[uid])
		}
	}
	return free, waiting
}

// takeTransferred returns, once, the pods that have come to a place that was reserved
// before they existed.
func (r *reservations) takeTransferred() []transferredPod {
	out := r.transferred
	r.transferred = nil
	return out
}

// announced is how many places there are for pods that do not exist yet, by the UID of
// their owner.
func (r *reservations) announced() map[types.UID]int {
	out := map[types.UID]int{}
	for uid := range r.claims {
		if owner, announced := fleet.AnnouncedFor(uid); announced {
			out[types.UID(owner)]++
		}
	}
	return out
}

// hold reports whether pods had a place on the machine of a claim in the last call
// of keep.
func (r *reservations) hold(claim string) bool {
	for _, name := range r.claims {
		if name == claim {
			return true
		}
	}
	return false
}

// reserved is a node for which reservations still hold.
type reserved struct {
	// node is its index in the problem.
	node int
	// settled says that the scheduler has had the time to bind its pods: those whose room
	// is gone have lost it.
	settled bool
}

// nodes are those for which reservations still hold, by the name of their claim.
func (r *reservations) nodes(in *fleet.Input, quiet time.Duration) map[string]reserved {
	now := r.clock.Now()
	arrived, places := map[string]time.Time{}, map[string]reserved{}
	for i := range in.Problem.Nodes {
		n := &in.Problem.Nodes[i]
		if n.Claim == "" || n.State == model.NodeLeaving {
			continue
		}
		settled := false
		if n.State == model.NodeReady {
			since, seen := r.arrived[n.Claim]
			if !seen {
				since = now
			}
			arrived[n.Claim] = since
			age := now.Sub(since)
			if isOver(age, quiet) {
				continue
			}
			settled = age >= settleAtLeast && quiet >= settleQuiet
		}
		places[n.Claim] = reserved{i, settled}
	}
	r.arrived = arrived
	return places
}

// isOver reports whether promises of a node that has been ready for so long end, whether
// there is room for them or not.
func isOver(age, quiet time.Duration) bool {
	return age >= settleAtMost || age >= settleBackoff && quiet >= settleQuiet
}

// hasRoom reports whether a node has room for a pod of the class beside n others of it.
func hasRoom(node *model.Node, class *model.PodClass, n int) bool {
	used := node.Used.Add(class.Requests)
	for range n {
		used = used.Add(class.Requests)
	}
	return used.Fits(node.Allocatable)
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
