package mutants

import (
	"cmp"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// edit puts text in the place of some bytes of a file, or between two. It adds no line, so
// that the compiler's complaints name the lines of the file. A # stands for the number of
// the mutant.
type edit struct {
	start, end int
	text       string
	// closes marks the second half of what is put around something.
	closes bool
}

// literal is a struct literal whose fields are assigned one by one, each unless its mutant
// is on. It works for all of them or for none.
type literal struct {
	edits []edit
}

// around returns the edits that put text before and after a node.
func (v *visitor) around(n ast.Node, before, after string) []edit {
	from, to := v.offset(n.Pos()), v.offset(n.End())
	return []edit{{start: from, end: from, text: before}, {start: to, end: to, text: after, closes: true}}
}

// guarded returns the edits by which a side of && or || counts unless the mutant is on.
func (v *visitor) guarded(op token.Token, side ast.Expr) []edit {
	switch {
	case op == token.LAND && sideEffects(side):
		return v.around(side, "(mutantOn(#) || (", "))")
	case op == token.LAND:
		return v.around(side, "(mutantIs(#) || (", ") || mutantMet(#))")
	case sideEffects(side):
		return v.around(side, "(mutantOff(#) && (", "))")
	default:
		return v.around(side, "(!mutantIs(#) && (", ") && !mutantMet(#))")
	}
}

// compared returns the edits that make a call of a comparison.
func (v *visitor) compared(n *ast.BinaryExpr) []edit {
	name := map[token.Token]string{
		token.LSS: "mutantLess", token.LEQ: "mutantLessEqual", token.GTR: "mutantMore", token.GEQ: "mutantMoreEqual",
	}[n.Op]
	at := v.offset(n.OpPos)
	return append(v.around(n, name+"(#, ", ")"), edit{start: at, end: at + len(n.Op.String()), text: ","})
}

// dropped returns the edits by which a statement runs unless the mutant is on; none for one
// in the head of another, and for a panic, without which the function might not end in a
// return.
func (v *visitor) dropped(n ast.Stmt) []edit {
	if v.clauses[n] {
		return nil
	}
	if e, ok := n.(*ast.ExprStmt); ok {
		if id, ok := e.X.(*ast.CallExpr).Fun.(*ast.Ident); ok && id.Name == "panic" {
			return nil
		}
	}
	return v.around(n, "if mutantOff(#) { ", " }")
}

// assigned returns the edits by which a field of a literal is assigned unless its mutant is
// on.
func (v *visitor) assigned(pair *ast.KeyValueExpr) []edit {
	from, colon, to := v.offset(pair.Pos()), v.offset(pair.Colon), v.offset(pair.End())
	field := "mutated." + v.text(pair.Key)
	before, after := "if mutantOff(#) { "+field+" =", " }"
	if !sideEffects(pair.Value) {
		before, after = "if !mutantIs(#) { "+field+" =", "; mutantSet(#, &"+field+") }"
	}
	edits := []edit{{start: from, end: colon + 1, text: before}, {start: to, end: to, text: after, closes: true}}
	if to < len(v.source) && v.source[to] == ',' {
		edits = append(edits, edit{start: to, end: to + 1, text: ";"})
	}
	return edits
}

// literal returns the edits that make a literal a function which assigns fields.
func (v *visitor) literal(n *ast.CompositeLit) *literal {
	from, maker := v.offset(n.Pos()), "mutantValue"
	if and, ok := v.addressed[n]; ok {
		from, maker = v.offset(and), "mutantPointer"
	}
	brace := v.offset(n.Rbrace)
	return &literal{edits: []edit{
		{start: from, end: v.offset(n.Lbrace) + 1, text: maker + "(func(mutated *" + v.text(n.Type) + ") {"},
		{start: brace, end: brace + 1, text: "})"},
	}}
}

func (v *visitor) offset(p token.Pos) int { return v.set.Position(p).Offset }

// sideEffects says whether it may matter that an expression is evaluated, whatever its
// value. Calls do, except of what is known only to look.
func sideEffects(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			found = found || !onlyLooks(n)
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW
		}
		return !found
	})
	return found
}

// onlyLooks says whether a function is known to have no effect of its own.
func onlyLooks(call *ast.CallExpr) bool {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return slices.Contains([]string{"len", "cap", "min", "max", "string", "int", "int64", "float64"}, f.Name)
	case *ast.SelectorExpr:
		id, ok := f.X.(*ast.Ident)
		return ok && slices.Contains([]string{"strings", "math", "cmp"}, id.Name) || slices.Contains([]string{
			"After", "Before", "Clone", "Contains", "ContainsFunc", "Equal", "Err", "Index", "IndexFunc", "Is", "IsZero", "Sub",
		}, f.Sel.Name)
	default:
		return false
	}
}

// instrument returns a file's source with a switch for each of the mutants. They are of
// that file, by number.
func instrument(source []byte, all map[int]Mutant) []byte {
	var edits []edit
	done := map[*literal]bool{}
	for _, n := range slices.Sorted(maps.Keys(all)) {
		m := all[n]
		if m.literal != nil && !done[m.literal] {
			done[m.literal] = true
			edits = append(edits, m.literal.edits...)
		}
		for _, e := range m.edits {
			e.text = strings.ReplaceAll(e.text, "#", strconv.Itoa(n))
			edits = append(edits, e)
		}
	}
	var out []byte
	at := 0
	for _, e := range inOrder(edits) {
		out = append(out, source[at:e.start]...)
		out = append(out, e.text...)
		at = e.end
	}
	return append(out, source[at:]...)
}

// inOrder sorts edits by their place. Those of an outer expression come before those of an
// inner one, so at one place the last that opened closes first.
func inOrder(edits []edit) []edit {
	type numbered struct {
		edit
		n int
	}
	all := make([]numbered, len(edits))
	for i, e := range edits {
		all[i] = numbered{e, i}
		if e.closes {
			all[i].n = -i
		}
	}
	slices.SortFunc(all, func(a, b numbered) int {
		if a.start == b.start && a.closes != b.closes {
			if a.closes {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.n, b.n))
	})
	out := make([]edit, len(all))
	for i, e := range all {
		out[i] = e.edit
	}
	return out
}
