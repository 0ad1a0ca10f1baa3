package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/nodeautoprovision/nap/"

// listed is what `go list` says of a package.
type listed struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Doc          string
	Name         string
	GoFiles      []string
}

// packages lists every package of the module, without compiling anything.
func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports,Doc,Name,GoFiles", module+"...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("decode go list: %v", err)
		}
		all = append(all, p)
	}
}

func isStdlib(path string) bool { return !strings.Contains(strings.Split(path, "/")[0], ".") }

// within reports whether path is one of the roots or below it.
func within(path string, roots ...string) bool {
	for _, r := range roots {
		if path == r || strings.HasPrefix(path, r+"/") {
			return true
		}
	}
	return false
}

// rule forbids imports to the packages below Room, and says why and what to do.
type rule struct {
	room    string
	forbids func(imported string) bool
	why     string
}

func internalPath(names ...string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = module + "internal/" + n
	}
	return out
}

func importLaw() []rule {
	kubernetes := func(p string) bool {
		return within(p, "k8s.io", "sigs.k8s.io/controller-runtime", "sigs.k8s.io/karpenter")
	}
	return []rule{
		{"internal/model", func(p string) bool { return !isStdlib(p) },
			"model is the vocabulary that all rooms share: standard library only; put conversions into internal/kube or internal/azure"},
		{"internal/planner", func(p string) bool { return !isStdlib(p) && !within(p, internalPath("model", "planner")...) },
			"the planner is pure, so that the same code serves controller, CLI, tests and replay: give it what it needs through model.Problem"},
		{"internal/planner", func(p string) bool {
			// math/rand/v2 is allowed with a seed; the linter forbids its global functions.
			return within(p, "os", "net", "log", "log/slog", "context", "syscall") || p == "math/rand"
		},
			"the planner has no environment, network, logger or global randomness: time, seed and budget come in model.Policy"},
		{"internal/fleet", func(p string) bool {
			return kubernetes(p) || within(p, internalPath("kube", "controller", "cli", "azure")...)
		},
			"fleet mirrors the cluster in model's words: let internal/kube convert objects before they get here"},
		{"internal/azure", func(p string) bool {
			return within(p, internalPath("planner", "controller", "kube", "fleet", "cli")...)
		},
			"azure is the hands and knows nothing of planning: accept a ranked list of offerings instead"},
		{"internal/kube", func(p string) bool { return within(p, internalPath("controller", "cli", "azure", "armsim")...) },
			"kube only converts: accept a small interface for what the caller knows"},
		{"internal/controller", func(p string) bool { return within(p, internalPath("cli", "armsim", "lab")...) },
			"controllers run in production too, where there is no lab: take endpoints from configuration"},
		{"internal/azure", func(p string) bool { return within(p, internalPath("armsim", "lab")...) },
			"no branch in azure asks whether Azure is simulated: speak HTTP to the configured endpoint"},
		{"internal", func(p string) bool { return within(p, module+"bench") },
			"bench measures what is shipped and is not shipped itself: move what both need into a room of internal, as karpenterengine"},
		{"cmd", func(p string) bool { return within(p, module+"bench") },
			"bench has commands of its own in bench/cmd"},
		{"internal/lab/binary", func(p string) bool { return !isStdlib(p) },
			"nap, the program for people, has this room to find and build nap-lab: it must not bring the lab along"},
	}
}

// TestProgramsAreSmall holds what people install and what a cluster runs free of what
// only a lab needs.
func TestProgramsAreSmall(t *testing.T) {
	for program, forbidden := range map[string][]string{
		"cmd/nap":            append(internalPath("armsim", "lab"), module+"bench", module+"lab"),
		"cmd/nap-controller": append(internalPath("armsim", "lab", "karpenterengine"), module+"bench", module+"lab"),
	} {
		cmd := exec.Command("go", "list", "-deps", module+program)
		cmd.Dir = "../.."
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list -deps %s: %v", program, err)
		}
		for path := range strings.Lines(string(out)) {
			path = strings.TrimSpace(path)
			if within(path, forbidden...) && path != module+"internal/lab/binary" {
				t.Errorf("%s contains %s: it belongs to nap-lab or to bench; see docs/ARCHITECTURE.md", program, path)
			}
		}
	}
}

func TestPackagesImportOnlyWhatTheLawAllows(t *testing.T) {
	for _, p := range packages(t) {
		for _, r := range importLaw() {
			if !within(p.ImportPath, module+r.room) {
				continue
			}
			for _, imported := range p.Imports {
				if r.forbids(imported) {
					t.Errorf("%s imports %s: %s", p.ImportPath, imported, r.why)
				}
			}
		}
	}
}

// kubernetesRooms are the only ones that may speak Kubernetes types.
func kubernetesRooms() []string {
	return append(internalPath("kube", "controller", "cli", "lab", "armsim/kubelet", "karpenterengine"),
		module+"api", module+"bench", module+"cmd", module+"lab")
}

func TestKubernetesTypesStayOutOfPlanner(t *testing.T) {
	for _, p := range packages(t) {
		if within(p.ImportPath, kubernetesRooms()...) {
			continue
		}
		for _, imported := range p.Imports {
			if within(imported, "k8s.io", "sigs.k8s.io/controller-runtime", "sigs.k8s.io/karpenter") {
				t.Errorf("%s imports %s: Kubernetes types stop at internal/kube and internal/controller; use internal/model", p.ImportPath, imported)
			}
		}
	}
}

func TestEveryPackageHasComment(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package comment: write one in doc.go that a newcomer can start from", p.ImportPath)
		}
	}
}

func TestNoPackageIsCalledUtil(t *testing.T) {
	for _, p := range packages(t) {
		for _, bad := range []string{"util", "utils", "common", "helpers", "helper", "manager", "misc", "base"} {
			if p.Name == bad {
				t.Errorf("package %s: the name %q says nothing; name the thing it holds", p.ImportPath, bad)
			}
		}
	}
}
