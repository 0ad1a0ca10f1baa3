package provisioning

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/controller/purchasebackoff"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// backoff keeps a round from buying again for workloads whose last purchases came to
// nothing. One goroutine uses it.
type backoff struct {
	kube          client.Reader
	purchases     *purchasebackoff.Purchases
	registrations *purchasebackoff.Registrations
	reservations  *reservations
	solve         func(*model.Problem) *model.Plan
}

// heldPods are pods of one workload for which nothing is bought in this round.
type heldPods struct {
	pods   []model.PodRef
	record purchasebackoff.Record
}

// apply looks at what became of earlier purchases, and takes the pods out of the
// problem for which nothing may be bought now. Of a workload that may try again with
// a single purchase it leaves the oldest pod. Pods that are taken out may still run on
// nodes that exist, since the scheduler needs no plan for that.
//
// It returns the purchases that failed since the last round.
func (b *backoff) apply(ctx context.Context, in *planInputs) []purchasebackoff.Outcome {
	var waiting []*fleet.Pod
	p, room := in.input.Problem, b.bufferRoom(in)
	for i := range p.Classes {
		for _, ref := range p.Classes[i].Pods {
			record := in.input.Record(ref)
			if record != nil && record.Node == "" && !record.Unjudged && (record.Buffer == "" || room.lacks(ref)) {
				waiting = append(waiting, record)
			}
		}
	}
	failed := b.purchases.Observe(purchasebackoff.View{
		Snapshot: in.snapshot, Waiting: waiting, Circumstances: in.circumstances,
		Holds: room.holds, Pending: b.reservations.hold, Explained: b.registrations.Explains, Counted: b.registrations.Counted,
		Explain: func(claim string, pod *fleet.Pod) string {
			return b.explain(ctx, in, claim, pod.Ref)
		},
	})
	in.held = b.hold(in, room)
	return failed
}

// explain says why the node of a claim does not take a pod. What the scheduler says of it comes
// before what a look of nap's own found, unless that says what the node has and the pod needs:
// the scheduler speaks of all nodes together, but knows of more than nap, such as volumes.
func (b *backoff) explain(ctx context.Context, in *planInputs, claim string, pod model.PodRef) string {
	found, exact := misfit{in.input.Problem, b.solve}.explain(claim, pod)
	if exact {
		return found
	}
	object := &corev1.Pod{}
	// A pod that cannot be read is explained by the rest.
	if err := b.kube.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: pod.Name}, object, client.UnsafeDisableDeepCopy); err != nil {
		return found
	}
	for i := range object.Status.Conditions {
		if c := &object.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message != "" {
			return "the scheduler says: " + strings.TrimSuffix(c.Message, ".")
		}
	}
	return found
}

// hold takes pods out of the problem. Of virtual pods it takes out those alone that have no room
// without a purchase: the others have to be planned again.
func (b *backoff) hold(in *planInputs, room *bufferRoom) []heldPods {
	if room == nil && b.purchases.Quiet() {
		return nil
	}
	room.keepPreferring(in)
	p, workloads := in.input.Problem, purchasebackoff.Workloads{}
	held := map[purchasebackoff.Workload]*heldPods{}
	// probing has the workloads of which a pod is in the plan already.
	probing := map[purchasebackoff.Workload]bool{}
	var order []purchasebackoff.Workload
	for i := range p.Classes {
		class := &p.Classes[i]
		class.Pods = slices.DeleteFunc(slices.Clone(class.Pods), func(ref model.PodRef) bool {
			record := in.input.Record(ref)
			if record == nil || record.Buffer != "" && !room.lacks(ref) {
				return false
			}
			w := workloads.Of(record)
			verdict, known := b.purchases.Ask(w, in.circumstances)
			switch {
			case verdict == purchasebackoff.Closed:
				return false
			case verdict == purchasebackoff.Probe && !probing[w]:
				probing[w] = true
				return false
			}
			if held[w] == nil {
				held[w] = &heldPods{record: known}
				order = append(order, w)
			}
			held[w].pods = append(held[w].pods, ref)
			return true
		})
	}
	p.Classes = slices.DeleteFunc(p.Classes, func(c model.PodClass) bool { return len(c.Pods) == 0 })
	out := make([]heldPods, 0, len(order))
	for _, w := range order {
		out = append(out, *held[w])
	}
	return out
}

// text tells a pod why nothing is bought for it.
func (h *heldPods) text() string {
	r := &h.record
	if r.Count == 0 {
		return fmt.Sprintf("no machine is bought for it before %s, since one that was bought for it has just become ready",
			r.Until.UTC().Format(time.TimeOnly+"Z"))
	}
	last := ""
	if len(r.Last) > 0 {
		last = ": " + r.Last[len(r.Last)-1].Why
	}
	return fmt.Sprintf("no machine is bought for it before %s, since %s led to no running pod%s; "+
		"a change of the pods' template, a NodePool, an AKSNodeClass or a DaemonSet lets nap try sooner",
		r.Until.UTC().Format(time.TimeOnly+"Z"), inARow(r.Count), last)
}

func inARow(n int) string {
	if n == 1 {
		return "the last purchase"
	}
	return fmt.Sprintf("%d purchases in a row", n)
}

// circumstances is equal for rounds between which nothing was changed that could
// remove the cause of purchases that fail: NodePools, their AKSNodeClasses, DaemonSets.
func circumstances(in *planInputs) string {
	var lines []string
	for name, pool := range in.pools {
		lines = append(lines, fmt.Sprintf("pool %s %s %d %d", name, pool.UID, pool.Generation, pool.Status.NodeClassObservedGeneration))
	}
	for d := range in.snapshot.Daemons() {
		lines = append(lines, fmt.Sprintf("daemon %s %s %s", d.Namespace, d.Name, d.Spec.Key))
	}
	slices.Sort(lines)
	h := fnv.New64a()
	h.Write([]byte(strings.Join(lines, "\n")))
	return fmt.Sprintf("%016x", h.Sum64())
}

// heldCount is the number of pods that are held, without virtual ones.
func (in *planInputs) heldCount() int {
	n := 0
	for i := range in.held {
		for _, ref := range in.held[i].pods {
			if record := in.input.Record(ref); record == nil || record.Buffer == "" {
				n++
			}
		}
	}
	return n
}
