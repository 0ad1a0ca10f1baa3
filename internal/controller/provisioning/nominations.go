package provisioning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/controller/periodic"
	"github.com/nodeautoprovision/nap/internal/fleet"
)

// nominations tell the scheduler which pods the plan counts on which machine, by
// the pods' status.nominatedNodeName. The scheduler tries that node first and
// keeps its room from pods of no higher priority, so that a tight plan comes out
// as it was made; without it the scheduler spreads pods its own way, and the
// last ones find no room (Kubernetes enhancement 5278).
//
// A nomination is an offer: a pod that the scheduler puts elsewhere is fine, and
// what is not taken up soon after the node is ready is withdrawn, so that the
// pod is planned again. The field's owner (its manager) tells nap's nominations
// from those of preemption, which are left alone, also after a restart.
//
// Each costs a request, at the moment in which the control plane has most to do, and is in
// vain once the pod is bound. So pods to which few zones are open come first, then large ones, and
// nominations take a share of the requests that the controller may make: what makes nodes ready
// does not wait for them.
type nominations struct {
	*nominees
	clients Clients
	mirror  Mirror
	// limit is how many requests there may be in a second.
	limit flowcontrol.RateLimiter
	// wake has one entry when something may be to write.
	wake chan struct{}
}

// nominator is the field manager of nominations.
const nominator = "nap-nominator"

// nominateAtOnce bounds the requests that are made at once.
const nominateAtOnce = 16

// newNominations writes at most so many nominations a second, and after a pause those of a
// quarter of a second at once.
func newNominations(clients Clients, mirror Mirror, clk clock.Clock, perSecond int) *nominations {
	return &nominations{
		nominees: newNominees(clk), clients: clients, mirror: mirror, wake: make(chan struct{}, 1),
		limit: flowcontrol.NewTokenBucketRateLimiterWithClock(float32(perSecond), max(perSecond/4, nominateAtOnce), clk),
	}
}

// promise promises a claim's machine to a pod of a snapshot.
func (n *nominations) promise(snapshot *fleet.Snapshot, pod *fleet.Pod, claim string) {
	volumes := fleet.VolumeZones(snapshot, pod)
	kind := pod.UID
	if pod.OwnerUID != "" {
		kind = fmt.Sprint(pod.OwnerUID, " ", volumes, " ", pod.Spec.Key)
	}
	key := types.NamespacedName{Namespace: pod.Ref.Namespace, Name: pod.Ref.Name}
	n.put(types.UID(pod.UID), &nominee{
		key: key, requests: pod.Spec.Requests, zones: zonesOpen(pod.Spec, volumes), kind: kind, rules: spreadRules(pod),
	}, claim)
	n.wakeUp()
}

// zonesOpen is how many zones a pod can go to: those of its bound volumes, which the caller knows, and
// its required node affinity, where volumes bind it or other pods may close a zone to it. For all other pods
// it is anyZone, also for one that names a zone itself: it competes for room alone, so the size
// decides.
func zonesOpen(spec *fleet.PodSpec, volumes []string) int {
	if len(volumes) == 0 && !boundByZones(spec) {
		return anyZone
	}
	if open := len(fleet.Zones(spec, volumes)); open > 0 {
		return open
	}
	return anyZone
}

func (n *nominations) wakeUp() {
	select {
	case n.wake <- struct{}{}:
	default: // it is awake
	}
}

// observeNode takes in a claim's node: once it has registered, its pods are
// nominated.
func (n *nominations) observeNode(node *corev1.Node) {
	claim := claimOf(node)
	switch {
	case claim == "", node.Labels[karpv1.NodeRegisteredLabelKey] != "true":
	case disrupted(node), node.DeletionTimestamp != nil:
		n.claimGone(claim)
	case n.arrived(claim, node, node.Labels[karpv1.NodeInitializedLabelKey] == "true"):
		n.wakeUp()
	}
}

// look takes in a node as it is now, if it is there.
func (n *nominations) look(ctx context.Context, name string) error {
	node := &corev1.Node{}
	err := n.clients.Cached.Get(ctx, types.NamespacedName{Name: name}, node, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading node %s: %w", name, err)
	}
	if err == nil {
		n.observeNode(node)
	}
	return nil
}

// claimOf names the NodeClaim behind a node.
func claimOf(node *corev1.Node) string {
	for _, ref := range node.OwnerReferences {
		if ref.Kind == "NodeClaim" {
			return ref.Name
		}
	}
	return ""
}

// release withdraws what was not taken up: of machines that have been ready long
// enough for a scheduler that has come to rest, and sooner where other pods have taken the
// room.
func (n *nominations) release(quiet time.Duration) {
	n.end(func(_ string, g *group) bool { return !g.ready.IsZero() && isOver(n.clock.Since(g.ready), quiet) })
	if !n.anyReady(settleAtLeast) {
		return
	}
	var lost []types.UID
	for _, pod := range n.mirror.Snapshot().Overbooked() {
		lost = append(lost, types.UID(pod.UID))
	}
	n.endPods(lost, settleAtLeast)
}

