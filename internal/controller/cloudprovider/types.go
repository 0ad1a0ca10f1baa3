package cloudprovider

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// mostConverted bounds how many catalogues are remembered in converted form: one
// per kind of node class, and those that are being replaced.
const mostConverted = 16

// converted is a catalogue in the forms that its readers want. A form is nil until
// it is asked for.
type converted struct {
	types []*karpcloud.InstanceType
	fleet *fleet.Catalog
}

// catalogs converts what node classes can buy, and remembers the results: catalogues
// of one kind of node class are shared and change seldom. It is safe for concurrent
// use.
type catalogs struct {
	classes classReader
	azure   *azure.Provider

	// overlays is nil where NodeOverlays have no effect.
	overlays *overlays

	mu sync.Mutex
	// converted has at most mostConverted entries, by the catalogue that azure built.
	converted map[*instancetype.Built]*converted
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
	if forms.types == nil {
		forms.types = convertTypes(built)
	}
	return forms.types, nil
}

// catalog is what a NodePool can buy, as the planner wants it.
func (c *catalogs) catalog(ctx context.Context, nodePool string) (*fleet.Catalog, error) {
	pool := &karpv1.NodePool{}
	if err := c.classes.kube.Get(ctx, types.NamespacedName{Name: nodePool}, pool); err != nil {
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
		forms.fleet = &fleet.Catalog{
			Axes: instancetype.Axes(), InstanceTypes: built.Catalog.InstanceTypes, LabelKeys: built.Catalog.LabelKeys, Quotas: c.azure.Quotas(),
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
	class, err := c.classes.get(ctx, pool.Spec.Template.Spec.NodeClassRef)
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
	forms := c.converted[built]
	if forms == nil {
		if len(c.converted) >= mostConverted {
			clear(c.converted)
		}
		forms = &converted{}
		c.converted[built] = forms
	}
	return forms
}

func convertTypes(built *instancetype.Built) []*karpcloud.InstanceType {
	known := instancetype.KnownLabels()
	out := make([]*karpcloud.InstanceType, 0, len(built.Catalog.InstanceTypes))
	for i := range built.Catalog.InstanceTypes {
		out = append(out, instanceType(&built.Catalog.InstanceTypes[i], known))
	}
	return out
}

func instanceType(t *model.InstanceType, known map[string]bool) *karpcloud.InstanceType {
	values := map[string][]string{}
	add := func(key, value string) {
		for _, v := range values[key] {
			if v == value {
				return
			}
		}
		values[key] = append(values[key], value)
	}
	for key, value := range t.Labels {
		add(key, value)
	}
	for key, choices := range t.Choices {
		values[key] = append([]string(nil), choices...)
	}
	offerings := make(karpcloud.Offerings, len(t.Offerings))
	for i := range t.Offerings {
		o := &t.Offerings[i]
		for key, value := range o.Labels {
			add(key, value)
		}
		offerings[i] = &karpcloud.Offering{
			Requirements: scheduling.NewLabelRequirements(o.Labels), Available: o.Available,
			// Karpenter does not count how many machines are paid for in advance.
			Price: cmp.Or(o.Uncovered, o.Price).Dollars(),
		}
	}
	requirements := scheduling.NewRequirements()
	for key, v := range values {
		requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, v...))
	}
	// Every known label must be there: one that the size does not have excludes it
	// wherever a pod asks for the label.
	for key := range known {
		if _, ok := values[key]; !ok {
			requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpDoesNotExist))
		}
	}
	return &karpcloud.InstanceType{
		Name: t.Name, Requirements: requirements, Offerings: offerings,
		Capacity: resourceList(t.Capacity, instancetype.Axes()), VolumeAttachmentLimits: t.VolumeSlots,
		Overhead: &karpcloud.InstanceTypeOverhead{KubeReserved: kubeReserved(t), EvictionThreshold: eviction()},
	}
}

// kubeReserved is the overhead without the eviction threshold.
func kubeReserved(t *model.InstanceType) corev1.ResourceList {
	reserved := append(model.Resources(nil), t.Overhead...)
	reserved[model.Memory] -= evictionBytes()
	list := resourceList(reserved, instancetype.Axes())
	for name, quantity := range list {
		if quantity.IsZero() {
			delete(list, name)
		}
	}
	return list
}

func evictionBytes() int64 { return instancetype.EvictionMemoryMiB() << 20 }

func eviction() corev1.ResourceList {
	all := resourceList(model.Resources{0, evictionBytes()}, instancetype.Axes())
	return corev1.ResourceList{corev1.ResourceMemory: all[corev1.ResourceMemory]}
}
