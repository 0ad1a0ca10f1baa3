package nodeoverlay

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// twoSizes is a catalogue with a small and a large size at $0.10 and $0.20, spot at half
// of it, each with a disk for $0.02 and $0.01 for an agent.
func twoSizes() *fleet.Catalog {
	c := &fleet.Catalog{Axes: model.NewAxes("nvidia.com/gpu"), Quotas: []model.Quota{{Name: "family", Left: 8}}}
	for i, name := range []string{"small", "large"} {
		t := model.InstanceType{
			Name: name, Labels: map[string]string{model.LabelInstanceType: name, "kubernetes.io/arch": "amd64"},
			Capacity: model.Resources{int64(1000 * (i + 1)), 8 << 30, 0, 110, 0}, Overhead: model.Resources{100, 1 << 30},
			VolumeSlots: map[string]int{"disk.csi.azure.com": 4},
		}
		for j, kind := range []model.CapacityType{model.OnDemand, model.Spot} {
			t.Offerings = append(t.Offerings, model.Offering{
				Zone: "z-1", CapacityType: kind, DiskPrice: model.USD(0.02), NodePrice: model.USD(0.01),
				Price:     model.USD(0.1*float64(i+1)/float64(j+1) + 0.03),
				Available: j == 0, Unavailable: []string{"", "refused"}[j], Quotas: []model.QuotaUse{{Quota: "family", Amount: 2}},
				Labels: map[string]string{model.LabelZone: "z-1", model.LabelCapacityType: string(kind)},
			})
		}
		c.InstanceTypes = append(c.InstanceTypes, t)
	}
	return c
}

func overlay(name string, weight int32, change func(*v1alpha1.NodeOverlaySpec), requirements ...v1alpha1.NodeSelectorRequirement) v1alpha1.NodeOverlay {
	o := v1alpha1.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeOverlaySpec{Requirements: requirements}}
	if weight > 0 {
		o.Spec.Weight = &weight
	}
	change(&o.Spec)
	return o
}

func price(text string) func(*v1alpha1.NodeOverlaySpec) {
	return func(s *v1alpha1.NodeOverlaySpec) { s.Price = &text }
}

func adjust(text string) func(*v1alpha1.NodeOverlaySpec) {
	return func(s *v1alpha1.NodeOverlaySpec) { s.PriceAdjustment = &text }
}

func capacity(name, amount string) func(*v1alpha1.NodeOverlaySpec) {
	return func(s *v1alpha1.NodeOverlaySpec) {
		s.Capacity = corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(amount)}
	}
}

func in(key string, values ...string) v1alpha1.NodeSelectorRequirement {
	return v1alpha1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// evaluated applies overlays to one NodePool "general" with template label team=blue.
func evaluated(t *testing.T, catalog *fleet.Catalog, overlays ...v1alpha1.NodeOverlay) (*fleet.Catalog, []Refusal) {
	t.Helper()
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	pool.Spec.Template.Labels = map[string]string{"team": "blue"}
	result, err := Evaluate(t.Context(), overlays, []Pool{{pool, catalog}})
	if err != nil {
		t.Fatal(err)
	}
	return result.Catalog("general"), result.Refused
}

func TestOverlaidPrices(t *testing.T) {
	size, blue, red := in(model.LabelInstanceType, "small"), in("team", "blue"), in("team", "red")
	for name, c := range map[string]struct {
		overlays []v1alpha1.NodeOverlay
		// want are dollars of small on-demand, small spot, large on-demand, large spot,
		// without the three cents for disk and agent.
		want    [4]float64
		refused []string
	}{
		"none":                      {nil, [4]float64{0.1, 0.05, 0.2, 0.1}, nil},
		"price of a size":           {[]v1alpha1.NodeOverlay{overlay("a", 0, price("0.5"), size)}, [4]float64{0.5, 0.5, 0.2, 0.1}, nil},
		"percent":                   {[]v1alpha1.NodeOverlay{overlay("a", 0, adjust("-90%"), size)}, [4]float64{0.01, 0.005, 0.2, 0.1}, nil},
		"percent up":                {[]v1alpha1.NodeOverlay{overlay("a", 0, adjust("+50%"))}, [4]float64{0.15, 0.075, 0.3, 0.15}, nil},
		"dollars":                   {[]v1alpha1.NodeOverlay{overlay("a", 0, adjust("+0.25"))}, [4]float64{0.35, 0.3, 0.45, 0.35}, nil},
		"never below zero":          {[]v1alpha1.NodeOverlay{overlay("a", 0, adjust("-0.15"))}, [4]float64{0, 0, 0.05, 0}, nil},
		"one offering":              {[]v1alpha1.NodeOverlay{overlay("a", 0, price("1"), in(model.LabelCapacityType, "spot"))}, [4]float64{0.1, 1, 0.2, 1}, nil},
		"NodePool's label":          {[]v1alpha1.NodeOverlay{overlay("a", 0, price("1"), blue)}, [4]float64{1, 1, 1, 1}, nil},
		"another label":             {[]v1alpha1.NodeOverlay{overlay("a", 0, price("1"), red)}, [4]float64{0.1, 0.05, 0.2, 0.1}, nil},
		"heavier wins":              {[]v1alpha1.NodeOverlay{overlay("a", 1, price("1")), overlay("b", 2, price("2"), size)}, [4]float64{2, 2, 1, 1}, nil},
		"equal weight":              {[]v1alpha1.NodeOverlay{overlay("a", 1, price("1")), overlay("b", 1, price("2"), size)}, [4]float64{2, 2, 0.2, 0.1}, []string{"a"}},
		"equal weight, other sizes": {[]v1alpha1.NodeOverlay{overlay("a", 0, price("1"), in(model.LabelInstanceType, "large")), overlay("b", 0, price("2"), size)}, [4]float64{2, 2, 1, 1}, nil},
		"restricted":                {[]v1alpha1.NodeOverlay{overlay("a", 0, capacity("cpu", "1"), size)}, [4]float64{0.1, 0.05, 0.2, 0.1}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			base := twoSizes()
			got, refused := evaluated(t, base, c.overlays...)
			for i := range got.InstanceTypes {
				for j, o := range got.InstanceTypes[i].Offerings {
					if want := model.USD(c.want[2*i+j]); o.MachinePrice() != want || o.Price != want+model.USD(0.03) {
						t.Errorf("%s %s costs %v, its machine %v, want the machine at %v", got.InstanceTypes[i].Name, o.CapacityType, o.Price, o.MachinePrice(), want)
					}
				}
			}
			if o := &got.InstanceTypes[0].Offerings[0]; o.PriceOverlaid != (c.want[0] != 0.1) {
				t.Errorf("the price of $%v is an overlay's: %v", c.want[0], o.PriceOverlaid)
			}
			var names []string
			for _, r := range refused {
				names = append(names, r.Overlay)
			}
			if !slices.Equal(names, c.refused) {
				t.Errorf("refused %v, want %v", refused, c.refused)
			}
			if base.InstanceTypes[0].Offerings[0].Price != model.USD(0.13) {
				t.Error("the catalogue that was given has changed")
			}
		})
	}
}

