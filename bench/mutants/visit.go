package mutants

import (
	"go/ast"
	"go/token"
	"strings"
)

// visitor collects the mutants of one file.
type visitor struct {
	file     string
	source   []byte
	set      *token.FileSet
	function string
	found    []Mutant
	// addressed are the literals behind a & and where that stands.
	addressed map[*ast.CompositeLit]token.Pos
	// clauses are the statements within the heads of others, where no other stands.
	clauses map[ast.Stmt]bool
}

// visit looks at one node of the syntax tree.
func (v *visitor) visit(n ast.Node) bool {
	v.note(n)
	switch n := n.(type) {
	case *ast.BinaryExpr:
		v.binary(n)
	case *ast.IfStmt:
		// Who passes an error on is not asked for a test of each.
		if n.Else == nil && v.text(n.Cond) != "err != nil" {
			v.replace(Never, n.Cond, "false && ("+v.text(n.Cond)+")", v.guarded(token.LOR, n.Cond))
		}
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && !onlyTells(call) {
			v.replace(Statement, n, "", v.dropped(n))
		}
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE && n.Tok != token.ASSIGN {
			v.replace(Statement, n, "", v.dropped(n))
		}
		if n.Tok == token.ASSIGN && updates(n) {
			v.replace(Statement, n, "", v.dropped(n))
		}
	case *ast.CompositeLit:
		v.fields(n)
	}
	return true
}

// note remembers of a node what those within it cannot know.
func (v *visitor) note(n ast.Node) {
	switch n := n.(type) {
	case *ast.UnaryExpr:
		if made, ok := n.X.(*ast.CompositeLit); ok && n.Op == token.AND {
			v.addressed[made] = n.Pos()
		}
	case *ast.ForStmt:
		v.clauses[n.Init], v.clauses[n.Post] = true, true
	case *ast.IfStmt:
		v.clauses[n.Init] = true
	case *ast.SwitchStmt:
		v.clauses[n.Init] = true
	case *ast.TypeSwitchStmt:
		v.clauses[n.Init] = true
	case *ast.CommClause:
		v.clauses[n.Comm] = true
	}
}

// binary mutates logic and comparisons.
func (v *visitor) binary(n *ast.BinaryExpr) {
	if n.Op == token.LAND || n.Op == token.LOR {
		v.drop(n, n.X, n.Y)
		v.drop(n, n.Y, n.X)
	}
	if other := boundary(n.Op); other != "" {
		v.replace(Boundary, n, v.text(n.X)+" "+other+" "+v.text(n.Y), v.compared(n))
	}
}

// boundary is the comparison that differs from another one where both sides are equal;
// empty where there is none.
func boundary(op token.Token) string {
	return map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}[op]
}

// drop leaves of an expression with two operands only the one that is kept.
func (v *visitor) drop(whole *ast.BinaryExpr, dropped, kept ast.Expr) {
	v.add(Operand, whole, v.text(dropped), "("+v.text(kept)+")", v.guarded(whole.Op, dropped))
}

// fields drops each field of a struct literal. Keys that are no plain names are those of
// maps.
func (v *visitor) fields(n *ast.CompositeLit) {
	if _, isMap := n.Type.(*ast.MapType); isMap || n.Type == nil {
		return
	}
	whole := v.literal(n)
	for i, e := range n.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return
		}
		if _, named := pair.Key.(*ast.Ident); !named {
			return
		}
		end := pair.End()
		if i+1 < len(n.Elts) {
			end = n.Elts[i+1].Pos()
		}
		m := v.mutant(Field, pair, v.text(pair), "")
		m.edits, m.literal = v.assigned(pair), whole
		m.end = v.set.Position(end).Offset
		// A trailing comma of the last field would stand alone.
		if i+1 == len(n.Elts) {
			for rest := m.end; rest < len(v.source) && strings.ContainsRune(", \t\n", rune(v.source[rest])); rest++ {
				if v.source[rest] == ',' {
					m.end = rest + 1
					break
				}
			}
		}
		v.found = append(v.found, m)
	}
}

func (v *visitor) replace(kind Kind, n ast.Node, replacement string, edits []edit) {
	v.add(kind, n, v.text(n), replacement, edits)
}

func (v *visitor) add(kind Kind, n ast.Node, text, replacement string, edits []edit) {
	m := v.mutant(kind, n, text, replacement)
	m.edits = edits
	v.found = append(v.found, m)
}

func (v *visitor) mutant(kind Kind, n ast.Node, text, replacement string) Mutant {
	from, to := v.set.Position(n.Pos()), v.set.Position(n.End())
	return Mutant{File: v.file, Func: v.function, Kind: kind, Text: oneLine(text), Line: from.Line,
		start: from.Offset, end: to.Offset, replacement: replacement}
}

func (v *visitor) text(n ast.Node) string {
	return string(v.source[v.set.Position(n.Pos()).Offset:v.set.Position(n.End()).Offset])
}

// oneLine shortens code to what a reader needs to find it.
func oneLine(code string) string {
	const most = 80
	words := strings.Join(strings.Fields(code), " ")
	if r := []rune(words); len(r) > most {
		return string(r[:most]) + "…"
	}
	return words
}

// updates says whether an assignment sets what was there before: an element, a field or
// several of them. To drop the assignment of a plain variable often does not compile.
func updates(n *ast.AssignStmt) bool {
	for _, left := range n.Lhs {
		switch left.(type) {
		case *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
		default:
			return false
		}
	}
	return true
}

// onlyTells says whether a call writes a log and nothing else: no test should ask for it.
func onlyTells(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch selector.Sel.Name {
	case "Info", "Error", "Warn", "Debug":
		return true
	default:
		return false
	}
}
