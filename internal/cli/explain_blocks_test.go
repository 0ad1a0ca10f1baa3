package cli

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/controller/unavailablestore"
	"github.com/nodeautoprovision/nap/internal/model"
)

// remembered is the ConfigMap of a controller whose Azure refused a size.
func remembered(t *testing.T, now func() time.Time) *corev1.ConfigMap {
	t.Helper()
	refused := unavailable.New(now)
	sku := &instancetype.SKU{Name: "Standard_D4s_v5", Family: "standardDSv5Family", VCPUs: 4}
	refused.MarkUnavailable(unavailable.NewFailure("ZonalAllocationFailed", "", nil),
		unavailable.Attempt{SKU: sku, Zone: "eastus-1", CapacityType: model.OnDemand})
	refused.MarkUnavailable(unavailable.NewFailure("OperationNotAllowed", "LowPriorityCores", nil),
		unavailable.Attempt{SKU: sku, Zone: "eastus-1", CapacityType: model.Spot})
	text, err := refused.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "nap", Name: unavailablestore.Name, Labels: map[string]string{"nap.azure.com/memory": "scarcity"},
		},
		Data: map[string]string{unavailablestore.Key: string(text)},
	}
}

func TestExplainRefusalsOfLiveClusterWithExpiry(t *testing.T) {
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	refused, note, err := readRefusals(t.Context(), fake.NewClientset(remembered(t, now)), now)
	if err != nil || note != "" {
		t.Fatal(note, err)
	}
	source, err := catalogFlags{}.open(nil, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	described := func(name string) string {
		t.Helper()
		types := source.forClass("").InstanceTypes
		for i := range types {
			if types[i].Name != name {
				continue
			}
			offer := types[i]
			refuse(&offer, refused)
			s := describeOffer(&offer, instancetype.Axes(), false)
			return s.Verdict + "\n" + strings.Join(s.Lines, "\n")
		}
		t.Fatalf("no size %s", name)
		return ""
	}
	got := described("Standard_D4s_v5")
	for _, want := range []string{
		"not sold: zone eastus-1, on-demand: Azure refused it with ZonalAllocationFailed; it is asked again after 2026-01-02T04:04:05Z",
		"not sold: zone eastus-2, spot: Azure refused it with OperationNotAllowed; it is asked again after 2026-01-02T04:04:05Z",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no line %q in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "zone eastus-2, on-demand: Azure refused") {
		t.Errorf("on-demand in zone 2 was not refused:\n%s", got)
	}
	if got := described("Standard_D8s_v5"); !strings.Contains(got,
		"zone eastus-1, on-demand: Azure refused it with ZonalAllocationFailed; it is asked again after 2026-01-02T03:07:05Z") {
		t.Errorf("the larger sibling is blocked for three minutes:\n%s", got)
	}
}

func TestExplainUnreadableRefusalsAreUnknown(t *testing.T) {
	broken := remembered(t, time.Now)
	broken.Data[unavailablestore.Key] = "[{"
	if _, note, err := readRefusals(t.Context(), fake.NewClientset(broken), time.Now); err != nil ||
		!strings.Contains(note, "ConfigMap nap/nap-scarcity") {
		t.Errorf("a broken ConfigMap: note %q, %v", note, err)
	}
	forbidding := fake.NewClientset()
	forbidding.PrependReactor("list", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no"))
	})
	if _, note, err := readRefusals(t.Context(), forbidding, time.Now); err != nil || !strings.Contains(note, "may not list ConfigMaps") {
		t.Errorf("a user who may not: note %q, %v", note, err)
	}
}