func TestOverlaidCapacityKeepsAllElse(t *testing.T) {
	base := twoSizes()
	got, refused := evaluated(t, base,
		overlay("fuse", 0, capacity("smarter-devices/fuse", "3"), in(model.LabelInstanceType, "large")),
		overlay("pages", 0, capacity("hugepages-2Mi", "1Gi"), in(model.LabelInstanceType, "large")))
	if len(refused) > 0 {
		t.Fatalf("refused %v", refused)
	}
	if !slices.Equal(got.Axes[:len(base.Axes)], base.Axes) || len(got.Axes) != len(base.Axes)+2 {
		t.Fatalf("axes %v, want those of the catalogue and two more", got.Axes)
	}
	small, large := got.InstanceTypes[0], got.InstanceTypes[1]
	if large.Capacity.Get(got.Axes.Index("smarter-devices/fuse")) != 3 || small.Capacity.Get(got.Axes.Index("smarter-devices/fuse")) != 0 {
		t.Errorf("capacities %v and %v on %v", small.Capacity, large.Capacity, got.Axes)
	}
	if small.CapacityOverlaid || !large.CapacityOverlaid {
		t.Errorf("an overlay decides the capacity of the small size: %v, of the large: %v", small.CapacityOverlaid, large.CapacityOverlaid)
	}
	if was, is := base.InstanceTypes[1].Allocatable()[model.Memory], large.Allocatable()[model.Memory]; was-is != 1<<30 {
		t.Errorf("huge pages leave %d of %d bytes", is, was)
	}
	if len(got.Quotas) != 1 || large.VolumeSlots["disk.csi.azure.com"] != 4 || large.Offerings[1].Unavailable != "refused" ||
		len(large.Offerings[0].Quotas) != 1 || large.Capacity[model.CPU] != 2000 {
		t.Errorf("quotas, disk slots or refusals are lost: %+v", large)
	}
}

func TestUntouchedCatalogIsTheSame(t *testing.T) {
	base := twoSizes()
	if got, _ := evaluated(t, base, overlay("a", 0, price("1"), in("team", "red"))); got != base {
		t.Error("a NodePool that no overlay matches has a catalogue of its own")
	}
	blue, green := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "blue"}}, &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "green"}}
	result, err := Evaluate(t.Context(), []v1alpha1.NodeOverlay{overlay("a", 0, price("1"))}, []Pool{{blue, base}, {green, base}})
	if err != nil {
		t.Fatal(err)
	}
	if result.Catalog("blue") != result.Catalog("green") || result.Catalog("blue") == base || result.Catalog("red") != nil {
		t.Error("NodePools with the same changes do not share their catalogue")
	}
}
