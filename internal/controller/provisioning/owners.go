package provisioning

import (
	"context"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/kube"
)

// Completeness decides whether a batch has everything that is to come.
type Completeness struct {
	Kube client.Reader
	Pods *ExpectedPods
	// Starting are the owners that are about to create their first pod; nil for none.
	Starting *startingOwners
	// Rollouts are the owners that replace others.
	Rollouts rollouts
	// Announces reports whether what the owners of a namespace have still to create is
	// planned with what they have created; nil means that it is not.
	Announces func(namespace string) bool
	// Announced reports whether what the owner with this UID has still to create is planned now
	// with what it has created.
	Announced func(types.UID) bool
}

// observe takes in the present state of an owner.
func (c *Completeness) observe(o client.Object) {
	c.Starting.observe(o)
	c.Rollouts.observe(o)
}

// forget drops an owner that is gone.
func (c *Completeness) forget(o client.Object) {
	c.Starting.forget(o)
	c.Rollouts.forget(o)
}

// Complete reports whether it is known of every owner what it still has to create, and
// that can be planned: there is a pod after which the others can be planned, or all of
// them are there and the scheduler has judged them. Of an owner whose kind is not known
// here, and of bare pods, this is not known, so the answer is no and the idle time
// decides. So it does for an owner that replaces another one, whose pods make room, and for
// one that loses pods, of which the next may follow.
func (c *Completeness) Complete(ctx context.Context, owners []Owner) bool {
	if c.Starting != nil && c.Starting.any() {
		return false
	}
	for _, o := range owners {
		if c.Rollouts.under(o) || c.Pods.Losing(o) {
			return false
		}
		if known, _ := c.look(ctx, o); !known {
			return false
		}
	}
	return true
}

// Moot reports whether nothing is left to plan: no pod that has begun to wait lately
// still does, and the owners create no more.
func (c *Completeness) Moot(ctx context.Context, owners []Owner) bool {
	if c.Pods.AnyFresh() {
		return false
	}
	for _, o := range owners {
		if known, more := c.look(ctx, o); !known || more {
			return false
		}
	}
	return true
}

// nodeKind is the kind of a node that leaves, in the place of an owner. No pod has such an owner
// here: those of nodes are static, and do not wait.
const nodeKind = "Node"

// existsWithin is how long after its first pod an owner may be unknown to the caches,
// which see pods and owners separately.
const existsWithin = 500 * time.Millisecond

// look reports whether it is known what an owner still has to create, and whether that
// is anything.
func (c *Completeness) look(ctx context.Context, o Owner) (known, more bool) {
	if o.Kind == nodeKind {
		return true, false // what it loses is created by the owners of its pods
	}
	obj, err := c.stored(ctx, o)
	if obj == nil {
		return false, true
	}
	have := c.Pods.Of(o)
	if err != nil {
		// An owner that is gone creates nothing; of one that cannot be read nothing
		// is known.
		return apierrors.IsNotFound(err) && !c.Pods.Since(o, existsWithin), false
	}
	if obj.GetUID() != o.UID {
		return true, false
	}
	w := kube.Workload(obj)
	switch {
	case have.Alive >= w.Pods:
		return have.Open == 0 && have.Gated == 0 && kube.Current(obj, have.Alive), false
	case w.OneByOne:
		// The next pod comes once these are ready. One is planned before.
		return have.Open == 0, have.Patterns > 0 && c.announces(o.Namespace)
	}
	shown := have.Patterns > 0
	if w.Silent {
		shown = have.Patterns > 1 // one pod does not show that it may have more
	}
	// Its pods may differ, or a quota say what cannot be judged: then the idle time decides.
	return shown && c.Announced(o.UID), true
}

func (c *Completeness) announces(namespace string) bool {
	return c.Announces != nil && c.Announces(namespace)
}

// stored is the object of an owner as the cache has it, which must not be changed. It is nil for
// kinds that are not known here.
func (c *Completeness) stored(ctx context.Context, o Owner) (client.Object, error) {
	obj := objectOf(o.Kind)
	if obj == nil {
		return nil, nil
	}
	return obj, c.Kube.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, obj, client.UnsafeDisableDeepCopy)
}

