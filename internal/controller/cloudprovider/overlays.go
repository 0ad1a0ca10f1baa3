package cloudprovider

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube/nodeoverlay"
)

// overlays remembers what NodeOverlays made of catalogues: plans ask for it often, and
// overlays, NodePools and catalogues change seldom. It is safe for concurrent use.
type overlays struct {
	mu sync.Mutex
	// overlays and pools are what result was evaluated from.
	overlays []v1alpha1.NodeOverlay
	pools    []nodeoverlay.Pool
	result   *nodeoverlay.Result
}

// ApplyNodeOverlays gives NodeOverlays their effect. Call it before anything else.
func (p *Port) ApplyNodeOverlays() { p.catalogs.overlays = &overlays{} }

// overlaid is what a NodePool can buy of a catalogue, with NodeOverlays applied.
func (c *catalogs) overlaid(ctx context.Context, nodePool string, built *instancetype.Built) (*fleet.Catalog, error) {
	plain := c.plain(built)
	if c.overlays == nil {
		return plain, nil
	}
	list := &v1alpha1.NodeOverlayList{}
	if err := c.classes.kube.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list NodeOverlays: %w", err)
	}
	if len(list.Items) == 0 {
		return plain, nil
	}
	pools := &karpv1.NodePoolList{} // shared with the cache
	if err := c.classes.kube.List(ctx, pools, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list NodePools: %w", err)
	}
	var evaluated []nodeoverlay.Pool
	for i := range pools.Items {
		pool := nodeoverlay.Pool{NodePool: &pools.Items[i], Catalog: plain}
		if pool.NodePool.Name != nodePool {
			// As in Karpenter, a NodePool without a class keeps no overlay from the others.
			other, err := c.built(ctx, pool.NodePool)
			if err != nil {
				continue
			}
			pool.Catalog = c.plain(other)
		}
		evaluated = append(evaluated, pool)
	}
	result, err := c.overlays.evaluate(ctx, list.Items, evaluated)
	if err != nil {
		return nil, err
	}
	if catalog := result.Catalog(nodePool); catalog != nil {
		return catalog, nil
	}
	return plain, nil // the NodePool is gone, its claim is not
}

// buyable is overlaid for the one that buys: the catalogue with what its facts are.
func (c *catalogs) buyable(ctx context.Context, nodePool string, built *instancetype.Built) (*instancetype.Built, error) {
	catalog, err := c.overlaid(ctx, nodePool, built)
	if err != nil || catalog == c.plain(built) {
		return built, err
	}
	return built.With(catalog.InstanceTypes, catalog.Axes), nil
}

// evaluate answers from memory where nothing has changed.
func (o *overlays) evaluate(ctx context.Context, now []v1alpha1.NodeOverlay, pools []nodeoverlay.Pool) (*nodeoverlay.Result, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	same := slices.EqualFunc(now, o.overlays, func(a, b v1alpha1.NodeOverlay) bool {
		return a.Name == b.Name && equality.Semantic.DeepEqual(a.Spec, b.Spec)
	}) && slices.EqualFunc(pools, o.pools, func(a, b nodeoverlay.Pool) bool {
		return a.Catalog == b.Catalog && a.NodePool.Name == b.NodePool.Name &&
			equality.Semantic.DeepEqual(a.NodePool.Spec.Template.Labels, b.NodePool.Spec.Template.Labels)
	})
	if same && o.result != nil {
		return o.result, nil
	}
	result, err := nodeoverlay.Evaluate(ctx, now, pools)
	if err != nil {
		return nil, err
	}
	o.overlays, o.pools, o.result = now, pools, result
	return result, nil
}
