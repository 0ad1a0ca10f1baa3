package provisioning

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/kube"
)

// startsWithin is how long an owner without a pod is waited for. One that takes longer is kept from
// creating any, by a quota or a webhook, or its controller has not come to it yet: the controller
// manager works on five owners of a kind at a time, and creates about 20 pods in a second. Such an
// owner is waited for, queuedWithin at most, by all batches but the first after it appeared.
const (
	startsWithin = time.Second
	queuedWithin = 30 * time.Second
)

// patience is how long an owner is waited for.
func patience(queued bool) time.Duration {
	if queued {
		return queuedWithin
	}
	return startsWithin
}

// startingOwners are the owners that want pods and have none yet, and those that are about to delete
// pods which wait. A plan that waits for them is one plan for all. An owner is not waited for where
// workloads of its set have two pods, after which those of this one are planned, too. It is safe for
// concurrent use.
type startingOwners struct {
	clock clock.Clock
	pods  livingPods

	mu sync.Mutex
	// starts has the owners without a pod that they want. They are kept beyond startsWithin,
	// until they have pods, want none, or are gone.
	starts map[Owner]ownerStart
	// shrinks has the owners with more pods than they want, until they have no more.
	shrinks map[Owner]ownerShrink
	// sets are the owners that belong to a set of workloads.
	sets groups[Owner, string]
	// closed is when a batch was closed last.
	closed time.Time
}

// livingPods knows the pods of owners that live, as [ExpectedPods] does.
type livingPods interface {
	Of(owner Owner) Counts
}

// ownerStart is an owner without a pod: since when it was seen so, and whether its controller has
// not looked at it yet.
type ownerStart struct {
	since  time.Time
	queued bool
}

// ownerShrink is an owner with pods to delete: how many it wants and has, since when it has as many,
// and whether its controller has not come to it yet.
type ownerShrink struct {
	wants, has int
	since      time.Time
	queued     bool
}

func newStartingOwners(clk clock.Clock, pods livingPods) *startingOwners {
	return &startingOwners{clock: clk, pods: pods, starts: map[Owner]ownerStart{}, shrinks: map[Owner]ownerShrink{}}
}

// batchCloses takes in that what is known now is planned.
func (s *startingOwners) batchCloses() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = s.clock.Now()
}

// observe takes in the present state of an owner.
func (s *startingOwners) observe(o client.Object) {
	owner := Owner{Kind: kindOf(o), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
	workload := kube.Workload(o)
	have := s.pods.Of(owner).Alive
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sets.join(owner, workload.Set)
	if workload.Pods == 0 || have > 0 {
		delete(s.starts, owner)
	} else {
		start, known := s.starts[owner]
		if !known {
			start.since = s.clock.Now()
		}
		start.queued = kube.Queued(o)
		s.starts[owner] = start
	}
	// Of pods that are too many these two delete those first that wait.
	deletes := owner.Kind == "ReplicaSet" || owner.Kind == "ReplicationController"
	if have <= workload.Pods || !deletes {
		delete(s.shrinks, owner)
	} else {
		shrink := s.shrinks[owner]
		if shrink.since.IsZero() || shrink.wants > workload.Pods {
			shrink = ownerShrink{wants: workload.Pods, has: have, since: s.clock.Now()}
		}
		shrink.queued = !kube.Observed(o)
		s.shrinks[owner] = shrink
	}
}

// forget drops an owner that is gone.
func (s *startingOwners) forget(o client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner := Owner{Kind: kindOf(o), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
	delete(s.starts, owner)
	delete(s.shrinks, owner)
	s.sets.join(owner, "")
}

// appeared is when an owner that has no pod yet was first seen. It is zero where that is not
// known, and where it is longer ago than startsWithin: other owners of that time are not waited for
// any more, and may have their first pods now, too, as this one.
func (s *startingOwners) appeared(owner Owner) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := s.starts[owner].since
	if s.clock.Since(since) >= startsWithin {
		return time.Time{}
	}
	return since
}

// any reports whether some owner is to be waited for: it is about to create its first pod, or to
// delete pods that wait.
func (s *startingOwners) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, found, shown := s.clock.Now(), false, map[string]bool{}
	for owner, start := range s.starts {
		if s.pods.Of(owner).Alive > 0 {
			delete(s.starts, owner)
			continue
		}
		waits := patience(start.queued && start.since.Before(s.closed))
		found = found || now.Sub(start.since) < waits && !s.shown(owner, shown)
	}
	for owner, shrink := range s.shrinks {
		have := s.pods.Of(owner)
		if have.Alive < shrink.has {
			shrink.has, shrink.since = have.Alive, now
			s.shrinks[owner] = shrink
		}
		if have.Alive <= shrink.wants || now.Sub(shrink.since) >= patience(shrink.queued) {
			delete(s.shrinks, owner)
			continue
		}
		found = found || have.Waiting > 0
	}
	return found
}

// shown reports whether owners of the set have pods after which this one's are planned. Known are
// the answers for sets so far, of which one may have thousands of owners. The caller holds the lock.
func (s *startingOwners) shown(owner Owner, known map[string]bool) bool {
	set := s.sets.of[owner]
	if answer, asked := known[set]; asked {
		return answer
	}
	patterns := 0
	for other := range s.sets.members[set] {
		patterns += s.pods.Of(other).Patterns
	}
	known[set] = patterns > 1
	return known[set]
}
