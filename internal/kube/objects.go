package kube

import (
	"iter"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects are objects in their order. Of pods that one template has made, the first one is kept
// with the names of the others, since a short file can ask for very many: a pod takes more than a
// kilobyte. The zero value has none.
type Objects struct {
	// distinct are all objects but the replicas of those before them.
	distinct []client.Object
	// replicas are those of a pod, by its index in distinct.
	replicas map[int]podReplicas
}

// podReplicas are pods that differ from another one in their names, and in when they were created.
type podReplicas struct {
	names []string
	// apart is how long after the one before each was created.
	apart time.Duration
}

// pod is one of the replicas of a pod.
func (of *podReplicas) pod(first *corev1.Pod, n int) *corev1.Pod {
	pod := *first
	pod.Name, pod.CreationTimestamp = of.names[n], metav1.NewTime(of.created(first, n))
	return &pod
}

// created is when one of the replicas of a pod was created.
func (of *podReplicas) created(first *corev1.Pod, n int) time.Time {
	return first.CreationTimestamp.Add(time.Duration(n+1) * of.apart)
}

// ObjectsOf are the objects of a list, which they keep.
func ObjectsOf(list []client.Object) Objects { return Objects{distinct: list} }

// Add adds an object.
func (o *Objects) Add(object client.Object) { o.distinct = append(o.distinct, object) }

// addReplicas adds a pod and others like it, with their names.
func (o *Objects) addReplicas(first *corev1.Pod, others podReplicas) {
	o.Add(first)
	if len(others.names) > 0 {
		o.replicate(others)
	}
}

// replicate says which replicas the last object has, a pod.
func (o *Objects) replicate(of podReplicas) {
	if o.replicas == nil {
		o.replicas = map[int]podReplicas{}
	}
	o.replicas[len(o.distinct)-1] = of
}

// Append adds the objects of another list.
func (o *Objects) Append(more Objects) {
	for i := range more.distinct {
		o.addFrom(more, i)
	}
}

// addFrom adds one of the distinct objects of another list, with its replicas.
func (o *Objects) addFrom(other Objects, i int) {
	o.Add(other.distinct[i])
	if of, are := other.replicas[i]; are {
		o.replicate(of)
	}
}

// delete deletes objects, of which none has replicas that differ in what is asked for.
func (o *Objects) delete(which func(client.Object) bool) {
	var left Objects
	for i, object := range o.distinct {
		if !which(object) {
			left.addFrom(*o, i)
		}
	}
	*o = left
}

// Remove removes some objects, which it knows by their addresses.
func (o *Objects) Remove(those map[client.Object]bool) {
	if len(those) > 0 {
		o.delete(func(object client.Object) bool { return those[object] })
	}
}

// Distinct are the objects, of pods of one template the first one alone. It belongs to the list:
// do not change it.
func (o Objects) Distinct() []client.Object { return o.distinct }

// Counted are the objects of [Objects.Distinct], and how many each stands for.
func (o Objects) Counted() iter.Seq2[client.Object, int] {
	return func(yield func(client.Object, int) bool) {
		for i, object := range o.distinct {
			if !yield(object, 1+len(o.replicas[i].names)) {
				return
			}
		}
	}
}

// All are all objects. Each round makes the replicas again.
func (o Objects) All() iter.Seq[client.Object] {
	return func(yield func(client.Object) bool) {
		for i, object := range o.distinct {
			if !yield(object) {
				return
			}
			of := o.replicas[i]
			for n := range of.names {
				if !yield(of.pod(object.(*corev1.Pod), n)) {
					return
				}
			}
		}
	}
}

// List has all objects one by one.
func (o Objects) List() []client.Object {
	if len(o.replicas) == 0 {
		return slices.Clip(o.distinct)
	}
	return slices.Collect(o.All())
}

// Len is how many objects there are.
func (o Objects) Len() int {
	n := len(o.distinct)
	for _, of := range o.replicas {
		n += len(of.names)
	}
	return n
}
