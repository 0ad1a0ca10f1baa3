package cloudprovider

import (
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/model"
)

// What types share changes nothing about them: each says what it would say by itself.
func TestTypesWithSharedRequirementsSayTheSame(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		built, err := w.port.catalogs.built(t.Context(), pool())
		if err != nil {
			t.Fatal(err)
		}
		its, err := w.port.GetInstanceTypes(t.Context(), pool())
		if err != nil {
			t.Fatal(err)
		}
		known := instancetype.KnownLabels()
		distinct := map[*scheduling.Requirement]bool{}
		total := 0
		for i := range built.Catalog.InstanceTypes {
			alone := instanceType(&built.Catalog.InstanceTypes[i], known, newSharedParts())
			if !reflect.DeepEqual(alone, its[i]) {
				t.Fatalf("%s: by itself it is\n%v, beside others\n%v", alone.Name, alone, its[i])
			}
			for key, value := range built.Catalog.InstanceTypes[i].Labels {
				if !its[i].Requirements.Get(key).Has(value) || its[i].Requirements.Get(key).Len() != 1 {
					t.Fatalf("%s: requirement %v, want the label %s", alone.Name, its[i].Requirements.Get(key), value)
				}
			}
			for _, o := range its[i].Offerings {
				for _, r := range o.Requirements {
					distinct[r], total = true, total+1
				}
			}
		}
		if len(distinct) > 20 {
			t.Errorf("%d offerings' requirements are %d in memory, want a handful", total, len(distinct))
		}
	})
}

// Every machine that is bought changes what is left of a quota. What Karpenter sees is
// converted again only where that changes what can be bought.
func TestPurchasesConvertOnlyWhatChanges(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		types := func() []string {
			its, err := w.port.GetInstanceTypes(t.Context(), pool())
			if err != nil {
				t.Fatal(err)
			}
			names := make([]string, len(its))
			for i, it := range its {
				names[i] = it.Name
			}
			return names
		}
		names := types()
		memory := func() map[string]any {
			its, err := w.port.GetInstanceTypes(t.Context(), pool())
			if err != nil {
				t.Fatal(err)
			}
			out := map[string]any{"": &its[0]}
			for _, it := range its {
				out[it.Name] = it
			}
			return out
		}
		before := memory()
		if _, err := w.port.Create(t.Context(), claim("a", need(corev1.LabelInstanceTypeStable, "Standard_D2s_v5"))); err != nil {
			t.Fatal(err)
		}
		if after := memory(); after[""] != before[""] {
			t.Error("a purchase that leaves enough quota has all instance types converted again")
		}
		if _, err := w.Server.AddFault(armsim.Fault{
			Kind: armsim.FaultCapacity, Code: "ZonalAllocationFailed", Size: "Standard_D4s_v5",
		}); err != nil {
			t.Fatal(err)
		}
		_, _ = w.port.Create(t.Context(), claim("b", need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5"),
			need(corev1.LabelTopologyZone, "eastus-1"), need(karpv1.CapacityTypeLabelKey, "on-demand")))
		again := 0
		after := memory()
		for _, name := range names {
			if after[name] != before[name] {
				again++
			}
		}
		if again == 0 || again > 100 {
			t.Errorf("after one refused size %d of %d instance types were converted again, want those that it concerns", again, len(names))
		}
		if n := len(w.port.catalogs.converted); n != 1 {
			t.Errorf("%d conversions are kept for one kind of node class", n)
		}
	})
}

// sized is a size that can be bought in one way.
func sized(name string) model.InstanceType {
	return model.InstanceType{
		Name: name, Capacity: make(model.Resources, len(instancetype.Axes())), Overhead: make(model.Resources, len(instancetype.Axes())),
		Offerings: []model.Offering{{Available: true}},
	}
}

// The sizes of a region may become more and fewer. Of no catalogue anything is kept then.
func TestConversionOfMoreOrFewerSizes(t *testing.T) {
	types := []model.InstanceType{sized("a"), sized("b"), sized("c")}
	var last *convertedTypes
	for _, n := range []int{0, 0, 2, 3, 1, 0} {
		last = last.convert(types[:n])
		if len(last.out) != n || n > 0 && last.out[n-1].Name != types[n-1].Name {
			t.Errorf("of %d sizes %d were converted", n, len(last.out))
		}
	}
}

func TestRequirementsAreSharedWhateverTheirOrder(t *testing.T) {
	s := newSharedParts()
	if s.requirement("key", "a", "b") != s.requirement("key", "b", "a") {
		t.Error("a requirement is kept twice")
	}
	labels := map[string]string{}
	for i := range 8 {
		labels[fmt.Sprint("key-", i)] = "a"
	}
	for range 20 { // maps are gone through in any order
		s.labels(labels)
	}
	if len(s.sets) != 1 {
		t.Errorf("the requirements of an offering are kept %d times", len(s.sets))
	}
}

func TestInstanceTypeOffersChoicesAndReservesNoZeros(t *testing.T) {
	it := sized("a")
	it.Choices = map[string][]string{"mode": {"user", "system"}}
	it.Overhead[model.CPU], it.Overhead[model.Memory] = 100, evictionBytes()
	got := instanceType(&it, nil, newSharedParts())
	if mode := got.Requirements.Get("mode"); !mode.Has("user") || !mode.Has("system") || mode.Len() != 2 {
		t.Errorf("requirement %v, want either mode", mode)
	}
	reserved := got.Overhead.KubeReserved
	if len(reserved) != 1 || reserved.Cpu().MilliValue() != 100 {
		t.Errorf("reserved are %v, want CPU alone: the rest of the memory is the eviction threshold", reserved)
	}
}

// Kinds of node classes come and go; what is kept of them has a bound.
func TestConversionsOfManyKindsAreForgotten(t *testing.T) {
	c := &catalogs{converted: map[string]*converted{}}
	for i := range mostConverted {
		c.remember(&instancetype.Built{Kind: fmt.Sprint(i)})
	}
	if len(c.converted) != mostConverted {
		t.Errorf("%d kinds are kept, want %d", len(c.converted), mostConverted)
	}
	if c.remember(&instancetype.Built{Kind: "one more"}); len(c.converted) != 1 {
		t.Errorf("with one more %d kinds are kept, want that alone", len(c.converted))
	}
}