// claimGone withdraws the promises of a machine that will never be, or is no
// more.
func (n *nominations) claimGone(claim string) {
	n.end(func(name string, _ *group) bool { return name == claim })
	n.wakeUp()
}

// send makes the next requests, at most nominateAtOnce of them, and returns how many there
// were. A pod that has changed its mind meanwhile needs none. What fails is made again.
func (n *nominations) send(ctx context.Context) (int, error) {
	due := n.next(nominateAtOnce)
	failed := make([]error, len(due))
	var group errgroup.Group
	group.SetLimit(nominateAtOnce)
	for i, r := range due {
		group.Go(func() error {
			if failed[i] = n.nominate(ctx, r); failed[i] != nil {
				n.again(r)
			}
			return nil
		})
	}
	_ = group.Wait() // every error is in failed
	return len(due), errors.Join(failed...)
}

func (n *nominations) nominate(ctx context.Context, r request) error {
	if wanted, err := n.stillWanted(ctx, r); err != nil || !wanted {
		return err
	}
	if err := n.limit.Wait(ctx); err != nil {
		return fmt.Errorf("waiting to nominate a node for pod %s: %w", r.key, err)
	}
	// It may have been bound while it waited for its turn.
	if wanted, err := n.stillWanted(ctx, r); err != nil || !wanted || !n.begin(r) {
		return err
	}
	patch, err := nominationPatch(r)
	if err != nil {
		return err
	}
	// A thousand pods may be nominated at once: what the API server answers is their metadata
	// alone.
	patched := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: r.key.Name, Namespace: r.key.Namespace, UID: r.uid}}
	patched.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	err = n.clients.Cached.Status().Patch(ctx, patched, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(nominator))
	// A conflict means another pod of that name; what is invalid is a nomination of
	// a pod that has been bound meanwhile.
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		n.made(r)
		return nil
	}
	if r.node == "" {
		return fmt.Errorf("withdrawing the nomination of pod %s: %w", r.key, err)
	}
	return fmt.Errorf("nominating node %q for pod %s: %w", r.node, r.key, err)
}

// stillWanted reports whether the pod of a request waits, and its nomination is not what it
// should be, nor that of another client.
func (n *nominations) stillWanted(ctx context.Context, r request) (bool, error) {
	pod := &corev1.Pod{}
	if err := n.clients.Cached.Get(ctx, r.key, pod, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
		n.forget(r.uid)
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("reading pod %s to nominate a node: %w", r.key, err)
	}
	now := pod.Status.NominatedNodeName
	switch {
	case pod.UID != r.uid, pod.Spec.NodeName != "":
		n.forget(r.uid)
		return false, nil
	case now == r.node, now != "" && now != n.ours(r.uid):
		n.satisfied(r.uid)
		n.made(r)
		return false, nil
	case r.node == "" && now == n.promised(r.uid): // it was nominated again before this could be made
		return false, nil
	}
	return true, nil
}

func nominationPatch(r request) ([]byte, error) {
	var node *string
	if r.node != "" {
		node = &r.node
	}
	// The UID makes the server refuse the patch for another pod of that name.
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": r.uid},
		"status":   map[string]any{"nominatedNodeName": node},
	})
}

// adopt takes over the nominations that an earlier process left behind.
func (n *nominations) adopt(ctx context.Context) error {
	var pods corev1.PodList
	// The caches do without field managers.
	if err := n.clients.Live.List(ctx, &pods, client.MatchingFields{"spec.nodeName": ""}); err != nil {
		return fmt.Errorf("listing the pods that wait: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.NominatedNodeName == "" || !nominatedByNap(pod) {
			continue
		}
		key := client.ObjectKeyFromObject(pod)
		node := &corev1.Node{}
		err := n.clients.Cached.Get(ctx, types.NamespacedName{Name: pod.Status.NominatedNodeName}, node)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading node %s: %w", pod.Status.NominatedNodeName, err)
		}
		n.found(pod)
		claim := claimOf(node)
		if err != nil || claim == "" {
			n.again(request{key, pod.UID, ""})
			continue
		}
		n.put(pod.UID, &nominee{key: key, zones: anyZone, kind: string(pod.UID)}, claim)
		n.observeNode(node)
	}
	return nil
}

func nominatedByNap(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Manager == nominator })
}

// watch writes and withdraws nominations until ctx ends. quiet is for how long the
// scheduler has bound no pod.
func (n *nominations) watch(ctx context.Context, quiet func() time.Duration) {
	if err := n.adopt(ctx); err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "reading the nominations of an earlier run failed, their pods may wait for the scheduler")
	}
	released := n.clock.Now()
	for ctx.Err() == nil {
		if n.clock.Since(released) >= settleLook {
			n.release(quiet())
			released = n.clock.Now()
		}
		written, err := n.send(ctx)
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "nominating nodes failed, it is tried again")
		}
		if written > 0 && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-n.wake:
		case <-periodic.After(n.clock, settleLook):
		}
	}
}
