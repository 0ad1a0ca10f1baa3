package provisioning

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
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
type nominations struct {
	clients Clients
	clock   clock.Clock

	mu sync.Mutex
	// groups are the promised pods of each claim.
	groups map[string]*nominees
	// claims finds a pod's group.
	claims map[types.UID]string
	// written is what was last written, by pod: a nomination of any other origin
	// is left alone.
	written map[types.UID]string
	// withdrawn are the pods whose promise has ended without a place.
	withdrawn []types.UID
}

// nominees are the pods that are promised to one claim's machine.
type nominees struct {
	// node is empty until the machine has registered, ready zero until it is
	// initialized.
	node  string
	ready time.Time
	pods  map[types.UID]*nominee
}

type nominee struct {
	key types.NamespacedName
	// tries counts the nominations so far, the last at that time. The scheduler
	// takes one back when it looks at the pod before the node is ready.
	tries int
	last  time.Time
}

// nominator is the field manager of nominations.
const nominator = "nap-nominator"

// A nomination that the scheduler has taken back is repeated, until there have
// been this many and with at least this pause: each costs a request.
const (
	nominateTries = 3
	nominatePause = time.Second
	// nominateAtOnce bounds the requests in parallel.
	nominateAtOnce = 16
)

func newNominations(clients Clients, clk clock.Clock) *nominations {
	return &nominations{
		clients: clients, clock: clk,
		groups: map[string]*nominees{}, claims: map[types.UID]string{}, written: map[types.UID]string{},
	}
}

// put promises a claim's machine to a pod.
func (n *nominations) put(key types.NamespacedName, uid types.UID, claim string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop(uid)
	g := n.groups[claim]
	if g == nil {
		g = &nominees{pods: map[types.UID]*nominee{}}
		n.groups[claim] = g
	}
	g.pods[uid] = &nominee{key: key}
	n.claims[uid] = claim
}

func (n *nominations) drop(uid types.UID) {
	claim, known := n.claims[uid]
	if !known {
		return
	}
	delete(n.claims, uid)
	delete(n.groups[claim].pods, uid)
	if len(n.groups[claim].pods) == 0 {
		delete(n.groups, claim)
	}
}

