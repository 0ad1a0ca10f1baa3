package cli

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// A freeze that is over stays written on its NodePool, and keeps no node.
func TestOnlyFreezesThatHoldKeepNodes(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	frozen := func(until string) *v1.NodePool {
		p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1beta1.AnnotationFrozen: "release"}}}
		if until != "" {
			p.Annotations[v1beta1.AnnotationFrozenUntil] = until
		}
		return p
	}
	got := frozenPools(map[string]*v1.NodePool{
		"free": {}, "always": frozen(""), "over": frozen("2026-11-28T11:59:00Z"), "holds": frozen("2026-11-28T12:01:00Z"),
	}, now)
	want := []string{"NodePool always is frozen: nap thaw always", "NodePool holds is frozen: nap thaw holds"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A NodePool that was closed once and has another limit since gets that one back.
func TestClosingRemembersTheLimitOfNow(t *testing.T) {
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1beta1.AnnotationBeforeDisable: `{"cpu":"50"}`}}}
	p.Spec.Limits = v1.Limits{corev1.ResourceCPU: resource.MustParse("100")}
	change, err := closing(p)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(change)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"annotations":{"` + v1beta1.AnnotationBeforeDisable + `":"{\"cpu\":\"100\"}"}},"spec":{"limits":{"cpu":"0"}}}`
	if string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

// The sizes that promise the least price come first, and what lacks a resource is not among them.
func TestPromisingSizesHoldAllForLeast(t *testing.T) {
	size := func(name, family, arch string, cpu int64, dollars float64) model.InstanceType {
		return model.InstanceType{
			Name: name, Labels: map[string]string{labelFamily: family, corev1.LabelArchStable: arch},
			Capacity:  model.Resources{cpu},
			Offerings: []model.Offering{{CapacityType: model.OnDemand, Available: true, Price: model.USD(dollars)}},
		}
	}
	catalog := &fleet.Catalog{InstanceTypes: []model.InstanceType{
		size("whole", "D", "amd64", 8000, 0.55), size("parts", "D", "amd64", 3900, 0.15), size("other", "E", "amd64", 3900, 0.01),
		size("arm", "D", "arm64", 3900, 0.01), size("none", "D", "amd64", 0, 0.01),
	}}
	got := promising(catalog, []string{"D"}, []string{"amd64"}, model.Resources{8000})
	if want := []string{"parts", "whole"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
