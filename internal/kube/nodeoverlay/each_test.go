package nodeoverlay

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	karpenter "sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/state"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// eachOf lets Karpenter look at every instance type of every NodePool with all its labels.
func eachOf(t *rapid.T, overlays []v1alpha1.NodeOverlay, pools []Pool) (catalogs map[string]*fleet.Catalog, refused []string) {
	kube, kinds := &objects{}, &types{byPool: map[string][]*cloudprovider.InstanceType{}}
	for i := range overlays {
		kube.overlays = append(kube.overlays, *overlays[i].DeepCopy())
	}
	for _, pool := range pools {
		keys := map[string]bool{}
		for i := range pool.Catalog.InstanceTypes {
			it := &pool.Catalog.InstanceTypes[i]
			for _, labels := range append([]map[string]string{it.Labels}, it.Offerings[0].Labels) {
				for key := range labels {
					keys[key] = true
				}
			}
		}
		kube.pools = append(kube.pools, *pool.NodePool)
		for i := range pool.Catalog.InstanceTypes {
			it := &pool.Catalog.InstanceTypes[i]
			kinds.byPool[pool.NodePool.Name] = append(kinds.byPool[pool.NodePool.Name], instanceType(it, keys, valuesOf(it, keys)))
		}
	}
	store := karpenter.NewInstanceTypeStore()
	c := karpenter.NewController(clock.RealClock{}, kube, kinds, store, state.NewCluster(clock.RealClock{}, kube, kinds))
	if _, err := c.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	catalogs = map[string]*fleet.Catalog{}
	for _, pool := range pools {
		name := pool.NodePool.Name
		after, err := store.ApplyAll(name, kinds.byPool[name])
		if err != nil {
			t.Fatal(err)
		}
		catalogs[name] = apply(pool.Catalog, compare(kinds.byPool[name], after))
	}
	for _, r := range kube.refused {
		refused = append(refused, r.Overlay)
	}
	slices.Sort(refused)
	return catalogs, refused
}

// Karpenter is asked of few NodePools and types, and the answer is the one for all.
func TestWhatIsAlikeToOverlaysIsEvaluatedOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		one := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(rt, label) }
		catalogs := []*fleet.Catalog{}
		for range 2 {
			c := &fleet.Catalog{Axes: model.NewAxes("nvidia.com/gpu")}
			for i := range 6 {
				it := model.InstanceType{Name: fmt.Sprint("d", i), Capacity: model.Resources{1000, 1 << 30, 0, 110, 0}, Labels: map[string]string{
					model.LabelInstanceType: fmt.Sprint("d", i), "family": one("family", "d", "e"), "cores": one("cores", "2", "4"),
				}}
				if one("gpu", "no", "yes") == "yes" {
					it.Labels["gpu"] = "t4"
				}
				for _, zone := range []string{"z1", "z2"}[:rapid.IntRange(1, 2).Draw(rt, "zones")] {
					it.Offerings = append(it.Offerings, model.Offering{Zone: zone, CapacityType: model.OnDemand, Price: model.USD(float64(i + 1)),
						Labels: map[string]string{model.LabelZone: zone, model.LabelCapacityType: "on-demand"}})
				}
				c.InstanceTypes = append(c.InstanceTypes, it)
			}
			catalogs = append(catalogs, c)
		}
		var pools []Pool
		for i := range 5 {
			pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)}}
			pool.Spec.Template.Labels = map[string]string{"team": one("team", "a", "b"), "own": pool.Name}
			pools = append(pools, Pool{pool, catalogs[rapid.IntRange(0, 1).Draw(rt, "catalog")]})
		}
		var overlays []v1alpha1.NodeOverlay
		for i := range rapid.IntRange(1, 5).Draw(rt, "overlays") {
			o := v1alpha1.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("o", i)}}
			weight := int32(rapid.IntRange(1, 3).Draw(rt, "weight"))
			o.Spec.Weight = &weight
			for range rapid.IntRange(1, 2).Draw(rt, "requirements") {
				r := v1alpha1.NodeSelectorRequirement{
					Key:      one("key", "family", "cores", "gpu", "team", "none", v1.NodePoolLabelKey, model.LabelZone, model.LabelInstanceType, model.LabelCapacityType),
					Operator: corev1.NodeSelectorOperator(one("operator", "In", "NotIn", "Exists", "DoesNotExist")),
				}
				if r.Operator == "In" || r.Operator == "NotIn" {
					r.Values = []string{one("value", "d", "e", "2", "4", "t4", "a", "p1", "z1", "d3", "on-demand")}
				}
				o.Spec.Requirements = append(o.Spec.Requirements, r)
			}
			switch one("change", "price", "adjust", "capacity") {
			case "price":
				text := one("price", "0.5", "7")
				o.Spec.Price = &text
			case "adjust":
				text := one("adjust", "-10%", "+0.5")
				o.Spec.PriceAdjustment = &text
			default:
				o.Spec.Capacity = corev1.ResourceList{"example.com/fuse": resource.MustParse(one("capacity", "1", "2"))}
			}
			overlays = append(overlays, o)
		}
		got, err := Evaluate(rt.Context(), overlays, pools)
		if err != nil {
			rt.Fatal(err)
		}
		want, wantRefused := eachOf(rt, overlays, pools)
		var refused []string
		for _, r := range got.Refused {
			refused = append(refused, r.Overlay)
		}
		if !slices.Equal(refused, wantRefused) {
			rt.Fatalf("refused %v, want %v", refused, wantRefused)
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if diff := cmp.Diff(want[name], got.Catalog(name)); diff != "" {
				rt.Fatalf("%s (-want +got):\n%s", name, diff)
			}
		}
	})
}
