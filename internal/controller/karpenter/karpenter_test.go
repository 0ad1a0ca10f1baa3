package karpenter

import (
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// imports lists what a Go file imports below Karpenter's controllers.
func imports(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, spec := range parsed.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(path, "sigs.k8s.io/karpenter/pkg/controllers/") {
			out = append(out, path)
		}
	}
	return out
}

func TestEveryKarpenterControllerIsListed(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "sigs.k8s.io/karpenter/pkg/controllers").Output()
	if err != nil {
		t.Fatalf("where is Karpenter: %v", err)
	}
	theirs := imports(t, filepath.Join(strings.TrimSpace(string(dir)), "controllers.go"))
	if len(theirs) < 20 {
		t.Fatalf("read only %d imports: Karpenter wires its controllers elsewhere now", len(theirs))
	}
	ours := append(imports(t, "assembly.go"), imports(t, "controllers.go")...)
	ours = append(ours, imports(t, "counter.go")...)
	ours = append(ours, imports(t, "observability.go")...)
	ours = append(ours, imports(t, "onchange.go")...)
	ours = append(ours, imports(t, "podevents.go")...)
	ours = append(ours, imports(t, "../objectmetrics/nodes.go")...) // runs as a collector
	for _, path := range theirs {
		if !slices.Contains(ours, path) {
			t.Errorf("Karpenter runs a controller of %s, and nap does not: assemble it, or say here why not", path)
		}
	}
}
