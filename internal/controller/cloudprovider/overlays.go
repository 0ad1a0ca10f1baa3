package cloudprovider

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube/nodeoverlay"
)

// overlays remembers what NodeOverlays made of catalogues: plans ask for it of each NodePool,
// and overlays, NodePools and catalogues change seldom. It is safe for concurrent use.
type overlays struct {
	mu sync.Mutex
	// overlays, pools and catalogs are what result was evaluated from. The catalogues are by
	// NodePool; NodePools without a node class have none.
	overlays []v1alpha1.NodeOverlay
	pools    []karpv1.NodePool
	catalogs map[string]*fleet.Catalog
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
	list := &v1alpha1.NodeOverlayList{} // shared with the cache, as the NodePools
	if err := c.classes.kube.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list NodeOverlays: %w", err)
	}
	if len(list.Items) == 0 {
		return plain, nil
	}
	pools := &karpv1.NodePoolList{}
	if err := c.classes.kube.List(ctx, pools, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list NodePools: %w", err)
	}
	result := c.overlays.remembered(list.Items, pools.Items, nodePool, plain)
	if result == nil {
		var err error
		if result, err = c.evaluate(ctx, list.Items, pools.Items, nodePool, plain); err != nil {
			return nil, err
		}
	}
	if catalog := result.Catalog(nodePool); catalog != nil {
		return catalog, nil
	}
	return plain, nil // the NodePool is gone, its claim is not
}

// evaluate evaluates overlays again. Plain is the catalogue of one NodePool.
func (c *catalogs) evaluate(ctx context.Context, list []v1alpha1.NodeOverlay, pools []karpv1.NodePool, nodePool string,
	plain *fleet.Catalog,
) (*nodeoverlay.Result, error) {
	var evaluated []nodeoverlay.Pool
	of := map[string]*fleet.Catalog{nodePool: plain}
	for i := range pools {
		pool := nodeoverlay.Pool{NodePool: &pools[i], Catalog: plain}
		if pool.NodePool.Name != nodePool {
			// As in Karpenter, a NodePool without a class keeps no overlay from the others.
			other, err := c.built(ctx, pool.NodePool)
			if err != nil {
				continue
			}
			pool.Catalog = c.plain(other)
		}
		of[pool.NodePool.Name] = pool.Catalog
		evaluated = append(evaluated, pool)
	}
	result, err := nodeoverlay.Evaluate(ctx, list, evaluated)
	if err != nil {
		return nil, err
	}
	c.overlays.remember(list, pools, of, result)
	return result, nil
}

// buyable is overlaid for the one that buys: the catalogue with what its facts are.
func (c *catalogs) buyable(ctx context.Context, nodePool string, built *instancetype.Built) (*instancetype.Built, error) {
	catalog, err := c.overlaid(ctx, nodePool, built)
	if err != nil || catalog == c.plain(built) {
		return built, err
	}
	return built.With(catalog.InstanceTypes, catalog.Axes), nil
}

// remembered is what overlays made of catalogues, nil where they, a NodePool, or the catalogue of
// this one have changed since. It does not ask for the catalogues of the others, which are asked
// for in turn.
func (o *overlays) remembered(now []v1alpha1.NodeOverlay, pools []karpv1.NodePool, nodePool string, plain *fleet.Catalog,
) *nodeoverlay.Result {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.result == nil || o.catalogs[nodePool] != plain || len(now) != len(o.overlays) || len(pools) != len(o.pools) {
		return nil
	}
	for i := range now {
		a, b := &now[i], &o.overlays[i]
		if !unchanged(a, b) && (a.Name != b.Name || !equality.Semantic.DeepEqual(a.Spec, b.Spec)) {
			return nil
		}
	}
	for i := range pools {
		a, b := &pools[i], &o.pools[i]
		if !unchanged(a, b) && (a.Name != b.Name || !maps.Equal(a.Spec.Template.Labels, b.Spec.Template.Labels)) {
			return nil
		}
	}
	return o.result
}

// remember keeps a result, and what it was evaluated from.
func (o *overlays) remember(now []v1alpha1.NodeOverlay, pools []karpv1.NodePool, of map[string]*fleet.Catalog, result *nodeoverlay.Result) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.overlays, o.pools, o.catalogs, o.result = now, pools, of, result
}

// unchanged reports whether two states of an object are one, as far as their metadata tell.
func unchanged(a, b client.Object) bool {
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() != "" && a.GetResourceVersion() == b.GetResourceVersion()
}
