package kube

import (
	"maps"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// DefaultSpread gives the default spread constraints of the cluster's scheduler to pods
// that have none of their own, as the scheduler's plugin PodTopologySpread does with
// defaultConstraints: each counts the pods that the selectors of the pod's Services and of
// the ReplicaSet, StatefulSet or ReplicationController that made it select together. A pod
// with none of these gets no constraint.
//
// Mirrors of one store share it. All methods may be called from any goroutine.
type DefaultSpread struct {
	constraints []corev1.TopologySpreadConstraint

	// mu is held while a pod is written to the store, so that of a pod and a Service that
	// change at once the later one counts. It is taken before that of the mirror.
	mu sync.Mutex
	// services are the selectors of Services by namespace and name, owners those of what
	// makes pods.
	services map[string]map[string]map[string]string
	owners   map[ownerKey]ownerSelector
	// pods are those to which constraints may be given, by namespace and name.
	pods map[string]map[string]spreadPod
}

// spreadPod is a pod as the API server has it, and what reads it.
type spreadPod struct {
	pod    *corev1.Pod
	mirror *Mirror
}

// ownerSelector is what the maker of a pod adds to the pod's selector: labels of a
// ReplicationController take the place of those of Services, requirements of the other
// kinds come beside them.
type ownerSelector struct {
	labels       map[string]string
	requirements []metav1.LabelSelectorRequirement
}

// NewDefaultSpread returns nil where there are no constraints. They must be valid and have
// no label selectors, as kube-scheduler demands.
func NewDefaultSpread(constraints []corev1.TopologySpreadConstraint) *DefaultSpread {
	if len(constraints) == 0 {
		return nil
	}
	return &DefaultSpread{
		constraints: constraints,
		services:    map[string]map[string]map[string]string{},
		owners:      map[ownerKey]ownerSelector{},
		pods:        map[string]map[string]spreadPod{},
	}
}

// apply takes in an object that a mirror was given, and reports whether the mirror is done
// with it.
func (d *DefaultSpread) apply(m *Mirror, o client.Object) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch o := o.(type) {
	case *corev1.Pod:
		at(d.pods, o.Namespace)[o.Name] = spreadPod{o, m}
		m.store.Put(m.pod(d.given(o)))
		return true
	case *corev1.Service:
		if old := d.services[o.Namespace][o.Name]; !maps.Equal(old, o.Spec.Selector) {
			at(d.services, o.Namespace)[o.Name] = o.Spec.Selector
			d.readAgain(o.Namespace, func(p *corev1.Pod) bool { return selects(old, p) || selects(o.Spec.Selector, p) })
		}
		return true
	}
	if key, s, is := selectorOf(o); is {
		d.learn(key, s)
	}
	return false
}

// forget takes in that an object is gone, and reports whether the mirror is done with it.
func (d *DefaultSpread) forget(m *Mirror, o client.Object) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch o := o.(type) {
	case *corev1.Pod:
		delete(d.pods[o.Namespace], o.Name)
		m.store.Remove(m.pod(o))
		return true
	case *corev1.Service:
		old := d.services[o.Namespace][o.Name]
		delete(d.services[o.Namespace], o.Name)
		d.readAgain(o.Namespace, func(p *corev1.Pod) bool { return selects(old, p) })
		return true
	}
	if key, _, is := selectorOf(o); is {
		delete(d.owners, key)
		d.readAgain(key.namespace, func(p *corev1.Pod) bool { k, is := makerOf(p); return is && k == key })
	}
	return false
}

// Learn takes in what makes pods, where no mirror is given it.
func (d *DefaultSpread) Learn(o client.Object) {
	if key, s, is := selectorOf(o); is && d != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.learn(key, s)
	}
}

// learn keeps the selector of what makes pods, which never changes.
func (d *DefaultSpread) learn(key ownerKey, s ownerSelector) {
	if _, known := d.owners[key]; !known {
		d.owners[key] = s
		d.readAgain(key.namespace, func(p *corev1.Pod) bool { k, is := makerOf(p); return is && k == key })
	}
}

// readAgain writes the pods of a namespace whose constraints may have changed to the store.
func (d *DefaultSpread) readAgain(namespace string, concerned func(*corev1.Pod) bool) {
	records := map[*Mirror][]fleet.Record{}
	for _, p := range d.pods[namespace] { // one by one: order does not matter
		if len(p.pod.Spec.TopologySpreadConstraints) == 0 && concerned(p.pod) {
			records[p.mirror] = append(records[p.mirror], p.mirror.pod(d.given(p.pod)))
		}
	}
	for m, list := range records {
		m.store.PutAll(list)
	}
}

