package cloud

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// With the system node's name, a machine of the fixed pool would be no node of its own.
func TestFixedNodesHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{systemNodeName: true}
	for i := range 1_000 {
		name := fixedNodeName(i)
		if seen[name] {
			t.Fatalf("node %d is called %s, as another one", i, name)
		}
		seen[name] = true
	}
}

// Nodes of the fixed pool are of mode system, too, and only play the pods that come there:
// a replica of nap on one of them would be no process.
func TestReleaseRunsOnTheSystemNodeAlone(t *testing.T) {
	for _, name := range Releases() {
		want := map[string]any{corev1.LabelHostname: systemNodeName}
		if diff := cmp.Diff(want, newRelease(Options{Release: name}, "nap", nil).chart(nil).Values["nodeSelector"]); diff != "" {
			t.Errorf("release %s (-want +got):\n%s", name, diff)
		}
	}
}