// observeNode takes in a claim's node: once it has registered, its pods are
// nominated.
func (n *nominations) observeNode(ctx context.Context, node *corev1.Node) error {
	claim := claimOf(node)
	if claim == "" || node.Labels[karpv1.NodeRegisteredLabelKey] != "true" {
		return nil
	}
	if disrupted(node) || node.DeletionTimestamp != nil {
		return n.claimGone(ctx, claim)
	}
	n.mu.Lock()
	g := n.groups[claim]
	if g != nil {
		g.node = node.Name
		if g.ready.IsZero() && node.Labels[karpv1.NodeInitializedLabelKey] == "true" {
			g.ready = n.clock.Now()
		}
	}
	n.mu.Unlock()
	if g == nil {
		return nil
	}
	return n.send(ctx)
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

// observePod repeats a nomination that the scheduler took back, and forgets pods
// that have found their place.
func (n *nominations) observePod(ctx context.Context, pod *corev1.Pod) error {
	n.mu.Lock()
	claim, known := n.claims[pod.UID]
	if known && (pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil) {
		n.drop(pod.UID)
		delete(n.written, pod.UID)
		known = false
	}
	node := ""
	if known {
		node = n.groups[claim].node
	}
	n.mu.Unlock()
	if !known || node == "" || pod.Status.NominatedNodeName != "" {
		return nil
	}
	return n.send(ctx)
}

// request is one nomination to write; an empty node withdraws it.
type request struct {
	key  types.NamespacedName
	uid  types.UID
	node string
}

// send nominates every pod whose machine has registered and that is not
// nominated yet.
func (n *nominations) send(ctx context.Context) error {
	var due []request
	n.mu.Lock()
	for _, g := range n.groups {
		if g.node == "" {
			continue
		}
		for uid, p := range g.pods {
			if n.due(p) {
				due = append(due, request{p.key, uid, g.node})
			}
		}
	}
	n.mu.Unlock()
	return n.write(ctx, due)
}

// release withdraws what was not taken up: of machines that have been ready long
// enough for a scheduler that has come to rest.
func (n *nominations) release(ctx context.Context, quiet time.Duration) error {
	return n.withdraw(ctx, func(_ string, g *nominees) bool {
		if g.ready.IsZero() {
			return false
		}
		return isOver(n.clock.Since(g.ready), quiet)
	})
}

// claimGone withdraws the promises of a machine that will never be, or is no
// more.
func (n *nominations) claimGone(ctx context.Context, claim string) error {
	return n.withdraw(ctx, func(name string, _ *nominees) bool { return name == claim })
}

// takeWithdrawn returns, once, the pods whose promise has ended.
func (n *nominations) takeWithdrawn() []types.UID {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.withdrawn
	n.withdrawn = nil
	return out
}

func (n *nominations) withdraw(ctx context.Context, which func(claim string, g *nominees) bool) error {
	var due []request
	n.mu.Lock()
	for claim, g := range n.groups {
		if !which(claim, g) {
			continue
		}
		for uid, p := range g.pods {
			due = append(due, request{p.key, uid, ""})
		}
	}
	for _, r := range due {
		n.drop(r.uid)
		n.withdrawn = append(n.withdrawn, r.uid)
	}
	n.mu.Unlock()
	return n.write(ctx, due)
}

// write makes the requests, in the order of the pods' names. A pod that has
// changed its mind meanwhile needs none.
func (n *nominations) write(ctx context.Context, due []request) error {
	slices.SortFunc(due, func(a, b request) int { return cmp.Compare(a.key.String(), b.key.String()) })
	failed := make([]error, len(due))
	var group errgroup.Group
	group.SetLimit(nominateAtOnce)
	for i, r := range due {
		group.Go(func() error {
			failed[i] = n.nominate(ctx, r)
			return nil
		})
	}
	_ = group.Wait() // every error is in failed
	return errors.Join(failed...)
}

func (n *nominations) nominate(ctx context.Context, r request) error {
	// A thousand pods may be nominated at once: what is read is not copied, and what the API
	// server answers is their metadata alone.
	pod := &corev1.Pod{}
	if err := n.clients.Cached.Get(ctx, r.key, pod, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
		n.forget(r.uid)
		return nil
	} else if err != nil {
		return fmt.Errorf("reading pod %s to nominate a node: %w", r.key, err)
	}
	now := pod.Status.NominatedNodeName
	switch {
	case pod.UID != r.uid, pod.Spec.NodeName != "":
		n.forget(r.uid)
		return nil
	case now == r.node, now != "" && now != n.ours(r.uid):
		return nil
	}
	patch, err := nominationPatch(r)
	if err != nil {
		return err
	}
	if !n.begin(r) {
		return nil
	}
	patched := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: r.key.Name, Namespace: r.key.Namespace, UID: r.uid}}
	patched.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	err = n.clients.Cached.Status().Patch(ctx, patched, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(nominator))
	// A conflict means another pod of that name; what is invalid is a nomination of
	// a pod that has been bound meanwhile.
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return fmt.Errorf("nominating node %q for pod %s: %w", r.node, r.key, err)
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

func (n *nominations) forget(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop(uid)
	delete(n.written, uid)
}

func (n *nominations) ours(uid types.UID) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.written[uid]
}

func (n *nominations) due(p *nominee) bool {
	return p.tries < nominateTries && n.clock.Since(p.last) >= nominatePause
}

// begin books a request before it is made, and reports whether it should be:
// another request may be making it at this moment.
func (n *nominations) begin(r request) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.node == "" {
		delete(n.written, r.uid)
		return true
	}
	claim, known := n.claims[r.uid]
	if !known {
		return false
	}
	p := n.groups[claim].pods[r.uid]
	if !n.due(p) {
		return false
	}
	p.tries, p.last = p.tries+1, n.clock.Now()
	n.written[r.uid] = r.node
	return true
}

// adopt takes over the nominations that an earlier process left behind.
func (n *nominations) adopt(ctx context.Context) error {
	var pods corev1.PodList
	// The caches do without field managers.
	if err := n.clients.Live.List(ctx, &pods, client.MatchingFields{"spec.nodeName": ""}); err != nil {
		return fmt.Errorf("listing the pods that wait: %w", err)
	}
	var orphans []request
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
			orphans = append(orphans, request{key, pod.UID, ""})
			continue
		}
		n.put(key, pod.UID, claim)
		if err := n.observeNode(ctx, node); err != nil {
			return err
		}
	}
	return n.write(ctx, orphans)
}

// found remembers a nomination that an earlier process wrote.
func (n *nominations) found(pod *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.written[pod.UID] = pod.Status.NominatedNodeName
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
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.clock.After(settleLook):
			err := errors.Join(n.send(ctx), n.release(ctx, quiet()))
			if err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "nominating nodes failed, it is tried again")
			}
		}
	}
}
