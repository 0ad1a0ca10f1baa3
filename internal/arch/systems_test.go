package arch

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestProgramsBuildOnEverySystem checks the types of nap and nap-controller as the
// compiler would on other systems, with the standard library of those systems. Modules of
// others are not read, which is why this takes seconds; `make cross` builds in full.
func TestProgramsBuildOnEverySystem(t *testing.T) {
	programs := []string{"./cmd/nap", "./cmd/nap-controller"}
	here := typeErrors(t, "linux", "amd64", programs...)
	for _, system := range []string{"linux/arm64", "darwin/arm64", "windows/amd64"} {
		t.Run(strings.ReplaceAll(system, "/", "-"), func(t *testing.T) {
			t.Parallel()
			goos, goarch, _ := strings.Cut(system, "/")
			for text := range typeErrors(t, goos, goarch, programs...) {
				if !here[text] {
					t.Errorf("%s: does not build on %s; put what only some systems have into a file with a build constraint", text, system)
				}
			}
		})
	}
	t.Run("supervisor", func(t *testing.T) {
		// The lab's supervisor needs process groups: the check must notice.
		text := fmt.Sprint(typeErrors(t, "windows", "amd64", "./internal/lab"))
		if !strings.Contains(text, "Setpgid") && !strings.Contains(text, "Setsid") {
			t.Errorf("nothing is found wrong with the lab's supervisor on Windows: %s", text)
		}
	})
}

// typeErrors checks packages and everything of this module that they import, as they are
// on a system. Of other modules it knows nothing: what follows from that is the same on
// every system.
func typeErrors(t *testing.T, goos, goarch string, roots ...string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	fset := token.NewFileSet()
	checked := loaded{}
	for _, p := range listFor(t, goos, goarch, roots...) {
		own := strings.HasPrefix(p.ImportPath, module)
		if p.Error != nil {
			found[p.Error.Err] = true
		}
		if !own && !p.Standard {
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		conf := types.Config{
			Importer: importer{checked, p.ImportMap}, IgnoreFuncBodies: !own, FakeImportC: true, Sizes: types.SizesFor("gc", goarch),
			Error: func(err error) {
				var e types.Error
				if errors.As(err, &e) && own {
					at := fset.Position(e.Pos)
					found[fmt.Sprintf("%s:%d: %s", strings.TrimPrefix(p.ImportPath, module), at.Line, e.Msg)] = true
				}
			},
		}
		checked[p.ImportPath], _ = conf.Check(p.ImportPath, fset, files, nil) // errors go to found
	}
	return found
}

// loaded are packages that are checked, by path.
type loaded map[string]*types.Package

type importer struct {
	loaded
	vendored map[string]string
}

func (i importer) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if real := i.vendored[path]; real != "" {
		path = real
	}
	if p := i.loaded[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s is of another module", path)
}

// systemPackage is what `go list` says of a package on some system.
type systemPackage struct {
	ImportPath, Dir string
	Standard        bool
	GoFiles         []string
	ImportMap       map[string]string
	Error           *struct{ Err string }
}

// listFor lists packages and what they import, dependencies first.
func listFor(t *testing.T, goos, goarch string, roots ...string) []systemPackage {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-e", "-deps", "-json=ImportPath,Dir,Standard,GoFiles,ImportMap,Error"}, roots...)...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list for %s/%s: %v", goos, goarch, err)
	}
	var all []systemPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p systemPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
