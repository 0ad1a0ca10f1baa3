package crds_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
)

// TestModeManualIsRefusedWhileMachinesRemain: a real API server refuses the mode by the
// names in the status, takes it when nothing is left, and lets what is Manual stay so. A
// second object is refused.
func TestModeManualIsRefusedWhileMachinesRemain(t *testing.T) {
	modes := newServer(t).client.Resource(v1alpha1.GroupVersion().WithResource("nodeautoprovisionings"))
	create := func(name string) error {
		_, err := modes.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion().String(), "kind": "NodeAutoProvisioning", "metadata": map[string]any{"name": name},
		}}, metav1.CreateOptions{})
		return err
	}
	patch := func(text string, sub ...string) (*unstructured.Unstructured, error) {
		return modes.Patch(t.Context(), "default", types.MergePatchType, []byte(text), metav1.PatchOptions{}, sub...)
	}
	if err := create("other"); err == nil || !strings.Contains(err.Error(), "which is called default") {
		t.Errorf("a second object: %v", err)
	}
	if err := create("default"); err != nil {
		t.Fatal(err)
	}
	made, err := patch(`{"status":{"nodes":1,"nodePools":1,"disableBlockedBy":"1 node aks-a"}}`, "status")
	if err != nil {
		t.Fatal(err)
	}
	if mode, _, _ := unstructured.NestedString(made.Object, "spec", "mode"); mode != "Auto" {
		t.Errorf("the mode without one is %q", mode)
	}
	const manual = `{"spec":{"mode":"Manual"}}`
	_, err = patch(manual)
	const want = "mode Manual would leave machines behind: 1 node aks-a; nap disable removes them step by step"
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "spec.mode") {
		t.Errorf("mode Manual with a node: %v", err)
	}
	if _, err := patch(`{"spec":{"mode":"Off"}}`); err == nil || !strings.Contains(err.Error(), `"Auto", "Manual"`) {
		t.Errorf("mode Off: %v", err)
	}
	for _, step := range []struct{ text, sub string }{
		{`{"status":{"disableBlockedBy":""}}`, "status"}, {manual, ""},
		{`{"status":{"disableBlockedBy":"1 node aks-b"}}`, "status"}, {`{"spec":{"mode":"Manual","defaultNodePools":"None"}}`, ""},
		{`{"spec":{"mode":"Auto"}}`, ""},
	} {
		var sub []string
		if step.sub != "" {
			sub = []string{step.sub}
		}
		if _, err := patch(step.text, sub...); err != nil {
			t.Errorf("%s: %v", step.text, err)
		}
	}
}