// wants reports whether an owner wants as many pods as it has, or more: it replaces one that is
// deleted.
func (c *Completeness) wants(ctx context.Context, o Owner) bool {
	obj, err := c.stored(ctx, o)
	if obj == nil || err != nil {
		return false // it is gone, or nothing is known of it
	}
	return obj.GetUID() == o.UID && kube.Workload(obj).Pods >= c.Pods.Of(o).Alive
}

// ordered reports whether an owner creates its pods one by one, and more are to come. Each that
// comes is a reason to plan, whether it has a place or not: the next one can be planned then.
func (c *Completeness) ordered(ctx context.Context, o Owner) bool {
	if o.Kind != "StatefulSet" {
		return false
	}
	set, err := c.stored(ctx, o)
	if err != nil {
		return false // the idle window or the next round sees its pods
	}
	_, more := c.look(ctx, o)
	return more && kube.Workload(set).OneByOne
}

// objectOf returns an empty object of the kind of an owner, or nil for kinds that are
// not known here.
func objectOf(kind string) client.Object {
	switch kind {
	case "ReplicaSet":
		return &appsv1.ReplicaSet{}
	case "ReplicationController":
		return &corev1.ReplicationController{}
	case "StatefulSet":
		return &appsv1.StatefulSet{}
	case "Job":
		return &batchv1.Job{}
	}
	return nil
}

// kindOf is the inverse of objectOf.
func kindOf(o client.Object) string {
	switch o.(type) {
	case *appsv1.ReplicaSet:
		return "ReplicaSet"
	case *corev1.ReplicationController:
		return "ReplicationController"
	case *appsv1.StatefulSet:
		return "StatefulSet"
	case *batchv1.Job:
		return "Job"
	}
	return ""
}

// startsWithin is how long an owner without a pod is waited for. One that takes longer
// is kept from creating any, by a quota or a webhook.
const startsWithin = time.Second

// startingOwners are the owners that want pods and have none yet. A plan that waits for
// their first pods is one plan for all. An owner is not waited for where workloads of
// its set have two pods, after which those of this one are planned, too. It is safe for
// concurrent use.
type startingOwners struct {
	clock clock.Clock
	pods  *ExpectedPods

	mu sync.Mutex
	// since is when an owner was first seen without a pod that it wants. It is kept
	// beyond startsWithin, until the owner has pods, wants none, or is gone.
	since map[Owner]time.Time
	// sets are the owners that belong to a set of workloads.
	sets groups[Owner, string]
}

func newStartingOwners(clk clock.Clock, pods *ExpectedPods) *startingOwners {
	return &startingOwners{clock: clk, pods: pods, since: map[Owner]time.Time{}}
}

// observe takes in the present state of an owner.
func (s *startingOwners) observe(o client.Object) {
	owner := Owner{Kind: kindOf(o), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
	workload := kube.Workload(o)
	wants := workload.Pods > 0 && s.pods.Of(owner).Alive == 0
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sets.join(owner, workload.Set)
	if !wants {
		delete(s.since, owner)
	} else if _, known := s.since[owner]; !known {
		s.since[owner] = s.clock.Now()
	}
}

// forget drops an owner that is gone.
func (s *startingOwners) forget(o client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner := Owner{Kind: kindOf(o), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
	delete(s.since, owner)
	s.sets.join(owner, "")
}

// appeared is when an owner that has no pod yet was first seen. It is zero where that is not
// known, and where it is longer ago than startsWithin: other owners of that time are not waited for
// any more, and may have their first pods now, too, as this one.
func (s *startingOwners) appeared(owner Owner) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := s.since[owner]
	if s.clock.Since(since) >= startsWithin {
		return time.Time{}
	}
	return since
}

// any reports whether some owner is about to create its first pod, which is to be waited
// for.
func (s *startingOwners) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, starting := s.clock.Now(), false
	for owner, since := range s.since {
		if s.pods.Of(owner).Alive > 0 {
			delete(s.since, owner)
			continue
		}
		starting = starting || now.Sub(since) < startsWithin && !s.shown(owner)
	}
	return starting
}

// shown reports whether owners of the set have pods after which this one's are planned. The
// caller holds the lock.
func (s *startingOwners) shown(owner Owner) bool {
	patterns := 0
	for other := range s.sets.beside(owner) {
		patterns += s.pods.Of(other).Patterns
	}
	return patterns > 1
}
