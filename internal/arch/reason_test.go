package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// TestEveryReasonConstantIsDocumented keeps the constants of reason.go and the
// documented list in step: a reason that a user can see has a meaning and a fix.
func TestEveryReasonConstantIsDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, info := range model.Reasons() {
		documented[string(info.Reason)] = true
	}
	f, err := parser.ParseFile(token.NewFileSet(), "../model/reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := 0
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != "Reason" {
			return true
		}
		constants++
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if !documented[value] {
			t.Errorf("%s = %q has no entry in model.Reasons(): say what it means and what to do", spec.Names[0].Name, value)
		}
		return true
	})
	if constants != len(documented) {
		t.Errorf("%d constants but %d documented reasons", constants, len(documented))
	}
}

// TestReasonsAreDefinedInOneFile finds model.Reason("...") conversions anywhere
// else: a reason made up on the spot is not documented and cannot be counted.
func TestReasonsAreDefinedInOneFile(t *testing.T) {
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Reason" {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "model" {
				if _, literal := call.Args[0].(*ast.BasicLit); literal {
					t.Errorf("%s: coins a reason; add a constant and its meaning to internal/model/reason.go", path)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
