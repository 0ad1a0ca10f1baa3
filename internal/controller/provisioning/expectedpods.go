package provisioning

import (
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"

	"github.com/nodeautoprovision/nap/internal/kube"
)

// Owner is the controller of a pod. The zero Kind is a bare pod's. That of a kind which is not
// Kubernetes' own has its API group, as in StatefulSet.apps.kruise.io.
type Owner struct {
	Kind, Namespace, Name string
	UID                   types.UID
}

// Counts are an owner's pods that live: neither finished nor being deleted.
type Counts struct {
	// Alive is all of them, Waiting those without a node: the scheduler found no place
	// for them, or has not looked at them yet.
	Alive, Waiting int
	// Open are those without a node which wait for a word of their scheduler.
	Open int
	// Patterns are those of Alive after which the owner's further pods can be planned.
	Patterns int
	// Gated are those that wait for a scheduling gate to be removed: when is not known.
	Gated int
}

// ExpectedPods knows, pod by pod, what the scheduler has said, and so whether more
// pods are to be expected. It is fed by the pod trigger. All methods are safe for concurrent use.
type ExpectedPods struct {
	clock clock.Clock

	mu   sync.Mutex
	pods map[types.NamespacedName]podEntry
	// owners has the sums of pods by their owner; owners without pods are absent.
	owners map[Owner]ownedPods
	// covered is how many pods of an owner have a place before they exist.
	covered map[types.UID]int
	// losses are the owners whose pods are taken away.
	losses losses
	// fresh are the pods that have begun to wait since TakeFresh.
	fresh map[types.NamespacedName]bool
	// placed are the pods for which the last plan found room on nodes that are ready. Those
	// that do not wait are dropped by TakeMissed.
	placed map[types.NamespacedName]place
	// lastBound is when the scheduler last bound a pod that had waited.
	lastBound time.Time
	// settling is set by a bound pod and cleared by TakeSettled.
	settling bool
}

// ownedPods are the sums of an owner's living pods, and when the first of them was seen first,
// also where that one has gone.
type ownedPods struct {
	Counts
	first time.Time
}

// podEntry is what was last observed of a pod.
type podEntry struct {
	uid   types.UID
	owner Owner
	// since is when it was seen first.
	since time.Time
	// alive pods are neither finished nor being deleted. Waiting ones were found
	// unschedulable, which is judged, or nothing is said about them yet.
	alive, waiting, judged bool
	// bound pods have a node.
	bound bool
	// open, pattern and gated are as in Counts.
	open, pattern, gated bool
	// nominated pods have the promise of a node and are not bound to it yet.
	nominated bool
	// reminded is when the pod was last let through by Observe.
	reminded time.Time
}

// NewExpectedPods returns one that knows no pods. An owner that has lost a pod may lose
// another one for as long as a batch waits when it is idle.
func NewExpectedPods(clk clock.Clock, idle time.Duration) *ExpectedPods {
	return &ExpectedPods{
		clock: clk, losses: newLosses(clk, idle),
		pods: map[types.NamespacedName]podEntry{}, owners: map[Owner]ownedPods{}, covered: map[types.UID]int{},
		fresh: map[types.NamespacedName]bool{},
	}
}

// Attention is what a pod deserves after an observation.
type Attention int

// A pod that does not wait, or that waits and has been dealt with lately, is
// nothing new. One that waits for long is due again, and so is one that has a place
// already, planned before it existed, or that the scheduler has just found
// unschedulable although it was planned before. One that has begun to wait is new.
const (
	NothingNew Attention = iota
	DueAgain
	New
)

// Observe takes in the present state of a pod and says what it deserves. A pod
// that waits is due again every retryAfter, however often it is changed
// meanwhile: the scheduler rewrites the message of every waiting pod whenever a
// node joins.
func (r *ExpectedPods) Observe(pod *corev1.Pod) Attention {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	now := podEntry{
		uid:     pod.UID,
		owner:   ownerOf(pod),
		alive:   !podutils.IsTerminal(pod) && !podutils.IsTerminating(pod),
		judged:  podutils.IsProvisionable(pod),
		bound:   podutils.IsScheduled(pod),
		pattern: kube.IsPattern(pod),
		gated:   len(pod.Spec.SchedulingGates) > 0,

		nominated: podutils.IsPreempting(pod) && !podutils.IsScheduled(pod),
	}
	now.waiting = now.judged || kube.Unjudged(pod)
	now.open = !now.waiting && !podutils.IsScheduled(pod) && !judged(pod)
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.pods[key]
	if now.since = before.since; before.uid != now.uid {
		now.since = r.clock.Now()
	}
	what := r.attention(before, &now)
	waited := before.judged || before.nominated || before.waiting && r.clock.Since(now.since) >= waitedLong
	if waited && before.uid == now.uid && podutils.IsScheduled(pod) {
		r.lastBound, r.settling = r.clock.Now(), true
	}
	r.count(now, +1) // first: the owner may have no other pod
	r.count(before, -1)
	r.pods[key] = now
	if before.alive && before.bound && evicted(pod) {
		r.losses.add(before.owner)
	}
	if what == New {
		r.fresh[key] = true
	}
	return what
}

