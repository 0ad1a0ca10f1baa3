package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
)

// A live cluster's controller says whether spec.replicas counts: without the gate nothing
// comes of it, and with the gate there is nothing to assume.
func TestControllerSaysWhetherReplicasCount(t *testing.T) {
	const pool = `{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"}, "spec": {"replicas": 3,
		"template": {"spec": {"nodeClassRef": {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "default"}, "requirements": []}}}}`
	file := filepath.Join(t.TempDir(), "pool.json")
	if err := os.WriteFile(file, []byte(pool), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		gates      []string
		said, note string
		bought     int
	}{
		{nil, "", "has 0: it stays so, for the controller's feature gate StaticCapacity is off", 0},
		{[]string{"NodeRepair", "StaticCapacity"}, "and has 0: the controller buys 3 beside this plan", "", 3},
	} {
		command := &planCommand{input: inputFlags{files: []string{file}}}
		read, err := command.input.read(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		source, err := read.source(t.Context(), catalogFlags{})
		if err != nil {
			t.Fatal(err)
		}
		read.notes, read.told = nil, &told{document: &snapshot.Document{}}
		read.told.document.Status.FeatureGates = c.gates
		made := &madePlan{read: read, source: source, report: &planReport{}}
		change := &fleetChange{lost: map[string]bool{}}
		if err := command.addStatic(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		if err := command.settle(t.Context(), read, source, change); err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, s := range made.report.StaticNodePools {
			said += s.Message
		}
		notes := strings.Join(read.notes, "\n")
		if !strings.Contains(said, c.said) || (said == "") != (c.said == "") || !strings.Contains(notes, c.note) || (notes == "") != (c.note == "") {
			t.Errorf("%v: said %q, noted %q, want %q and %q", c.gates, said, notes, c.said, c.note)
		}
		if len(change.nodes) != c.bought {
			t.Errorf("%v: %d nodes are bought, want %d", c.gates, len(change.nodes), c.bought)
		}
	}
}
