package provisioning

import (
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rollouts knows which ReplicaSets replace others of the same controller, such as a Deployment.
// While one does, room becomes free as its pods become ready, so that a plan which waits a
// moment buys less. The zero value knows none; it is safe for concurrent use.
type rollouts struct {
	mu sync.Mutex
	// sets are the ReplicaSets that have pods or want some, by UID, in a group for each
	// controller.
	sets groups[types.UID, types.UID]
}

// observe takes in the present state of an owner of pods.
func (r *rollouts) observe(o client.Object) {
	set, is := o.(*appsv1.ReplicaSet)
	controller := metav1.GetControllerOf(o)
	if !is || controller == nil {
		return
	}
	if set.Status.Replicas == 0 && set.Spec.Replicas != nil && *set.Spec.Replicas == 0 {
		r.forget(o)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sets.join(set.UID, controller.UID)
}

// forget drops an owner that is gone.
func (r *rollouts) forget(o client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sets.join(o.GetUID(), "")
}

// under reports whether an owner is one of several that have or want pods for one controller.
func (r *rollouts) under(o Owner) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sets.beside(o.UID)) > 1
}
