package provisioning

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"
)

// losses knows which owners of pods lose pods that ran: those that are evicted, as from a node
// that is drained, are ended by its kubelet, as on a node that shuts down, are deleted by
// something else than their owner, or vanish, as with a node that is gone. They go one after the
// other, and each is replaced at once, so that an owner that has all its pods again may lose the
// next one. What an owner itself deletes, as one that is scaled down, is no loss. ExpectedPods
// guards it.
type losses struct {
	clock clock.PassiveClock
	// within is how long after a loss another one may follow.
	within time.Duration
	// at is when an owner last lost a pod. What is older than within is dropped by sweep.
	at    map[Owner]time.Time
	swept time.Time
}

func newLosses(clk clock.PassiveClock, within time.Duration) losses {
	return losses{clock: clk, within: within, at: map[Owner]time.Time{}}
}

// add notes that an owner has lost a pod.
func (l *losses) add(o Owner) {
	l.sweep()
	l.at[o] = l.clock.Now()
}

// lately reports whether an owner may lose more pods.
func (l *losses) lately(o Owner) bool {
	at, known := l.at[o]
	return known && l.clock.Since(at) < l.within
}

// sweep forgets what is over, so that there are the owners of twice the time at most.
func (l *losses) sweep() {
	now := l.clock.Now()
	if now.Sub(l.swept) < l.within {
		return
	}
	l.swept = now
	for o, at := range l.at {
		if now.Sub(at) >= l.within {
			delete(l.at, o)
		}
	}
}

// evicted reports whether a pod goes by something else than its owner: by an eviction, a
// preemption, or because of its node, whose kubelet may end it without deleting it.
func evicted(p *corev1.Pod) bool {
	if !podutils.IsTerminating(p) && p.Status.Phase != corev1.PodFailed {
		return false
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}
