package helmrelease

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Where the tests' API server has objects.
const (
	deploymentPath = "/apis/apps/v1/namespaces/nap-system/deployments/nap"
	accountPath    = "/api/v1/namespaces/nap-system/serviceaccounts/nap"
	scalerPath     = "/apis/autoscaling/v2/namespaces/nap-system/horizontalpodautoscalers/nap"
)

// scaler scales nap's Deployment.
func scaler() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": map[string]any{"name": "nap", "namespace": namespace},
		"spec": map[string]any{"maxReplicas": int64(5), "scaleTargetRef": map[string]any{"kind": "Deployment", "name": "nap"}},
	}}
}

// scale sets the replicas of nap's Deployment as kubectl does.
func (c *cluster) scale(t *testing.T, replicas int64) {
	t.Helper()
	if err := unstructured.SetNestedField(c.objects[deploymentPath].Object, replicas, "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
}

// TestChangedObjectsAreRestored: what was changed by hand is as the release has it again, also
// where that is unchanged itself; what an autoscaler sets stays, unless that is zero.
func TestChangedObjectsAreRestored(t *testing.T) {
	r := render(t)
	for name, tt := range map[string]struct {
		change   func(*testing.T, *cluster)
		outcome  Outcome
		replicas string
	}{
		"nothing":          {func(*testing.T, *cluster) {}, Unchanged, "2"},
		"scaled to zero":   {func(t *testing.T, c *cluster) { c.scale(t, 0) }, Restored, "2"},
		"scaled up":        {func(t *testing.T, c *cluster) { c.scale(t, 3) }, Restored, "2"},
		"an account gone":  {func(_ *testing.T, c *cluster) { delete(c.objects, accountPath) }, Restored, "2"},
		"scaled by an HPA": {func(t *testing.T, c *cluster) { c.objects[scalerPath] = scaler(); c.scale(t, 3) }, Unchanged, "3"},
		"zero with an HPA": {func(t *testing.T, c *cluster) { c.objects[scalerPath] = scaler(); c.scale(t, 0) }, Restored, "2"},
		"status written": {func(_ *testing.T, c *cluster) {
			c.objects[deploymentPath].Object["status"] = map[string]any{"replicas": int64(2)}
		}, Unchanged, "2"},
		"a version written": {func(_ *testing.T, c *cluster) { c.objects[deploymentPath].SetResourceVersion("7") }, Unchanged, "2"},
	} {
		c := newCluster(t, append(r.objects(t, true), scaler())...)
		install := func() Outcome {
			outcome, err := c.installer(t, 0).install(t.Context(), nap(true), r[true])
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return outcome
		}
		install()
		tt.change(t, c)
		if got := install(); got != tt.outcome {
			t.Errorf("%s: %s, want %s", name, got, tt.outcome)
		}
		field, _, _ := unstructured.NestedFieldNoCopy(c.objects[deploymentPath].Object, "spec", "replicas")
		if replicas := fmt.Sprint(field); replicas != tt.replicas || c.objects[accountPath] == nil {
			t.Errorf("%s: %s replicas, want %s; ServiceAccount %v", name, replicas, tt.replicas, c.objects[accountPath])
		}
		if got := install(); got != Unchanged {
			t.Errorf("%s: the next run: %s", name, got)
		}
	}
}
