package shadowkeeper

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/controller/savings"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/shadow"
)

// followFor is how long pods are followed until they have a node.
const followFor = time.Hour

// waiting is a pod that waits.
type waiting struct {
	name types.NamespacedName
	uid  types.UID
}

// follower knows the pods that wait and what became of those that were planned for.
type follower struct {
	// started says that pods were looked at before: those that waited already then are not
	// compared, since no shadow saw when the ruling autoscaler could first act.
	started bool
	// seen are all pods that wait and were looked at.
	seen map[types.UID]bool
	// batch are pods that nap would still collect; since is when the first of them could not
	// be scheduled, begun and newest when the first and the last of them were seen.
	batch                []waiting
	since, begun, newest time.Time
	open                 []*followed
	// machines are nodes that purchases have, until they are too old to be found again.
	machines map[types.UID]time.Time
}

// followed is a purchase whose pods do not all have a node.
type followed struct {
	shadow.Purchase
	pods []waiting
}

// unschedulableSince is since when the scheduler has no node for a pod; false for a pod that
// it has not tried, or may not.
func unschedulableSince(p *corev1.Pod) (time.Time, bool) {
	if p.DeletionTimestamp != nil || p.Spec.NodeName != "" || p.Status.Phase != corev1.PodPending {
		return time.Time{}, false
	}
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

// lookAtPods collects pods that wait, plans for them when nap would, and sees what became of
// those that it has planned for.
func (k *Keeper) lookAtPods(ctx context.Context) error {
	var pods corev1.PodList
	if err := k.Cluster.List(ctx, &pods, client.MatchingFields{NodeNameIndex: ""}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list pods without a node: %w", err)
	}
	f, now := &k.follow, k.Clock.Now()
	unbound, seen := map[types.UID]bool{}, map[types.UID]bool{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		unbound[pod.UID] = true
		since, waits := unschedulableSince(pod)
		if !waits {
			continue
		}
		seen[pod.UID] = true
		if !f.started || f.seen[pod.UID] {
			continue
		}
		if len(f.batch) == 0 {
			f.since, f.begun = since, now
		}
		if since.Before(f.since) {
			f.since = since
		}
		f.newest = now
		f.batch = append(f.batch, waiting{client.ObjectKeyFromObject(pod), pod.UID})
	}
	f.seen, f.started = seen, true
	if len(f.batch) > 0 && (now.Sub(f.newest) >= k.BatchIdle || now.Sub(f.begun) >= k.BatchMax) {
		if err := k.buy(ctx); err != nil {
			return err
		}
	}
	return k.see(ctx, unbound)
}

// buy writes down what nap would have bought for the pods of the batch.
func (k *Keeper) buy(ctx context.Context) error {
	w, err := k.world(ctx)
	if err != nil {
		return err
	}
	f := &k.follow
	planned, err := savings.Replan(ctx, asBefore(w.objects, f.batch, f.since), w.assumed, w.source, k.planOptions())
	if err != nil {
		return err
	}
	slices.SortFunc(f.batch, func(a, b waiting) int { return compare(a.name, b.name) })
	bought := &followed{pods: f.batch, Purchase: shadow.Purchase{
		At: f.since, Pods: len(f.batch), Pod: f.batch[0].name.String(), Decided: k.Clock.Now(),
		PlannedHourly: planned.Plan.Cost.Dollars(), Unplaced: unplaced(planned),
	}}
	p := planned.Input.Problem
	for i := range planned.Plan.NewNodes {
		n := &planned.Plan.NewNodes[i]
		size := p.Catalogs[p.Pools[n.Pool].Catalog].InstanceTypes[n.Best().InstanceType].Name
		bought.Planned = shadow.AddMachine(bought.Planned, sizeOf(size, offeringOf(p, n).CapacityType))
	}
	f.open, f.batch = append(f.open, bought), nil
	k.record.Follow(bought.Purchase)
	return nil
}

func compare(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func sizeOf(size string, capacity model.CapacityType) string {
	if capacity == model.Spot {
		return size + " spot"
	}
	return size
}

// asBefore is the cluster without machines that are on their way or came after a moment, in
// which of all waiting pods only those of a batch wait. Machines on their way and the pods
// that they are for are left out together.
func asBefore(objects []client.Object, batch []waiting, since time.Time) []client.Object {
	mine := map[types.UID]bool{}
	for _, w := range batch {
		mine[w.uid] = true
	}
	there := map[string]bool{}
	for _, o := range objects {
		if node, is := o.(*corev1.Node); is && node.CreationTimestamp.Time.Before(since) && ready(node) {
			there[node.Name] = true
		}
	}
	var out []client.Object
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Node:
			if there[o.Name] {
				out = append(out, o)
			}
		case *v1.NodeClaim:
			if there[o.Status.NodeName] {
				out = append(out, o)
			}
		case *corev1.Pod:
			switch {
			case there[o.Spec.NodeName]:
				out = append(out, o)
			case mine[o.UID]:
				pod := o.DeepCopy()
				pod.Spec.NodeName, pod.Status.NominatedNodeName = "", ""
				out = append(out, pod)
			}
		default:
			out = append(out, o)
		}
	}
	return out
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// see looks at the pods of purchases that have left the unbound ones.
func (k *Keeper) see(ctx context.Context, unbound map[types.UID]bool) error {
	f, now := &k.follow, k.Clock.Now()
	for _, bought := range f.open {
		left := bought.pods[:0:0]
		for _, w := range bought.pods {
			if unbound[w.uid] {
				left = append(left, w)
				continue
			}
			if err := k.placed(ctx, bought, w); err != nil {
				return err
			}
		}
		bought.pods = left
		if len(left) > 0 {
			bought.Placed = nil
			bought.Lost = now.Sub(bought.At) > followFor
		}
		k.record.Follow(bought.Purchase)
	}
	f.open = slices.DeleteFunc(f.open, func(b *followed) bool { return b.Lost || len(b.pods) == 0 })
	for uid, at := range f.machines {
		if now.Sub(at) > 2*followFor {
			delete(f.machines, uid)
		}
	}
	return nil
}

// placed sees where a pod has gone.
func (k *Keeper) placed(ctx context.Context, bought *followed, w waiting) error {
	var pod corev1.Pod
	err := k.Cluster.Get(ctx, w.name, &pod)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read pod %s: %w", w.name, err)
	}
	if apierrors.IsNotFound(err) || pod.UID != w.uid || pod.Spec.NodeName == "" {
		bought.Gone++
		return nil
	}
	at := k.Clock.Now()
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			at = c.LastTransitionTime.Time
		}
	}
	if bought.Placed == nil || at.After(*bought.Placed) {
		bought.Placed = &at
	}
	var node corev1.Node
	if err := k.Cluster.Get(ctx, types.NamespacedName{Name: pod.Spec.NodeName}, &node); err != nil {
		return client.IgnoreNotFound(err)
	}
	k.arrived(bought, &node)
	return nil
}

// arrived counts a node as bought for a purchase, unless it was there before or is another's.
func (k *Keeper) arrived(bought *followed, node *corev1.Node) {
	f, made := &k.follow, node.CreationTimestamp.Time
	if made.Before(bought.At) {
		return
	}
	if _, known := f.machines[node.UID]; known {
		return
	}
	if f.machines == nil {
		f.machines = map[types.UID]time.Time{}
	}
	f.machines[node.UID] = made
	if bought.First == nil || made.Before(*bought.First) {
		bought.First = &made
	}
	offering, _ := k.market.source.OfferingOf(node)
	bought.Bought = shadow.AddMachine(bought.Bought, sizeOf(node.Labels[corev1.LabelInstanceTypeStable], offering.CapacityType))
	bought.BoughtHourly += offering.Price.Dollars()
}
