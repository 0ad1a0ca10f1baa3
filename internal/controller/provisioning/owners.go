package provisioning

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
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
