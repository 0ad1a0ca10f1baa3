package nodeoverlay

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	karpenter "sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/state"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// Pool is a NodePool and what it can buy.
type Pool struct {
	NodePool *v1.NodePool
	Catalog  *fleet.Catalog
}

// Refusal is an overlay without effect.
type Refusal struct {
	// Overlay is its name, Reason and Message those of the condition
	// ValidationSucceeded that Karpenter gives it.
	Overlay, Reason, Message string
}

// Result is what NodeOverlays make of the catalogues of NodePools. It is immutable.
type Result struct {
	// Refused are the overlays that have no effect, by name.
	Refused  []Refusal
	catalogs map[string]*fleet.Catalog
}

// Catalog is what a NodePool can buy. It is the catalogue that was given where no
// overlay changes it, and nil for NodePools that were not evaluated. NodePools with the
// same catalogue and changes share the result.
func (r *Result) Catalog(nodePool string) *fleet.Catalog { return r.catalogs[nodePool] }

// Evaluate applies overlays to the catalogues of NodePools. Overlays that contradict
// another one of equal weight, or say what is not allowed, are refused as a whole.
// [v1alpha1.NodeOverlay] must have been admitted by its definition: the text of prices is
// not checked again.
//
// Karpenter looks at each overlay for each instance type of each NodePool. It is asked of one of
// those NodePools and of those types that no overlay tells apart.
func Evaluate(ctx context.Context, overlays []v1alpha1.NodeOverlay, pools []Pool) (*Result, error) {
	kube := &objects{}
	kinds := &types{byPool: map[string][]*cloudprovider.InstanceType{}}
	catalogs := map[*fleet.Catalog]*converted{}
	asked := map[string]bool{}
	for i := range overlays {
		overlay := overlays[i].DeepCopy()
		overlay.Status = v1alpha1.NodeOverlayStatus{} // every condition is written again
		kube.overlays = append(kube.overlays, *overlay)
		for _, r := range overlay.Spec.Requirements {
			asked[r.Key] = true
		}
	}
	first := map[string]*Pool{} // of NodePools that are the same to overlays
	for i := range pools {
		pool := &pools[i]
		if key := pool.seenBy(asked); first[key] == nil {
			first[key] = pool
			kube.pools = append(kube.pools, *pool.NodePool)
			if catalogs[pool.Catalog] == nil {
				catalogs[pool.Catalog] = convert(pool.Catalog, asked)
			}
			kinds.byPool[pool.NodePool.Name] = catalogs[pool.Catalog].first
		}
	}
	store := karpenter.NewInstanceTypeStore()
	controller := karpenter.NewController(clock.RealClock{}, kube, kinds, store, state.NewCluster(clock.RealClock{}, kube, kinds))
	if _, err := controller.Reconcile(ctx, reconcile.Request{}); err != nil {
		return nil, fmt.Errorf("applying NodeOverlays: %w", err)
	}
	out := &Result{Refused: kube.refused, catalogs: map[string]*fleet.Catalog{}}
	slices.SortFunc(out.Refused, func(a, b Refusal) int { return strings.Compare(a.Overlay, b.Overlay) })
	made := map[string]*fleet.Catalog{}
	for _, pool := range first {
		name := pool.NodePool.Name
		all := catalogs[pool.Catalog].all
		overlaid, err := store.ApplyAll(name, all)
		if err != nil {
			return nil, fmt.Errorf("applying NodeOverlays: %w", err)
		}
		changes := compare(all, overlaid)
		key := fmt.Sprintf("%p %v", pool.Catalog, changes)
		if made[key] == nil {
			made[key] = apply(pool.Catalog, changes)
		}
		out.catalogs[name] = made[key]
	}
	for i := range pools {
		out.catalogs[pools[i].NodePool.Name] = out.catalogs[first[pools[i].seenBy(asked)].NodePool.Name]
	}
	return out, nil
}

// seenBy is a text that is the same for NodePools which overlays that ask for these labels do
// not tell apart.
func (p *Pool) seenBy(asked map[string]bool) string {
	text := fmt.Appendf(nil, "%p", p.Catalog)
	if asked[v1.NodePoolLabelKey] {
		text = fmt.Appendf(text, " %q", p.NodePool.Name)
	}
	own := p.NodePool.Spec.Template.Labels
	for _, key := range slices.Sorted(maps.Keys(own)) {
		if asked[key] {
			text = fmt.Appendf(text, " %q=%q", key, own[key])
		}
	}
	return string(text)
}

// types is a provider that only says what can be bought.
type types struct {
	cloudprovider.CloudProvider
	byPool map[string][]*cloudprovider.InstanceType
}

func (t *types) GetInstanceTypes(_ context.Context, pool *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return t.byPool[pool.Name], nil
}

// objects is the cluster in which Karpenter's evaluation runs. It knows NodeOverlays and
// NodePools, and keeps what is written to the status of the former.
type objects struct {
	client.Client
	overlays []v1alpha1.NodeOverlay
	pools    []v1.NodePool
	refused  []Refusal
}

// List lists a kind whole.
func (o *objects) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *v1alpha1.NodeOverlayList:
		list.Items = o.overlays
	case *v1.NodePoolList:
		list.Items = o.pools
	default:
		return fmt.Errorf("listing %T: not known here", list)
	}
	return nil
}

// Status is where conditions are written to.
func (o *objects) Status() client.SubResourceWriter { return statusWriter{objects: o} }

type statusWriter struct {
	client.SubResourceWriter
	objects *objects
}

// Patch keeps the condition of an overlay that has no effect.
func (w statusWriter) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	overlay, is := o.(*v1alpha1.NodeOverlay)
	if !is {
		return fmt.Errorf("writing the status of %T: not known here", o)
	}
	if c := overlay.StatusConditions().Get(v1alpha1.ConditionTypeValidationSucceeded); c.IsFalse() {
		w.objects.refused = append(w.objects.refused, Refusal{overlay.Name, c.Reason, c.Message})
	}
	return nil
}
