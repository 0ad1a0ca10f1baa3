package cloudprovider

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube/nodeoverlay"
)

// fuse is a device that a NodeOverlay gives to a size.
const fuse = "smarter-devices/fuse"

// writeOverlays makes E4s_v5 cheap and gives D4s_v5 a device.
func writeOverlays(t *testing.T, w *world) {
	t.Helper()
	off := "-90%"
	only := func(size string) []v1alpha1.NodeSelectorRequirement {
		return []v1alpha1.NodeSelectorRequirement{{
			Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{size},
		}}
	}
	for _, o := range []*v1alpha1.NodeOverlay{
		{ObjectMeta: metav1.ObjectMeta{Name: "cheap"}, Spec: v1alpha1.NodeOverlaySpec{Requirements: only("Standard_E4s_v5"), PriceAdjustment: &off}},
		{ObjectMeta: metav1.ObjectMeta{Name: "fuse"}, Spec: v1alpha1.NodeOverlaySpec{
			Requirements: only("Standard_D4s_v5"), Capacity: corev1.ResourceList{fuse: resource.MustParse("1")},
		}},
	} {
		if err := w.kube.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

func anyOfThree(name string) *karpv1.NodeClaim {
	return claim(name, need(corev1.LabelInstanceTypeStable, "Standard_D2s_v5", "Standard_D4s_v5", "Standard_E4s_v5"),
		need(karpv1.CapacityTypeLabelKey, "on-demand"))
}

func TestOverlaysDecideWhatIsBought(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if err := w.kube.Create(t.Context(), pool()); err != nil {
			t.Fatal(err)
		}
		writeOverlays(t, w)
		if bought, err := w.port.Create(t.Context(), anyOfThree("general-a")); err != nil ||
			bought.Labels[corev1.LabelInstanceTypeStable] != "Standard_D2s_v5" {
			t.Fatalf("without the feature bought %v, %v", bought, err)
		}
		w.port.ApplyNodeOverlays()
		if bought, err := w.port.Create(t.Context(), anyOfThree("general-b")); err != nil ||
			bought.Labels[corev1.LabelInstanceTypeStable] != "Standard_E4s_v5" {
			t.Errorf("bought %v, %v, want the size that an overlay makes cheap", bought, err)
		}
		c := anyOfThree("general-c")
		c.Spec.Resources.Requests[fuse] = resource.MustParse("1")
		bought, err := w.port.Create(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		has, allows := bought.Status.Capacity[fuse], bought.Status.Allocatable[fuse]
		if bought.Labels[corev1.LabelInstanceTypeStable] != "Standard_D4s_v5" || has.Value() != 1 || allows.Value() != 1 {
			t.Errorf("bought %v with %v, want the size that has the device", bought.Labels, bought.Status.Capacity)
		}
		c = anyOfThree("general-d")
		c.Spec.Resources.Requests[fuse] = resource.MustParse("2")
		if _, err := w.port.Create(t.Context(), c); !karpcloud.IsInsufficientCapacityError(err) {
			t.Errorf("two devices: %v, want insufficient capacity", err)
		}
	})
}

func TestOverlaidCatalogFollowsItsObjects(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.port.ApplyNodeOverlays()
		if err := w.kube.Create(t.Context(), pool()); err != nil {
			t.Fatal(err)
		}
		catalog := func() *fleet.Catalog {
			c, err := w.port.Catalog(t.Context(), "general")
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		plain := catalog()
		writeOverlays(t, w)
		with := catalog()
		if with.Axes.Index(fuse) < 0 || len(with.Quotas) == 0 || len(with.Quotas) != len(plain.Quotas) {
			t.Fatalf("axes %v, quotas %v", with.Axes, with.Quotas)
		}
		if catalog() != with {
			t.Error("the catalogue is evaluated again although nothing has changed")
		}
		for i := range plain.InstanceTypes {
			before, now := plain.InstanceTypes[i], with.InstanceTypes[i]
			cheaper := now.Offerings[0].Price < before.Offerings[0].Price
			if cheaper != (now.Name == "Standard_E4s_v5") || now.VolumeSlots["disk.csi.azure.com"] != before.VolumeSlots["disk.csi.azure.com"] {
				t.Errorf("%s: %v at $%v, was %v at $%v", now.Name, now.VolumeSlots, now.Offerings[0].Price, before.VolumeSlots, before.Offerings[0].Price)
			}
		}
		if err := w.kube.DeleteAllOf(t.Context(), &v1alpha1.NodeOverlay{}); err != nil {
			t.Fatal(err)
		}
		if catalog() != plain {
			t.Error("deleted overlays still have an effect")
		}
	})
}

