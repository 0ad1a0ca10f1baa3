package cloudprovider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/config"
)

// The price of a D4s_v5 that is reserved: that of its disk.
const reservedD4s = "0.027"

// oneReserved lets the controller start with one D4s_v5 paid in advance.
func oneReserved(t *testing.T, w *world) {
	t.Helper()
	w.prices = filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(w.prices, []byte("reservations: [{size: Standard_D4s_v5, count: 1, hourly: 0}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.restart(t, func(*config.Config) {})
	if err := w.kube.Create(t.Context(), pool()); err != nil {
		t.Fatal(err)
	}
}

// plannedAt is a claim for a D4s_v5 that was planned at a price, and may cost 5 percent more.
func plannedAt(name, planned, most string) *karpv1.NodeClaim {
	c := claim(name, need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5"), need(karpv1.CapacityTypeLabelKey, "on-demand"))
	if planned != "" {
		c.Annotations = map[string]string{v1beta1.AnnotationPlannedPrice: planned, v1beta1.AnnotationMostPrice: most}
	}
	return c
}

// Of claims that count on one reserved machine one gets it, also where they were planned apart
// and are launched at once, and the others are planned again. What is paid is what it costs.
func TestReservedMachineIsBoughtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		oneReserved(t, w)
		var claims []*karpv1.NodeClaim
		for _, name := range []string{"a", "b", "c"} {
			c := plannedAt("general-"+name, reservedD4s, "0.02835")
			if err := w.kube.Create(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			claims = append(claims, c)
		}
		bought, failed := buyAll(t, w, claims)
		if len(bought) != 1 || len(failed) != 2 {
			t.Fatalf("%d machines were bought at the price of the only reserved one: %v", len(bought), failed)
		}
		if paid := bought[0].Annotations[v1beta1.AnnotationPaidPrice]; !strings.HasPrefix(paid, reservedD4s) {
			t.Errorf("$%s was paid for the reserved machine", paid)
		}
		for _, err := range failed {
			if !karpcloud.IsInsufficientCapacityError(err) || !strings.Contains(err.Error(), "planned again") {
				t.Errorf("the claim does not end with another plan: %v", err)
			}
		}
	})
}

// A plan with one reserved machine and a further one is carried out whichever is launched first,
// and each pays its own price. A claim of no plan gets what there is, at any price.
func TestFurtherMachineLeavesReservedOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		oneReserved(t, w)
		for _, c := range []struct{ name, planned, most, paid string }{
			{"general-further", "0.219", "0.23", "0.219"}, {"general-reserved", reservedD4s, "0.02835", reservedD4s}, {"general-static", "", "", "0.219"},
		} {
			made, err := w.port.Create(t.Context(), plannedAt(c.name, c.planned, c.most))
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if paid := made.Annotations[v1beta1.AnnotationPaidPrice]; !strings.HasPrefix(paid, c.paid) {
				t.Errorf("%s paid $%s, want $%s", c.name, paid, c.paid)
			}
		}
	})
}

// A controller that starts again counts the machines that there are before it buys one.
func TestReservedMachineIsRememberedOverRestart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		oneReserved(t, w)
		if _, err := w.port.Create(t.Context(), plannedAt("general-a", reservedD4s, "0.02835")); err != nil {
			t.Fatal(err)
		}
		w.restart(t, func(*config.Config) {})
		if _, err := w.port.Create(t.Context(), plannedAt("general-b", reservedD4s, "0.02835")); !karpcloud.IsInsufficientCapacityError(err) {
			t.Errorf("a second machine is bought at the price of the only reserved one: %v", err)
		}
	})
}
