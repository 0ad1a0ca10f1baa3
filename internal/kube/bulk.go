package kube

import (
	"runtime"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// fewObjects is up to how many objects it takes less time to read them than to
// share them out.
const fewObjects = 200

// FromFiles returns a store that holds expanded objects, read as a plan for a
// cluster that does not run: pods wait unless they have a node.
func FromFiles(objects []client.Object) *fleet.Store {
	store := fleet.NewStoreFor(len(objects))
	m := NewMirror(store, Settings{EveryPod: true})
	workers := min(runtime.GOMAXPROCS(0), (len(objects)+fewObjects-1)/fewObjects)
	if workers < 2 {
		store.PutAll(m.records(objects, m.interner))
		return store
	}
	parts := slices.Collect(slices.Chunk(objects, (len(objects)+workers-1)/workers))
	read := make([][]fleet.Record, len(parts))
	interners := make([]*interner, len(parts))
	var wg sync.WaitGroup
	for i := range parts {
		interners[i] = newInterner(m.settings)
		wg.Go(func() { read[i] = m.records(parts[i], interners[i]) })
	}
	wg.Wait()
	for i := 1; i < len(parts); i++ {
		interners[0].adopt(interners[i], read[i])
	}
	for i := range read {
		store.PutAll(read[i])
	}
	return store
}

// records converts objects with an interner of the caller's.
func (m *Mirror) records(objects []client.Object, in *interner) []fleet.Record {
	out := make([]fleet.Record, 0, len(objects))
	pods := make([]fleet.Pod, len(objects))
	for _, o := range objects {
		if p, ok := o.(*corev1.Pod); ok {
			in.read(p, m.settings.EveryPod, &pods[0])
			out, pods = append(out, &pods[0]), pods[1:]
		} else if r := m.record(o); r != nil {
			out = append(out, r)
		}
	}
	return out
}

// adopt makes the pods among the records, which another interner has read, share
// what pods of this one have.
func (in *interner) adopt(other *interner, records []fleet.Record) {
	specs := map[*fleet.PodSpec]*fleet.PodSpec{}
	for key, s := range other.byKey.all { // one by one: order does not matter
		specs[s] = in.byKey.adopt(key, s)
	}
	labels := map[*fleet.Labels]*fleet.Labels{}
	for key, l := range other.labels.all {
		labels[l] = in.labels.adopt(key, l)
	}
	for _, r := range records {
		p, ok := r.(*fleet.Pod)
		if !ok {
			continue
		}
		if s := specs[p.Spec]; s != nil {
			p.Spec = s
		}
		if l := labels[p.Labels]; l != nil {
			p.Labels = l
		}
	}
}