// Give is a pod with the constraints that it gets, or the pod itself.
func (d *DefaultSpread) Give(pod *corev1.Pod) *corev1.Pod {
	if d == nil {
		return pod
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.given(pod)
}

// given is a pod with the constraints that it gets, which is the pod itself where it gets
// none. Those of DaemonSets and of nodes have their place anyway.
func (d *DefaultSpread) given(pod *corev1.Pod) *corev1.Pod {
	if len(pod.Spec.TopologySpreadConstraints) > 0 || ownedBy(pod, "apps/v1", "DaemonSet") || ownedBy(pod, "v1", "Node") {
		return pod
	}
	selector := d.selector(pod)
	if selector == nil {
		return pod
	}
	out := *pod
	out.Spec.TopologySpreadConstraints = slices.Clone(d.constraints)
	for i := range out.Spec.TopologySpreadConstraints {
		out.Spec.TopologySpreadConstraints[i].LabelSelector = selector
	}
	return &out
}

// selector selects the pods that the constraints of a pod count; nil where none can be
// told. Of Services which want different values of a label, the last one by name counts.
func (d *DefaultSpread) selector(pod *corev1.Pod) *metav1.LabelSelector {
	out := &metav1.LabelSelector{}
	add := func(more map[string]string) {
		if out.MatchLabels == nil && len(more) > 0 {
			out.MatchLabels = map[string]string{}
		}
		maps.Copy(out.MatchLabels, more)
	}
	services := d.services[pod.Namespace]
	for _, name := range slices.Sorted(maps.Keys(services)) {
		if selects(services[name], pod) {
			add(services[name])
		}
	}
	if key, is := makerOf(pod); is {
		add(d.owners[key].labels)
		out.MatchExpressions = d.owners[key].requirements
	}
	if len(out.MatchLabels)+len(out.MatchExpressions) == 0 {
		return nil
	}
	return out
}

// selects reports whether a Service with a selector is one of a pod's. Without a selector
// it has no pods.
func selects(service map[string]string, pod *corev1.Pod) bool {
	return service != nil && labels.SelectorFromValidatedSet(service).Matches(labels.Set(pod.Labels))
}

// selectorOf is the selector of an object that makes pods, for the kinds that the scheduler
// looks at, and for the Deployments of files, whose ReplicaSets do not exist.
func selectorOf(o client.Object) (ownerKey, ownerSelector, bool) {
	key := ownerKey{namespace: o.GetNamespace(), name: o.GetName()}
	switch o := o.(type) {
	case *corev1.ReplicationController:
		key.kind = "ReplicationController"
		return key, ownerSelector{labels: o.Spec.Selector}, true
	case *appsv1.ReplicaSet:
		key.kind = "ReplicaSet"
		return key, ownerSelector{requirements: requirementsOf(o.Spec.Selector)}, true
	case *appsv1.StatefulSet:
		key.kind = "StatefulSet"
		return key, ownerSelector{requirements: requirementsOf(o.Spec.Selector)}, true
	case *appsv1.Deployment:
		key.kind = "Deployment"
		return key, ownerSelector{requirements: requirementsOf(o.Spec.Selector)}, true
	}
	return ownerKey{}, ownerSelector{}, false
}

// makerOf is what made a pod, where it is of a kind that selectorOf knows.
func makerOf(pod *corev1.Pod) (ownerKey, bool) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return ownerKey{}, false
	}
	kinds := []string{"ReplicaSet", "StatefulSet", "Deployment"}
	if owner.APIVersion == "v1" {
		kinds = []string{"ReplicationController"}
	} else if owner.APIVersion != appsv1.SchemeGroupVersion.String() {
		return ownerKey{}, false
	}
	return ownerKey{pod.Namespace, owner.Kind, owner.Name}, slices.Contains(kinds, owner.Kind)
}

// requirementsOf is a selector as requirements alone, by key.
func requirementsOf(s *metav1.LabelSelector) []metav1.LabelSelectorRequirement {
	if s == nil {
		return nil
	}
	var out []metav1.LabelSelectorRequirement
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		out = append(out, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{s.MatchLabels[key]}})
	}
	return append(out, s.MatchExpressions...)
}

// at is the map below a key, which is made where there was none.
func at[K, L comparable, V any](m map[K]map[L]V, key K) map[L]V {
	if m[key] == nil {
		m[key] = map[L]V{}
	}
	return m[key]
}
