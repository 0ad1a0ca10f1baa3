package devices

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"k8s.io/dynamic-resource-allocation/cel"

	resourcev1 "k8s.io/api/resource/v1"
)

// traits are what is known of a device, as selectors see it.
type traits struct {
	compiled *cel.Cache
	// forms are what the device may be; only what all of them answer is known.
	forms []cel.Device
	// partial says that the device has more attributes than the forms.
	partial bool

	mu sync.Mutex
	// answers are those of Meets so far, at most mostExpressions.
	answers map[string]answer
}

type answer struct {
	meets   bool
	unknown string
}

// Meets implements fleet.DeviceTraits.
func (t *traits) Meets(selector string) (meets bool, unknown string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, known := t.answers[selector]
	if !known {
		if t.answers == nil || len(t.answers) >= mostExpressions {
			t.answers = map[string]answer{}
		}
		a.meets, a.unknown = t.evaluate(selector)
		t.answers[selector] = a
	}
	return a.meets, a.unknown
}

func (t *traits) evaluate(selector string) (meets bool, unknown string) {
	compiled := t.compiled.GetOrCompile(selector)
	if compiled.Error != nil {
		return false, fmt.Sprintf("the selector %s cannot be read: %s", selector, firstLine(compiled.Error.Error()))
	}
	for i, form := range t.forms {
		// The library bounds what an expression costs.
		found, _, err := compiled.DeviceMatches(context.Background(), form)
		switch {
		case err != nil && t.partial:
			return false, fmt.Sprintf("whether a GPU will meet %s is not known before its machine runs: %s", selector, firstLine(err.Error()))
		case err != nil:
			return false, fmt.Sprintf("the selector %s fails on a device of %s: %s", selector, form.Driver, firstLine(err.Error()))
		case i > 0 && found != meets:
			return false, fmt.Sprintf("whether a GPU will meet %s is not known before its machine runs: "+
				"its memory is about %s", selector, memoryOf(form))
		}
		meets = found
	}
	if t.partial {
		if asked := t.asksWhetherThere(&compiled); asked != "" {
			return false, fmt.Sprintf("whether a GPU will meet %s is not known before its machine runs: it asks %s", selector, asked)
		}
	}
	return meets, ""
}

func memoryOf(d cel.Device) string {
	memory := d.Capacity["memory"].Value
	return memory.String()
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// asksWhetherThere says which attribute a selector asks whether it is there, and does not
// fail without, though the device may have it; empty for none.
func (t *traits) asksWhetherThere(c *cel.CompilationResult) string {
	parsed, issues := c.Environment.Compile(c.Expression)
	if issues.Err() != nil {
		return "something that cannot be read"
	}
	asked := ""
	ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch {
		case asked != "":
		case e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly():
			if name := e.AsSelect().FieldName(); !t.has(name) {
				asked = "whether " + name + " is there"
			}
		case e.Kind() == ast.CallKind && mayPassOver(e.AsCall()):
			asked = "whether something is there"
		case e.Kind() == ast.ComprehensionKind && e.AsComprehension().IterRange().Kind() != ast.ListKind:
			asked = "for all that is there"
		}
	}))
	return asked
}

// has reports whether all forms have an attribute or a capacity of this name.
func (t *traits) has(name string) bool {
	for _, form := range t.forms {
		_, attribute := form.Attributes[resourcev1.QualifiedName(name)]
		_, capacity := form.Capacity[resourcev1.QualifiedName(name)]
		if !attribute && !capacity {
			return false
		}
	}
	return true
}

// mayPassOver reports whether a call has an answer although what it asks of is not there.
func mayPassOver(call ast.CallExpr) bool {
	switch call.FunctionName() {
	case operators.OptIndex, operators.OptSelect:
		return true
	case operators.In:
		return call.Args()[1].Kind() != ast.ListKind
	case "size":
		return true
	}
	return false
}