// Knows reports whether a pod has been observed.
func (r *ExpectedPods) Knows(pod *corev1.Pod) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pods[client.ObjectKeyFromObject(pod)].uid == pod.UID
}

// AnyFresh reports whether any pod still waits that has begun to since TakeFresh.
func (r *ExpectedPods) AnyFresh() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.fresh {
		if r.pods[key].waiting {
			return true
		}
		delete(r.fresh, key)
	}
	return false
}

// TakeFresh says that all pods that wait are about to be planned.
func (r *ExpectedPods) TakeFresh() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.fresh)
}

// waitedLong is after how long a pod that the scheduler then binds has waited, although
// nothing was said about it: the scheduler takes less than that for one that fits.
const waitedLong = time.Second

func (r *ExpectedPods) attention(before podEntry, now *podEntry) Attention {
	if !now.waiting {
		return NothingNew
	}
	if !before.waiting || before.uid != now.uid {
		now.reminded = r.clock.Now()
		if r.covered[now.owner.UID] > 0 {
			r.covered[now.owner.UID]--
			return DueAgain
		}
		return New
	}
	now.reminded = before.reminded
	if now.judged && !before.judged {
		return DueAgain
	}
	if r.clock.Since(before.reminded) < retryAfter {
		return NothingNew
	}
	now.reminded = r.clock.Now()
	return DueAgain
}

// Forget drops a pod that no longer exists.
func (r *ExpectedPods) Forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.pods[key]
	if before.alive && before.bound {
		r.losses.add(before.owner)
	}
	r.count(before, -1)
	delete(r.pods, key)
}

// Deleted takes in that a pod is being deleted whose owner still wants it: it is lost.
func (r *ExpectedPods) Deleted(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before := r.pods[client.ObjectKeyFromObject(pod)]; before.uid == pod.UID && before.alive && before.bound {
		r.losses.add(before.owner)
	}
}

// Leaves takes in that a node leaves, whose pods go one after the other: as an owner it loses
// pods.
func (r *ExpectedPods) Leaves(node Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.losses.add(node)
}

// Losing reports whether an owner has lost a pod so lately that it may lose more.
func (r *ExpectedPods) Losing(o Owner) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.losses.lately(o)
}

// Cover says for how many pods of each owner, by its UID, there are places before they
// exist. It replaces what was said before.
func (r *ExpectedPods) Cover(places map[types.UID]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.covered = places
}

func (r *ExpectedPods) count(e podEntry, by int) {
	if !e.alive {
		return
	}
	c := r.owners[e.owner]
	if c.Alive == 0 {
		c.first = e.since
	}
	c.Alive += by
	if e.waiting {
		c.Waiting += by
	}
	if e.open {
		c.Open += by
	}
	if e.pattern {
		c.Patterns += by
	}
	if e.gated {
		c.Gated += by
	}
	if c.Counts == (Counts{}) {
		delete(r.owners, e.owner)
		return
	}
	r.owners[e.owner] = c
}

// Of returns an owner's pods.
func (r *ExpectedPods) Of(o Owner) Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.owners[o].Counts
}

// judged reports whether the pod's scheduler has said anything about it, be it that it
// does not look at it (scheduling gates).
func judged(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
}

func ownerOf(pod *corev1.Pod) Owner {
	ref := metav1.GetControllerOf(pod)
	if ref == nil {
		return Owner{}
	}
	kind := ref.Kind
	if group, _, grouped := strings.Cut(ref.APIVersion, "/"); grouped && group != "apps" && group != "batch" {
		kind += "." + group
	}
	return Owner{Kind: kind, Namespace: pod.Namespace, Name: ref.Name, UID: ref.UID}
}

// Since reports whether an owner has living pods, and its first one has been seen first within
// the last d.
func (r *ExpectedPods) Since(o Owner, d time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	owned, has := r.owners[o]
	return has && r.clock.Since(owned.first) < d
}

// Quiet is for how long the scheduler has found a node for none of the pods that
// waited.
func (r *ExpectedPods) Quiet() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clock.Since(r.lastBound)
}

// TakeSettled reports, once, that the scheduler has bound pods, has stopped doing
// so, and has left some waiting.
func (r *ExpectedPods) TakeSettled() bool {
	if r.Quiet() < settleQuiet || !r.AnyWaiting() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.settling
	r.settling = false
	return was
}

// AnyWaiting reports whether any pod waits for a node.
func (r *ExpectedPods) AnyWaiting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.owners {
		if c.Waiting > 0 {
			return true
		}
	}
	return false
}
