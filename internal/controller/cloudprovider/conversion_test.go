package cloudprovider

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
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
