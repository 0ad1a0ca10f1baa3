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
	// sets are the ReplicaSets that have pods or want some, by the UID of their controller;
	// controllers has the controller of each of them.
	sets        map[types.UID]map[types.UID]bool
	controllers map[types.UID]types.UID
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
	if r.sets == nil {
		r.sets, r.controllers = map[types.UID]map[types.UID]bool{}, map[types.UID]types.UID{}
	}
	if r.sets[controller.UID] == nil {
		r.sets[controller.UID] = map[types.UID]bool{}
	}
	r.sets[controller.UID][set.UID], r.controllers[set.UID] = true, controller.UID
}

// forget drops an owner that is gone.
func (r *rollouts) forget(o client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	controller, known := r.controllers[o.GetUID()]
	if !known {
		return
	}
	delete(r.controllers, o.GetUID())
	if delete(r.sets[controller], o.GetUID()); len(r.sets[controller]) == 0 {
		delete(r.sets, controller)
	}
}

// under reports whether an owner is one of several that have or want pods for one controller.
func (r *rollouts) under(o Owner) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sets[r.controllers[o.UID]]) > 1
}
