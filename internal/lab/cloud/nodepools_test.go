package cloud

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// What nap disable has closed is closed for AKS, however the zero is written; nodes or
// memory in the limits do not close a NodePool.
func TestOpenNodePoolsAreThoseWhoseCPUIsNotZero(t *testing.T) {
	pools := &nodePools{}
	if got := pools.open(); got != nil {
		t.Errorf("before they are watched: %v", got)
	}
	pools.store = cache.NewStore(cache.MetaNamespaceKeyFunc)
	for name, limits := range map[string]map[string]any{
		"a-closed": {"cpu": "0"}, "b-closed": {"cpu": int64(0)}, "c-closed": {"cpu": "0m"},
		"d-limited": {"cpu": "100"}, "e-other": {"nodes": "0"}, "f-unlimited": nil,
	} {
		pool := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"limits": limits}}}
		if err := pools.store.Add(pool); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(pools.open(), " "); got != "d-limited e-other f-unlimited" {
		t.Errorf("open are %s", got)
	}
}
