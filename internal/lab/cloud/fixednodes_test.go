package cloud

import "testing"

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
