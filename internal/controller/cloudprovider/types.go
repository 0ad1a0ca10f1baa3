package cloudprovider

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/fleet"
)

// mostConverted bounds how many kinds of node classes are remembered in converted form.
const mostConverted = 16

// converted is the catalogue of one kind of node class in the forms that its readers want.
type converted struct {
	// built is the catalogue that the forms were last made of.
	built *instancetype.Built
	// types are of those instance types: built's, or nil until they are asked for.
	types *convertedTypes
	// fleet is nil until it is asked for.
	fleet *fleet.Catalog
}

// catalogs converts what node classes can buy, and remembers the results: catalogues
// of one kind of node class are shared, and little of them changes. It is safe for
// concurrent use.
type catalogs struct {
	classes classReader
	azure   *azure.Provider

	// overlays is nil where NodeOverlays have no effect.
	overlays *overlays

	mu sync.Mutex
	// converted has at most mostConverted entries, by the kind of node class.
	converted map[string]*converted
}

// instanceTypes is what a NodePool can buy, as Karpenter wants it.
func (c *catalogs) instanceTypes(ctx context.Context, pool *karpv1.NodePool) ([]*karpcloud.InstanceType, error) {
	built, err := c.built(ctx, pool)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	forms := c.remember(built)
	forms.types = forms.types.convert(built.Catalog.InstanceTypes)
	return forms.types.out, nil
}

// catalog is what a NodePool can buy, as the planner wants it.
func (c *catalogs) catalog(ctx context.Context, nodePool string) (*fleet.Catalog, error) {
	pool := &karpv1.NodePool{} // shared with the cache
	if err := c.classes.kube.Get(ctx, types.NamespacedName{Name: nodePool}, pool, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("read NodePool %q: %w", nodePool, err)
	}
	built, err := c.built(ctx, pool)
	if err != nil {
		return nil, err
	}
	return c.overlaid(ctx, pool.Name, built)
}

// plain is a catalogue as the planner wants it, before NodeOverlays.
func (c *catalogs) plain(built *instancetype.Built) *fleet.Catalog {
	c.mu.Lock()
	defer c.mu.Unlock()
	forms := c.remember(built)
	if forms.fleet == nil {
		supply := c.azure.Supply()
		forms.fleet = &fleet.Catalog{
			Axes: instancetype.Axes(), InstanceTypes: built.Catalog.InstanceTypes, LabelKeys: built.Catalog.LabelKeys,
			Quotas: supply.Quotas(), Advance: supply.Advance(),
		}
	}
	return forms.fleet
}

// built is the catalogue of a pool's class. While the class's images are not
// resolved the catalogue is wider than what can be launched, so that plans and
// explanations have something to look at.
func (c *catalogs) built(ctx context.Context, pool *karpv1.NodePool) (*instancetype.Built, error) {
	if err := azure.CheckPoolName(c.azure.Config(), pool.Name); err != nil {
		return nil, err
	}
	class, err := c.classes.peek(ctx, pool.Spec.Template.Spec.NodeClassRef)
	if err != nil {
		return nil, fmt.Errorf("NodePool %q: %w", pool.Name, err)
	}
	value, err := usableClass(class)
	if err != nil {
		value = ClassValue(class)
	}
	return c.azure.Catalog(&value), nil
}

// excluded says why a size that the region sells is left out for a NodePool.
func (c *catalogs) excluded(ctx context.Context, pool *karpv1.NodePool) func(size string) string {
	built, err := c.built(ctx, pool)
	if err != nil {
		return func(string) string { return "" }
	}
	return built.WhyExcluded
}

// remember returns the place for a catalogue's converted forms. The caller holds
// mu.
func (c *catalogs) remember(built *instancetype.Built) *converted {
	forms := c.converted[built.Kind]
	if forms == nil {
		if len(c.converted) >= mostConverted {
			clear(c.converted)
		}
		forms = &converted{}
		c.converted[built.Kind] = forms
	}
	if forms.built != built {
		forms.built, forms.fleet = built, nil
	}
	return forms
}
