package arch

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
	"testing"

	gopackages "golang.org/x/tools/go/packages"
)

// A type with more methods than mostMethods, or with more fields than mostFields
// and more methods than fewMethods, is several things in one.
const (
	mostMethods = 30
	mostFields  = 15
	fewMethods  = 6
)

// bigTypes are the types that may be bigger, each with the reason. There is none; more
// than three would mean that the law is wrong.
func bigTypes() map[string]string { return map[string]string{} }

// size is how many fields and methods a type has, promoted ones included.
type size struct{ fields, methods int }

func (s size) tooBig() bool {
	return s.methods > mostMethods || s.fields > mostFields && s.methods > fewMethods
}

// sizeOf counts what can be reached through a value of the type: its own fields and
// methods and those that embedding promotes. Types of other modules that are
// embedded count as one field, since they cannot be split here.
func sizeOf(named *types.Named) size {
	s := size{}
	if _, ok := named.Underlying().(*types.Interface); ok {
		return s
	}
	s.methods = ownMethods(named)
	countFields(named, map[*types.Named]bool{named: true}, &s)
	return s
}

func ownMethods(named *types.Named) int { return named.NumMethods() }

func countFields(named *types.Named, seen map[*types.Named]bool, s *size) {
	structure, ok := named.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for field := range structure.Fields() {
		s.fields++
		if !field.Embedded() {
			continue
		}
		t := field.Type()
		if p, ok := t.(*types.Pointer); ok {
			t = p.Elem()
		}
		inner, ok := t.(*types.Named)
		if !ok || seen[inner] || inner.Obj().Pkg() == nil || !strings.HasPrefix(inner.Obj().Pkg().Path(), strings.TrimSuffix(module, "/")) {
			continue
		}
		seen[inner] = true
		if !types.IsInterface(inner) {
			s.methods += ownMethods(inner)
		}
		countFields(inner, seen, s)
	}
}

func TestTypesAreSmall(t *testing.T) {
	loaded, err := gopackages.Load(&gopackages.Config{
		Mode: gopackages.LoadSyntax, // from source: export data leave out what only the package itself uses
		Dir:  "../..",
	}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	allowed := bigTypes()
	if len(allowed) > 3 {
		t.Errorf("%d types are allowed to be big, at most three may be", len(allowed))
	}
	type found struct {
		name string
		size
	}
	var all []found
	for _, p := range loaded {
		for _, e := range p.Errors {
			t.Fatal(e)
		}
		for _, name := range p.Types.Scope().Names() {
			object, ok := p.Types.Scope().Lookup(name).(*types.TypeName)
			if !ok || object.IsAlias() {
				continue
			}
			if named, ok := object.Type().(*types.Named); ok {
				all = append(all, found{strings.TrimPrefix(p.PkgPath, module) + "." + name, sizeOf(named)})
			}
		}
	}
	slices.SortFunc(all, func(a, b found) int { return b.methods - a.methods })
	for _, f := range all {
		what := fmt.Sprintf("%s has %d methods and %d fields", f.name, f.methods, f.fields)
		switch why, ok := allowed[f.name]; {
		case f.tooBig() && !ok:
			t.Errorf("%s: it is several things in one; split it along the fields that its methods use together", what)
		case ok && !f.tooBig():
			t.Errorf("%s: it need not be allowed any more (%s)", what, why)
		}
		delete(allowed, f.name)
	}
	for name := range allowed {
		t.Errorf("%s is allowed to be big but does not exist", name)
	}
	if len(all) > 0 {
		t.Logf("the biggest type: %s with %d methods", all[0].name, all[0].methods)
	}
}
