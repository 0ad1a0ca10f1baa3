package kube

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube/devices"
)

// Settings say how objects are read; the zero value is right for a live
// cluster.
type Settings struct {
	// EveryPod counts pods without a node as waiting although no scheduler has
	// said so, as in files.
	EveryPod bool
	// Manages says whether a NodePool is ours; nil means all are.
	Manages func(*v1.NodePool) bool
	// DeletionCostManaged says that the controller writes the deletion costs of pods
	// (feature gate PodDeletionCostManagement), so that they do not say what it costs to
	// move a pod.
	DeletionCostManaged bool
	// IgnoreClaims leaves pods with resource claims alone: what these need is not watched.
	IgnoreClaims bool
	// Spread gives constraints to pods without; nil where the cluster's scheduler gives
	// none.
	Spread *DefaultSpread
}

// Mirror converts objects and writes them to a fleet.Store. It may be used from
// any goroutine.
type Mirror struct {
	store    *fleet.Store
	settings Settings

	mu       sync.Mutex
	interner *interner
	// admitting is what admission will do to the pods of DaemonSets; mu guards it.
	admitting *admission
	devices   *devices.Reader
	growth    *growth
}

// NewMirror returns a mirror that writes to the store.
func NewMirror(store *fleet.Store, settings Settings) *Mirror {
	m := &Mirror{
		store: store, settings: settings, interner: newInterner(settings), admitting: newAdmission(), devices: devices.NewReader(),
		growth: newGrowth(),
	}
	if !settings.IgnoreClaims {
		store.PlanDevices(m.devices.OfGPU)
	}
	return m
}

// Kinds returns one empty object of every kind that the mirror watches in any case.
func Kinds() []client.Object {
	return []client.Object{
		&corev1.Pod{}, &corev1.Node{}, &v1.NodeClaim{}, &v1.NodePool{}, &appsv1.DaemonSet{},
		&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}, &storagev1.StorageClass{}, &storagev1.CSINode{},
		&storagev1.VolumeAttachment{},
		&corev1.Namespace{}, &policyv1.PodDisruptionBudget{}, &corev1.LimitRange{},
		&nodev1.RuntimeClass{},
		&appsv1.ReplicaSet{}, &appsv1.StatefulSet{}, &batchv1.Job{}, &corev1.ReplicationController{}, &corev1.ResourceQuota{},
	}
}

// Apply stores the state of an object. Kinds that planning does not look at are
// ignored, which the result tells.
func (m *Mirror) Apply(o client.Object) bool {
	if m.settings.Spread.apply(m, o) {
		return true
	}
	switch o := o.(type) {
	case *corev1.LimitRange:
		m.admit(func(a *admission) []fleet.Record { return a.putRange(o) })
		return true
	case *nodev1.RuntimeClass:
		m.admit(func(a *admission) []fleet.Record { return a.putRuntime(o) })
		return true
	case *appsv1.DaemonSet:
		m.admit(func(a *admission) []fleet.Record { return []fleet.Record{a.daemon(o)} })
		return true
	}
	r := m.record(o)
	if r == nil {
		return false
	}
	if p, ok := o.(*v1.NodePool); ok && m.settings.Manages != nil && !m.settings.Manages(p) {
		m.store.Remove(r)
		return true
	}
	if w, is := r.(*fleet.Workload); is {
		m.growth.date(w)
	}
	m.store.Put(r)
	return true
}

// ApplyAll takes in objects as [Mirror.Apply] does one by one. Pods of one template are read
// once.
func (m *Mirror) ApplyAll(objects Objects) {
	for i, o := range objects.distinct {
		m.Apply(o)
		if of, are := objects.replicas[i]; are {
			m.applyReplicas(o.(*corev1.Pod), of)
		}
	}
}

// applyReplicas takes in the replicas of a pod. They are read one by one where their names tell
// more than which pod it is: a refusal quotes the name, which may be too long, and default spread
// constraints keep each pod.
func (m *Mirror) applyReplicas(first *corev1.Pod, of podReplicas) {
	like := m.pod(first)
	longest := len(slices.MaxFunc(of.names, func(a, b string) int { return len(a) - len(b) }))
	if m.settings.Spread != nil || like.Spec.Invalid != "" || longest > validation.DNS1123SubdomainMaxLength {
		for n := range of.names {
			m.Apply(of.pod(first, n))
		}
		return
	}
	pods, records := make([]fleet.Pod, len(of.names)), make([]fleet.Record, len(of.names))
	for n, name := range of.names {
		pods[n] = *like
		pods[n].Ref.Name, pods[n].Created = name, of.created(first, n)
		records[n] = &pods[n]
	}
	m.store.PutAll(records)
}

