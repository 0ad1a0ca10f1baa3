package provisioning

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"
)

// Owner is the controller of a pod. The zero Kind is a bare pod's.
type Owner struct {
	Kind, Namespace, Name string
	UID                   types.UID
}

// Counts are an owner's pods that live: neither finished nor being deleted.
type Counts struct {
	// Alive is all of them, Waiting those that the scheduler found no place for.
	Alive, Waiting int
}

// ExpectedPods knows, pod by pod, what the scheduler has said, and so whether more
// pods are to be expected. It is fed by the pod trigger. All methods are safe for concurrent use.
//
// A pod that exists and about which the scheduler has said nothing yet is
// undecided: it may need a machine in a moment. Undecided pods hold a batch open,
// but no longer than patience, since a pod of a foreign scheduler may never be
// judged in the way that is understood here.
type ExpectedPods struct {
	clock    clock.Clock
	patience time.Duration

	mu   sync.Mutex
	pods map[types.NamespacedName]podEntry
	// owners has the sums of pods by their owner; owners without pods are absent.
	owners map[Owner]Counts
	// undecided is since when the scheduler has said nothing about a pod.
	undecided map[types.NamespacedName]time.Time
	// lastBound is when the scheduler last bound a pod that had waited.
	lastBound time.Time
	// settling is set by a bound pod and cleared by TakeSettled.
	settling bool
}

// podEntry is what was last observed of a pod.
type podEntry struct {
	uid   types.UID
	owner Owner
	// alive pods are neither finished nor being deleted; waiting ones were found
	// unschedulable.
	alive   bool
	waiting bool
	// nominated pods have the promise of a node and are not bound to it yet.
	nominated bool
	// reminded is when the pod was last let through by Observe.
	reminded time.Time
}

// NewExpectedPods returns one that knows no pods, with this patience for undecided pods.
func NewExpectedPods(clk clock.Clock, patience time.Duration) *ExpectedPods {
	return &ExpectedPods{
		clock: clk, patience: patience,
		pods: map[types.NamespacedName]podEntry{}, owners: map[Owner]Counts{},
		undecided: map[types.NamespacedName]time.Time{},
	}
}

// Attention is what a pod deserves after an observation.
type Attention int

// A pod that does not wait, or that waits and has been dealt with lately, is
// nothing new; one that waits for long is due again; one that has begun to wait
// is new.
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
		waiting: podutils.IsProvisionable(pod),

		nominated: podutils.IsPreempting(pod) && !podutils.IsScheduled(pod),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.pods[key]
	what := r.attention(before, &now)
	if (before.waiting || before.nominated) && before.uid == now.uid && podutils.IsScheduled(pod) {
		r.lastBound, r.settling = r.clock.Now(), true
	}
	r.count(before, -1)
	r.count(now, +1)
	r.pods[key] = now
	if now.alive && undecided(pod) {
		if before.uid != now.uid || r.undecided[key].IsZero() {
			r.undecided[key] = r.clock.Now()
		}
	} else {
		delete(r.undecided, key)
	}
	return what
}

func (r *ExpectedPods) attention(before podEntry, now *podEntry) Attention {
	if !now.waiting {
		return NothingNew
	}
	if !before.waiting || before.uid != now.uid {
		now.reminded = r.clock.Now()
		return New
	}
	now.reminded = before.reminded
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
	r.count(r.pods[key], -1)
	delete(r.pods, key)
	delete(r.undecided, key)
}

func (r *ExpectedPods) count(e podEntry, by int) {
	if !e.alive {
		return
	}
	c := r.owners[e.owner]
	c.Alive += by
	if e.waiting {
		c.Waiting += by
	}
	if c == (Counts{}) {
		delete(r.owners, e.owner)
		return
	}
	r.owners[e.owner] = c
}

// Of returns an owner's pods.
func (r *ExpectedPods) Of(o Owner) Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.owners[o]
}

// Decided reports whether the scheduler has judged every pod that it can be
// expected to judge.
func (r *ExpectedPods) Decided() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	for _, since := range r.undecided {
		if now.Sub(since) < r.patience {
			return false
		}
	}
	return true
}

// undecided pods are neither bound nor has the scheduler said anything about
// them, not even that it will not look at them (scheduling gates).
func undecided(pod *corev1.Pod) bool {
	if podutils.IsScheduled(pod) {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return false
		}
	}
	return true
}

func ownerOf(pod *corev1.Pod) Owner {
	ref := metav1.GetControllerOf(pod)
	if ref == nil {
		return Owner{}
	}
	return Owner{Kind: ref.Kind, Namespace: pod.Namespace, Name: ref.Name, UID: ref.UID}
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
