package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gopackages "golang.org/x/tools/go/packages"
)

// testSupport are the packages that tests use and no program does, each with what it is
// for. Their functions are alive when a test reaches them.
func testSupport() map[string]string {
	return map[string]string{
		"bench/differential":                      "compares nap with Karpenter's engine on generated clusters, and shrinks what fails",
		"internal/armsim":                         "the simulated Azure, which tests hold in their hands and change",
		"internal/cli/clitest":                    "runs commands and compares what they print",
		"internal/controller/metrics/metricstest": "reads a metric",
		"internal/lab/labtest":                    "starts labs for tests",
		"internal/pages":                          "finds the commands that pages show, for the tests which run them",
		"internal/planner/plannertest":            "runs the tests of the planner's packages",
		"internal/planner/verify":                 "an independent verifier of plans: every test of the planner asks it",
	}
}

// testOnly are functions of production code that no program calls, each with the reason
// why tests of other packages need it there.
func testOnly() map[string]string {
	return map[string]string{
		"bench/fleets.Cluster.Nodes":            "says how large a generated cluster is",
		"internal/lab/systemnode.Substitutions": "the closed list of what differs between a container and its process, which a story checks",
		"internal/planner/binpack.Solve":        "packs with all searches, as the packer's tests and benchmarks do",
	}
}

// library are the packages whose exported functions others may call, each with its callers.
func library() map[string]string {
	return map[string]string{
		"api": "the Go types of the custom resources are for every client of the cluster",
	}
}

// TestNoFunctionIsDead holds that programs, or what supports tests, reach every function
// of production code, and tests every function of test code. A function that only its own
// test calls is dead.
//
// Reach is an upper bound of calls: a function is reached when a reached declaration
// names it. A method is reached also when its type is and the type implements an interface that
// has it, because interfaces of other modules call it out of sight.
func TestNoFunctionIsDead(t *testing.T) {
	loaded, err := gopackages.Load(&gopackages.Config{Mode: gopackages.LoadSyntax, Dir: "../..", Tests: true}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	r := newReach()
	for _, p := range loaded {
		for _, e := range p.Errors {
			t.Fatal(e)
		}
		r.declare(p)
	}
	r.implement(loaded)
	programs := slices.Concat(r.programs, labReferences(t, r))
	all := r.from(slices.Concat(programs, r.tests))
	support := slices.Clone(programs)
	for key, f := range r.functions {
		if all[key] && isBelow(f.room, testSupport()) {
			support = append(support, key)
		}
	}
	production := r.from(support)
	allowed := testOnly()
	for _, key := range slices.Sorted(maps.Keys(r.functions)) {
		room := r.functions[key].room
		switch {
		case isBelow(room, library()) && r.functions[key].exported:
		case !all[key]:
			t.Errorf("%s: nothing calls %s; delete it", r.functions[key].at, key)
		case !production[key] && !r.functions[key].test && allowed[key] == "":
			t.Errorf("%s: only tests call %s; delete it, or move it to a test file", r.functions[key].at, key)
		case production[key] && allowed[key] != "":
			t.Errorf("%s: %s need not be allowed any more (%s)", r.functions[key].at, key, allowed[key])
		}
		delete(allowed, key)
	}
	for key := range allowed {
		t.Errorf("%s is allowed to be called by tests only but does not exist", key)
	}
}

func isBelow(room string, rooms map[string]string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(rooms)), func(r string) bool { return within(room, r) })
}

// reach is the graph of which declaration names which. Declarations are told apart by package path,
// receiver and name, because packages are loaded with and without their tests.
type reach struct {
	// names are the declarations that a declaration names.
	names map[string]map[string]bool
	// functions are those that people wrote.
	functions map[string]function
	// programs and tests are where execution begins.
	programs, tests []string
	// types are the named types of the module, by key; the same type more than once.
	types map[string][]*types.Named
	// byName are the methods that count as called on every type that has them: those of
	// generic interfaces, and those for which package errors asks.
	byName map[string]bool
}