// What NodeOverlays make of catalogues is remembered until any of it changes.
func TestOverlaysAreEvaluatedAgainWhenAnythingChanges(t *testing.T) {
	overlay := func(name, price string) []v1alpha1.NodeOverlay {
		return []v1alpha1.NodeOverlay{{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeOverlaySpec{PriceAdjustment: &price}}}
	}
	one, other := &fleet.Catalog{}, &fleet.Catalog{}
	on := func(name, team string, catalog *fleet.Catalog) nodeoverlay.Pool {
		p := pool()
		p.Name, p.Spec.Template.Labels = name, map[string]string{"team": team}
		return nodeoverlay.Pool{NodePool: p, Catalog: catalog}
	}
	var o overlays
	var last *nodeoverlay.Result
	for _, c := range []struct {
		what     string
		overlays []v1alpha1.NodeOverlay
		pool     nodeoverlay.Pool
		again    bool
	}{
		{"the first overlay", overlay("a", "-10%"), on("general", "web", one), true},
		{"nothing", overlay("a", "-10%"), on("general", "web", one), false},
		{"its price", overlay("a", "-20%"), on("general", "web", one), true},
		{"its name", overlay("b", "-20%"), on("general", "web", one), true},
		{"the catalogue", overlay("b", "-20%"), on("general", "web", other), true},
		{"the NodePool", overlay("b", "-20%"), on("special", "web", other), true},
		{"its labels", overlay("b", "-20%"), on("special", "db", other), true},
		{"nothing once more", overlay("b", "-20%"), on("special", "db", other), false},
	} {
		name, pools := c.pool.NodePool.Name, []karpv1.NodePool{*c.pool.NodePool}
		result := o.remembered(c.overlays, pools, name, c.pool.Catalog)
		if result == nil {
			var err error
			if result, err = nodeoverlay.Evaluate(t.Context(), c.overlays, []nodeoverlay.Pool{c.pool}); err != nil {
				t.Fatal(err)
			}
			o.remember(c.overlays, pools, map[string]*fleet.Catalog{name: c.pool.Catalog}, result)
		}
		if (result != last) != c.again {
			t.Errorf("%s has changed: evaluated again %t, want %t", c.what, result != last, c.again)
		}
		last = result
	}
}

// NodePools of another class buy from another catalogue, where overlays meet other sizes.
func TestOverlaysMeetTheCatalogueOfEachNodePool(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.port.ApplyNodeOverlays()
		writeOverlays(t, w)
		class := w.class.DeepCopy()
		class.Name, class.ResourceVersion, class.Spec.OSDiskSizeGB = "large", "", ptr(int32(1024))
		general, special := pool(), pool()
		special.Name, special.Spec.Template.Spec.NodeClassRef.Name = "special", class.Name
		for _, o := range []client.Object{class, general, special} {
			if err := w.kube.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.port.Catalog(t.Context(), "general"); err != nil {
			t.Fatal(err)
		}
		met := map[*fleet.Catalog]bool{}
		for i := range w.port.catalogs.overlays.pools {
			p := &w.port.catalogs.overlays.pools[i]
			built, err := w.port.catalogs.built(t.Context(), p)
			catalog := w.port.catalogs.overlays.catalogs[p.Name]
			if err != nil || catalog != w.port.catalogs.plain(built) {
				t.Errorf("NodePool %s is met with another catalogue: %v", p.Name, err)
			}
			met[catalog] = true
		}
		if len(met) != 2 {
			t.Errorf("overlays meet %d catalogues, want one of each class", len(met))
		}
	})
}
