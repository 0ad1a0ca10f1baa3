package mutants

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// Kind is a way to change code. Each takes one thing away that was written on purpose.
type Kind string

// The ways to change code.
const (
	// Operand drops one side of && or ||.
	Operand Kind = "operand"
	// Never makes an if without else that is never taken.
	Never Kind = "never"
	// Boundary turns < into <=, > into >=, and the other way round.
	Boundary Kind = "boundary"
	// Statement drops a call whose result is not used, or an assignment that only updates.
	Statement Kind = "statement"
	// Field drops a field of a struct literal.
	Field Kind = "field"
)

// Mutant is one change of one file.
type Mutant struct {
	// File is the path below the root of the module, with slashes.
	File string
	// Func is the function that is changed, with its receiver's type where it is a method.
	Func string
	// Kind says how, Text what is taken away, on one line.
	Kind Kind
	Text string
	// Line is where the change begins, from 1. It is no part of the name, since it moves.
	Line int

	// start and end bound the bytes of the file that replacement takes the place of.
	start, end  int
	replacement string
	// edits make the change depend on a switch; none where only replacement will do.
	edits []edit
	// literal is that of a field.
	literal *literal
}

// Name identifies the mutant as long as the changed code stays as it is.
func (m Mutant) Name() string {
	return fmt.Sprintf("%s %s %s %s", m.File, m.Func, m.Kind, m.Text)
}

// Apply returns the source of the mutant's file with its change. The source must be the
// one in which the mutant was found.
func (m Mutant) Apply(source []byte) []byte {
	out := make([]byte, 0, len(source)+len(m.replacement))
	out = append(out, source[:m.start]...)
	out = append(out, m.replacement...)
	return append(out, source[m.end:]...)
}

// Find returns all mutants of the package in folder dir below root, in the order of the
// files' names and lines. Tests and generated files have none.
func Find(root, dir string) ([]Mutant, error) {
	paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var out []Mutant
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.Base(path), "zz_generated") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		found, err := parse(filepath.ToSlash(rel), source)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("folder %s has no code that can be changed: name a package of this module", dir)
	}
	return out, nil
}

// parse returns the mutants of one file. Where two would have one name, the later get a
// number.
func parse(file string, source []byte) ([]Mutant, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	v := &visitor{file: file, source: source, set: set, addressed: map[*ast.CompositeLit]token.Pos{}, clauses: map[ast.Stmt]bool{}}
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			v.function = funcName(f)
			ast.Inspect(f.Body, v.visit)
		}
	}
	seen := map[string]int{}
	for i := range v.found {
		name := v.found[i].Name()
		if seen[name]++; seen[name] > 1 {
			v.found[i].Text += fmt.Sprintf(" #%d", seen[name])
		}
	}
	return v.found, nil
}

func funcName(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}