// function is a declared function or method.
type function struct {
	// room is the package's path within the module, at the position in the source.
	room, at string
	// test says that it stands in a test file.
	test bool
	// exported says that other modules can name it.
	exported bool
}

func newReach() *reach {
	return &reach{
		names: map[string]map[string]bool{}, functions: map[string]function{}, types: map[string][]*types.Named{},
		byName: map[string]bool{"Unwrap": true, "Is": true, "As": true},
	}
}

// keyOf names a declaration of the module that outlives a function's body; "" for others.
func keyOf(o types.Object) string {
	if o == nil || o.Pkg() == nil || !strings.HasPrefix(o.Pkg().Path()+"/", module) {
		return ""
	}
	path := strings.TrimPrefix(strings.TrimSuffix(o.Pkg().Path(), "_test"), module)
	if f, ok := o.(*types.Func); ok {
		f = f.Origin()
		recv := f.Signature().Recv()
		if recv == nil {
			return path + "." + f.Name()
		}
		of := recv.Type()
		if p, ok := of.(*types.Pointer); ok {
			of = p.Elem()
		}
		if named, ok := of.(*types.Named); ok {
			return path + "." + named.Obj().Name() + "." + f.Name()
		}
		return ""
	}
	if o.Parent() == o.Pkg().Scope() {
		return path + "." + o.Name()
	}
	return ""
}

// declare adds a package's declarations with what they name.
func (r *reach) declare(p *gopackages.Package) {
	if strings.HasSuffix(p.PkgPath, ".test") {
		return
	}
	for _, file := range p.Syntax {
		test := strings.HasSuffix(p.Fset.Position(file.Pos()).Filename, "_test.go")
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				r.function(p, d, test, ast.IsGenerated(file))
			case *ast.GenDecl:
				for _, s := range d.Specs {
					r.spec(p, s)
				}
			}
		}
	}
}

func (r *reach) function(p *gopackages.Package, d *ast.FuncDecl, test, generated bool) {
	key := keyOf(p.TypesInfo.Defs[d.Name])
	if d.Name.Name == "init" || d.Name.Name == "_" {
		key = keyOf(p.TypesInfo.Defs[d.Name]) + p.Fset.Position(d.Pos()).String()
		r.programs = append(r.programs, key)
	}
	r.add(p, key, d)
	switch {
	case d.Recv == nil && p.Name == "main" && d.Name.Name == "main":
		r.programs = append(r.programs, key)
	case d.Recv == nil && test && isEntry(d.Name.Name):
		r.tests = append(r.tests, key)
	case !generated:
		r.functions[key] = function{
			room: strings.TrimPrefix(p.PkgPath, module), at: p.Fset.Position(d.Pos()).String(),
			test: test, exported: d.Name.IsExported(),
		}
	}
}

// isEntry reports whether `go test` calls a function of this name.
func isEntry(name string) bool {
	for _, prefix := range []string{"Test", "Benchmark", "Fuzz", "Example"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func (r *reach) spec(p *gopackages.Package, s ast.Spec) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		key := keyOf(p.TypesInfo.Defs[s.Name])
		r.add(p, key, s)
		if named, ok := p.TypesInfo.Defs[s.Name].Type().(*types.Named); ok {
			r.types[key] = append(r.types[key], named)
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			key := keyOf(p.TypesInfo.Defs[name])
			if name.Name == "_" { // an assertion of a type, which uses nothing
				continue
			}
			r.add(p, key, s)
		}
	}
}

// add notes what a declaration names.
func (r *reach) add(p *gopackages.Package, key string, n ast.Node) {
	to := r.names[key]
	if to == nil {
		to = map[string]bool{}
		r.names[key] = to
	}
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if used := keyOf(p.TypesInfo.Uses[id]); used != "" {
				to[used] = true
			}
		}
		return true
	})
}