// Delete removes an object.
func (m *Mirror) Delete(o client.Object) {
	if m.settings.Spread.forget(m, o) {
		return
	}
	switch o := o.(type) {
	case *corev1.LimitRange:
		m.admit(func(a *admission) []fleet.Record { return a.dropRange(o) })
		return
	case *nodev1.RuntimeClass:
		m.admit(func(a *admission) []fleet.Record { return a.dropRuntime(o) })
		return
	case *appsv1.DaemonSet:
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.admitting.daemons, client.ObjectKeyFromObject(o))
		m.store.Remove(&fleet.Daemon{Namespace: o.Namespace, Name: o.Name})
		return
	}
	r := m.record(o)
	if w, is := r.(*fleet.Workload); is {
		m.growth.forget(w)
	}
	if r != nil {
		m.store.Remove(r)
	}
}

// Claim converts a NodeClaim, for fleet.Store.Expect.
func (m *Mirror) Claim(c *v1.NodeClaim) *fleet.Claim { return claim(c) }

func (m *Mirror) record(o client.Object) fleet.Record {
	switch o := o.(type) {
	case *corev1.Pod:
		return m.pod(o)
	case *corev1.Node:
		return node(o)
	case *v1.NodeClaim:
		return claim(o)
	case *v1.NodePool:
		return pool(o)
	case *appsv1.DaemonSet:
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.admitting.daemon(o)
	case *corev1.PersistentVolumeClaim:
		return volumeClaim(o)
	case *corev1.PersistentVolume:
		return volume(o)
	case *storagev1.StorageClass:
		return storageClass(o)
	case *storagev1.CSINode:
		return driverLimits(o)
	case *storagev1.VolumeAttachment:
		return attachment(o)
	case *corev1.Namespace:
		return &fleet.Namespace{Name: o.Name, Labels: o.Labels, Deleting: o.DeletionTimestamp != nil}
	case *policyv1.PodDisruptionBudget:
		return budget(o)
	}
	if r := m.devices.Record(o); r != nil {
		return r
	}
	if m.settings.EveryPod {
		// Files name all pods that there are to be.
		return nil
	}
	return announcing(o)
}

func (m *Mirror) pod(pod *corev1.Pod) *fleet.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.interner.pod(pod, m.settings.EveryPod)
}

// admit stores the DaemonSets that a change of what admission does concerns. The store
// is written under the lock, so that of two changes the later one counts.
func (m *Mirror) admit(change func(*admission) []fleet.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store.PutAll(change(m.admitting))
}

// Feed registers handlers with the informers of a cache, which then keep the
// store up to date. It returns when all handlers have been registered and have
// seen the objects that existed, or when ctx ends; the cache must be running or
// be started meanwhile.
func (m *Mirror) Feed(ctx context.Context, informers cache.Informers) error {
	kinds := Kinds()
	if !m.settings.IgnoreClaims {
		kinds = append(kinds, devices.Kinds()...)
	}
	if m.settings.Spread != nil {
		kinds = append(kinds, &corev1.Service{})
	}
	group, ctx := errgroup.WithContext(ctx) // all kinds are listed at the same time
	for _, kind := range kinds {
		group.Go(func() error {
			informer, err := informers.GetInformer(ctx, kind)
			if err != nil {
				return fmt.Errorf("watching %T: %w", kind, err)
			}
			registration, err := informer.AddEventHandler(m)
			if err != nil {
				return fmt.Errorf("watching %T: %w", kind, err)
			}
			if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
				return fmt.Errorf("waiting for the first list of %T: %w", kind, context.Cause(ctx))
			}
			return nil
		})
	}
	return group.Wait()
}

// OnAdd implements the handler of informers.
func (m *Mirror) OnAdd(o any, _ bool) { m.applied(o) }

// OnUpdate implements the handler of informers.
func (m *Mirror) OnUpdate(_, o any) { m.applied(o) }

// OnDelete implements the handler of informers. An object whose deletion was
// missed arrives wrapped in its last known state.
func (m *Mirror) OnDelete(o any) {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if object, ok := o.(client.Object); ok {
		m.Delete(object)
	}
}

func (m *Mirror) applied(o any) {
	if object, ok := o.(client.Object); ok {
		m.Apply(object)
	}
}
