package cloud

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/nodeautoprovision/nap/internal/lab"
)

// nodePools are the cluster's, as AKS sees them in the API server.
type nodePools struct {
	mu    sync.Mutex
	store cache.Store // nil before they are watched
}

// watch follows the NodePools until ctx is done. Their definition may be missing at first.
func (n *nodePools) watch(ctx context.Context, env lab.Environment) error {
	admin, err := env.AdminConfig()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		return err
	}
	kind := schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, kind, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return err
	}
	n.mu.Lock()
	n.store = informer.GetStore()
	n.mu.Unlock()
	informer.RunWithContext(ctx)
	return nil
}

// open are the names of those whose limit of CPU is not 0.
func (n *nodePools) open() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.store == nil {
		return nil
	}
	var names []string
	for _, o := range n.store.List() {
		pool, _ := o.(*unstructured.Unstructured)
		limit, _, _ := unstructured.NestedFieldNoCopy(pool.Object, "spec", "limits", "cpu")
		if cpu, err := resource.ParseQuantity(fmt.Sprint(limit)); err != nil || !cpu.IsZero() {
			names = append(names, pool.GetName())
		}
	}
	slices.Sort(names)
	return names
}