// implement lets every type reach its methods that an interface has.
func (r *reach) implement(loaded []*gopackages.Package) {
	interfaces := map[*types.Interface]bool{} // whether generic
	seen := map[*types.Package]bool{}
	var visit func(p *types.Package)
	visit = func(p *types.Package) {
		if seen[p] {
			return
		}
		seen[p] = true
		for _, name := range p.Scope().Names() {
			if o, ok := p.Scope().Lookup(name).(*types.TypeName); ok {
				addInterface(interfaces, o.Type())
			}
		}
		for _, imported := range p.Imports() {
			visit(imported)
		}
	}
	for _, p := range loaded {
		visit(p.Types)
		for _, tv := range p.TypesInfo.Types {
			if tv.IsType() {
				addInterface(interfaces, tv.Type)
			}
		}
	}
	byMethod := map[string][]*types.Interface{}
	for i, generic := range interfaces {
		for m := range i.Methods() {
			if byMethod[m.Name()] = append(byMethod[m.Name()], i); generic {
				r.byName[m.Name()] = true
			}
		}
	}
	for key, same := range r.types {
		for _, named := range same {
			r.implements(key, named, byMethod)
		}
	}
}

func addInterface(to map[*types.Interface]bool, t types.Type) {
	if i, ok := t.Underlying().(*types.Interface); ok && i.NumMethods() > 0 && i.IsMethodSet() {
		named, ok := t.(*types.Named)
		to[i] = to[i] || ok && named.TypeParams().Len() > 0
	}
}

// implements lets a type reach those of its methods, promoted ones included, that an
// interface which it implements has. Of a generic type or interface all methods of such
// names count.
func (r *reach) implements(key string, named *types.Named, byMethod map[string][]*types.Interface) {
	if types.IsInterface(named) {
		return
	}
	pointer := types.NewPointer(named)
	methods := types.NewMethodSet(pointer)
	for i := range methods.Len() {
		m := methods.At(i).Obj()
		to := keyOf(m)
		if to == "" || r.names[key][to] {
			continue
		}
		faces := byMethod[m.Name()]
		if r.byName[m.Name()] || len(faces) > 0 && named.TypeParams().Len() > 0 ||
			slices.ContainsFunc(faces, func(i *types.Interface) bool { return types.Implements(pointer, i) }) {
			r.names[key][to] = true
		}
	}
}

// from is everything that can be reached from the roots.
func (r *reach) from(roots []string) map[string]bool {
	out := map[string]bool{}
	for len(roots) > 0 {
		key := roots[len(roots)-1]
		roots = roots[:len(roots)-1]
		if out[key] {
			continue
		}
		out[key] = true
		for to := range r.names[key] {
			roots = append(roots, to)
			// A method's receiver exists where it is called.
			if at := strings.LastIndexByte(to, '.'); r.types[to[:at]] != nil {
				roots = append(roots, to[:at])
			}
		}
	}
	return out
}

// labReferences are the functions that the module of the lab names. It is read, not
// loaded, since it links Kubernetes: what it selects from a package, and methods of
// every type by their names.
func labReferences(t *testing.T, r *reach) []string {
	t.Helper()
	selected, names := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir("../../lab", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		imports := map[string]string{}
		for _, i := range file.Imports {
			full := strings.Trim(i.Path.Value, `"`)
			name := full[strings.LastIndexByte(full, '/')+1:]
			if i.Name != nil {
				name = i.Name.Name
			}
			imports[name] = strings.TrimPrefix(full, module)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				names[s.Sel.Name] = true
				if x, ok := s.X.(*ast.Ident); ok {
					selected[imports[x.Name]+"."+s.Sel.Name] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for key := range r.names {
		method := strings.Count(key[strings.LastIndexByte(key, '/')+1:], ".") == 2
		if selected[key] || method && names[key[strings.LastIndexByte(key, '.')+1:]] && ast.IsExported(key[strings.LastIndexByte(key, '.')+1:]) {
			out = append(out, key)
		}
	}
	return out
}
