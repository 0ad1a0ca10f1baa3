package kube

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// informers are real informers over sources that a test writes to.
type informers struct {
	cache.Informers
	pods *fcache.FakeControllerSource
	stop context.Context
	mu   sync.Mutex
	// sources are those of all other kinds, which are asked for side by side; mu guards them.
	sources []*fcache.FakeControllerSource
}

func (f *informers) shutdown() {
	f.pods.Shutdown()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sources {
		s.Shutdown()
	}
}

func (f *informers) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	source := f.pods
	if _, ok := o.(*corev1.Pod); !ok {
		source = fcache.NewFakeControllerSource()
		f.mu.Lock()
		f.sources = append(f.sources, source)
		f.mu.Unlock()
	}
	informer := toolscache.NewSharedIndexInformer(source, o, 0, toolscache.Indexers{})
	go informer.Run(f.stop.Done())
	return informer, nil
}

func TestFeedKeepsStoreUpToDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		f := &informers{pods: fcache.NewFakeControllerSource(), stop: ctx}
		pod := func(name, node string) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
		}
		f.pods.Add(pod("first", ""))
		store := fleet.NewStore()
		if err := NewMirror(store, Settings{}).Feed(ctx, f); err != nil {
			t.Fatal(err)
		}
		first, second := model.PodRef{Namespace: "ns", Name: "first"}, model.PodRef{Namespace: "ns", Name: "second"}
		if store.Snapshot().Pod(first) == nil {
			t.Error("Feed returned before the pods that existed were in the store")
		}
		f.pods.Add(pod("second", ""))
		f.pods.Modify(pod("first", "node"))
		synctest.Wait()
		if p := store.Snapshot().Pod(first); p == nil || p.Node != "node" {
			t.Errorf("a bound pod is %+v", p)
		}
		f.pods.Delete(pod("second", ""))
		synctest.Wait()
		if store.Snapshot().Pod(second) != nil {
			t.Error("a deleted pod is still in the store")
		}
		stop()
		f.shutdown()
	})
}

func TestFeedEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped, stop := context.WithCancel(t.Context())
		stop()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f := &informers{pods: fcache.NewFakeControllerSource(), stop: stopped}
		if err := NewMirror(fleet.NewStore(), Settings{}).Feed(ctx, f); err == nil {
			t.Error("no error although nothing was ever listed")
		}
		f.shutdown()
	})
}
