package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/nodeautoprovision/nap/charts"
	"github.com/nodeautoprovision/nap/internal/kube/manifest"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

func TestEnableAllowsTheMemoryThatTheClusterTakes(t *testing.T) {
	large := &prerequisites.Kubernetes{Nodes: 5000, Pods: 50_000}
	own := map[string]any{"resources": map[string]any{"limits": map[string]any{"memory": "2Gi"}}}
	request := map[string]any{"resources": map[string]any{"requests": map[string]any{"memory": "1Gi"}}}
	for name, tc := range map[string]struct {
		cluster *prerequisites.Kubernetes
		values  map[string]any
		want    map[string]any
	}{
		"small":             {&prerequisites.Kubernetes{Nodes: 3, Pods: 40}, nil, nil},
		"not known":         {&prerequisites.Kubernetes{}, nil, nil},
		"large":             {large, nil, map[string]any{"limits": map[string]any{"memory": "3Gi"}, "requests": map[string]any{"memory": "1845Mi"}}},
		"with a limit":      {large, own, nil},
		"with a request":    {large, request, map[string]any{"limits": map[string]any{"memory": "3Gi"}}},
		"without resources": {large, map[string]any{"resources": nil}, map[string]any{"limits": map[string]any{"memory": "3Gi"}, "requests": map[string]any{"memory": "1845Mi"}}},
	} {
		if diff := cmp.Diff(tc.want, memoryValues(tc.cluster, tc.values)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The chart takes what is set, and its own limit is the one that is said here.
func TestChartHasTheLimitOfMemory(t *testing.T) {
	values := func(more map[string]any) map[string]any {
		return charts.Overlay(more, map[string]any{
			"image":            map[string]any{"repository": "registry.example/nap", "tag": "v1"},
			"workloadIdentity": map[string]any{"clientId": "00000000-0000-4000-8000-000000000001"},
			"settings":         map[string]any{"clusterName": "c", "armResourceGroup": "g", "azureSubscriptionId": testSubscription},
		})
	}
	limit := func(values map[string]any) int64 {
		t.Helper()
		release := charts.Release{Chart: "nap", Name: "nap", Namespace: "nap-system", Kubernetes: "v1.35.1", Values: values}
		rendered, err := release.Render()
		if err != nil {
			t.Fatal(err)
		}
		objects, err := manifest.Parse([]byte(rendered.Manifest))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if o.GetKind() != "Deployment" {
				continue
			}
			containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			text, _, _ := unstructured.NestedString(containers[0].(map[string]any), "resources", "limits", "memory")
			q := resource.MustParse(text)
			return q.Value()
		}
		t.Fatal("the chart has no Deployment")
		return 0
	}
	if got := limit(values(nil)); got != chartMemoryLimit {
		t.Errorf("the chart's limit is %d, want %d", got, chartMemoryLimit)
	}
	more := memoryValues(&prerequisites.Kubernetes{Nodes: 5000, Pods: 50_000}, nil)
	if got := limit(values(map[string]any{"resources": more})); got != 3<<30 {
		t.Errorf("the limit is %d, want 3 GiB", got)
	}
}
