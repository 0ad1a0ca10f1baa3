package graph

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// kql is a parsed query: the part of the Kusto language that finding one's own
// machines takes. It knows the table Resources and the operators where,
// project, extend, order by, limit and count; conditions of ==, !=, =~, !~,
// has, has_cs, contains, startswith, endswith, in, in~ and their negations,
// and, or, not; the functions tolower, isempty, isnotempty, isnull, isnotnull,
// tostring; and paths such as tags['a b'] and properties.hardwareProfile.vmSize.
type kql struct {
	stages []func([]arm.Document) []arm.Document
}

func (q *kql) run(rows []arm.Document) []arm.Document {
	for _, stage := range q.stages {
		rows = stage(rows)
	}
	return rows
}

// parseKQL reads a query; the error says what it does not understand.
func parseKQL(text string) (*kql, error) {
	tokens, err := lexKQL(text)
	if err != nil {
		return nil, err
	}
	p := &kqlParser{tokens: tokens}
	if !strings.EqualFold(p.take(), "resources") {
		return nil, fmt.Errorf("the query must start with the table Resources, not %q", tokens[0])
	}
	q := &kql{}
	for p.peek() != "" {
		if t := p.take(); t != "|" {
			return nil, fmt.Errorf("expected | before %q", t)
		}
		stage, err := p.stage()
		if err != nil {
			return nil, err
		}
		q.stages = append(q.stages, stage)
	}
	return q, nil
}

var kqlToken = regexp.MustCompile(
	`^\s*(?:("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(!?in~|has_cs|has_any|![a-zA-Z_]+|==|!=|=~|!~|>=|<=)|([A-Za-z_$][A-Za-z0-9_$-]*)|([0-9]+(?:\.[0-9]+)?)|(.))`)

func lexKQL(text string) ([]string, error) {
	var tokens []string
	for strings.TrimSpace(text) != "" {
		m := kqlToken.FindString(text)
		if m == "" {
			return nil, fmt.Errorf("cannot read %q", text)
		}
		token := strings.TrimSpace(m)
		if token == "'" || token == `"` {
			return nil, fmt.Errorf("the quote at %q does not end", text)
		}
		tokens = append(tokens, token)
		text = text[len(m):]
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("the query is empty")
	}
	return tokens, nil
}

type kqlParser struct {
	tokens []string
	pos    int
}

func (p *kqlParser) peek() string {
	if p.pos < len(p.tokens) {
		return p.tokens[p.pos]
	}
	return ""
}

func (p *kqlParser) take() string {
	t := p.peek()
	p.pos++
	return t
}

// accept takes the token when it is the given word.
func (p *kqlParser) accept(word string) bool {
	if strings.EqualFold(p.peek(), word) {
		p.pos++
		return true
	}
	return false
}

func (p *kqlParser) expect(word string) error {
	if !p.accept(word) {
		return fmt.Errorf("expected %q, found %q", word, p.peek())
	}
	return nil
}

// value computes something from a row.
type value func(arm.Document) any

// stage reads one operator.
func (p *kqlParser) stage() (func([]arm.Document) []arm.Document, error) {
	switch op := strings.ToLower(p.take()); op {
	case "where":
		cond, err := p.or()
		if err != nil {
			return nil, err
		}
		return func(rows []arm.Document) []arm.Document {
			out := []arm.Document{}
			for _, r := range rows {
				if yes, _ := cond(r).(bool); yes {
					out = append(out, r)
				}
			}
			return out
		}, nil
	case "project", "extend":
		return p.columns(op == "project")
	case "limit", "take":
		n, err := strconv.Atoi(p.take())
		if err != nil {
			return nil, fmt.Errorf("%s takes a number: %w", op, err)
		}
		return func(rows []arm.Document) []arm.Document { return rows[:min(n, len(rows))] }, nil
	case "order", "sort":
		// Rows come by ID; any other order makes no difference to a reader that takes all pages.
		for p.peek() != "|" && p.peek() != "" {
			p.take()
		}
		return func(rows []arm.Document) []arm.Document { return rows }, nil
	case "count":
		return func(rows []arm.Document) []arm.Document { return []arm.Document{{"Count": len(rows)}} }, nil
	default:
		return nil, fmt.Errorf("the operator %q is not supported", op)
	}
}

// columns reads name = expression, ...
func (p *kqlParser) columns(only bool) (func([]arm.Document) []arm.Document, error) {
	type column struct {
		name string
		v    value
	}
	var cols []column
	for {
		name := ""
		if p.pos+1 < len(p.tokens) && p.tokens[p.pos+1] == "=" {
			name = p.take()
			p.take()
		}
		start := p.pos
		v, err := p.primary()
		if err != nil {
			return nil, err
		}
		name = cmp.Or(name, columnName(p.tokens[start:p.pos]))
		cols = append(cols, column{name, v})
		if !p.accept(",") {
			break
		}
	}
	return func(rows []arm.Document) []arm.Document {
		out := make([]arm.Document, len(rows))
		for i, r := range rows {
			d := arm.Document{}
			if !only {
				for k, v := range r {
					d[k] = v
				}
			}
			for _, c := range cols {
				d[c.name] = c.v(r)
			}
			out[i] = d
		}
		return out
	}, nil
}

// columnName is the name of a column that was given none: a path joined by underscores.
func columnName(tokens []string) string {
	var parts []string
	for _, t := range tokens {
		if alphanumeric(t[0]) || t[0] == '_' || t[0] == '$' {
			parts = append(parts, t)
		}
	}
	return strings.Join(parts, "_")
}

func (p *kqlParser) or() (value, error) {
	left, err := p.and()
	for err == nil && p.accept("or") {
		var right value
		l := left
		right, err = p.and()
		left = func(d arm.Document) any { return l(d) == true || right(d) == true }
	}
	return left, err
}

func (p *kqlParser) and() (value, error) {
	left, err := p.comparison()
	for err == nil && p.accept("and") {
		var right value
		l := left
		right, err = p.comparison()
		left = func(d arm.Document) any { return l(d) == true && right(d) == true }
	}
	return left, err
}

// comparison reads one condition.
func (p *kqlParser) comparison() (value, error) {
	if strings.EqualFold(p.peek(), "not") {
		p.take()
		if err := p.expect("("); err != nil {
			return nil, err
		}
		inner, err := p.or()
		if err != nil {
			return nil, err
		}
		return func(d arm.Document) any { return inner(d) != true }, p.expect(")")
	}
	if p.accept("(") {
		inner, err := p.or()
		if err != nil {
			return nil, err
		}
		return inner, p.expect(")")
	}
	left, err := p.primary()
	if err != nil {
		return nil, err
	}
	return p.compare(left)
}

// compare reads the operator and the right side of a condition; without one
// the left side is the condition.
func (p *kqlParser) compare(left value) (value, error) {
	op := strings.ToLower(p.peek())
	test, negate := kqlTest(op)
	if test == nil {
		switch op {
		case "", "|", ")", "and", "or", ",":
			return left, nil
		}
		return nil, fmt.Errorf("the comparison %q is not supported", op)
	}
	p.take()
	right, err := p.operands(op)
	if err != nil {
		return nil, err
	}
	return func(d arm.Document) any {
		for _, r := range right {
			if test(kqlText(left(d)), kqlText(r(d))) {
				return !negate
			}
		}
		return negate
	}, nil
}

// kqlTest is the test of an operator, nil where there is none, and whether the operator
// holds where the test does not.
func kqlTest(op string) (test func(a, b string) bool, negate bool) {
	switch op {
	case "in", "!in":
		return kqlTests["=="], op != "in"
	case "in~", "!in~":
		return kqlTests["=~"], op != "in~"
	case "!=", "!~":
		return kqlTests[op], false
	}
	plain, negate := strings.CutPrefix(op, "!")
	return kqlTests[plain], negate
}

// operands reads the right side of an operator: one value, or a list in parentheses.
func (p *kqlParser) operands(op string) ([]value, error) {
	var right []value
	list := strings.Contains(op, "in") && p.accept("(") && !strings.Contains(op, "contains")
	for {
		v, err := p.primary()
		if err != nil {
			return nil, err
		}
		right = append(right, v)
		if !list || !p.accept(",") {
			break
		}
	}
	if list {
		return right, p.expect(")")
	}
	return right, nil
}

// kqlTests are the comparisons of two texts.
var kqlTests = map[string]func(a, b string) bool{
	"==":         func(a, b string) bool { return a == b },
	"!=":         func(a, b string) bool { return a != b },
	"=~":         strings.EqualFold,
	"!~":         func(a, b string) bool { return !strings.EqualFold(a, b) },
	"has_cs":     hasTerm,
	"has":        func(a, b string) bool { return hasTerm(strings.ToLower(a), strings.ToLower(b)) },
	"contains":   func(a, b string) bool { return strings.Contains(strings.ToLower(a), strings.ToLower(b)) },
	"startswith": func(a, b string) bool { return strings.HasPrefix(strings.ToLower(a), strings.ToLower(b)) },
	"endswith":   func(a, b string) bool { return strings.HasSuffix(strings.ToLower(a), strings.ToLower(b)) },
}

// hasTerm says whether a text contains another as whole terms: no letter or
// digit may touch it on either side.
func hasTerm(text, term string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], term)
		if i < 0 || term == "" {
			return false
		}
		start, end := from+i, from+i+len(term)
		if (start == 0 || !alphanumeric(text[start-1])) && (end == len(text) || !alphanumeric(text[end])) {
			return true
		}
		from = start + 1
	}
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// kqlText is a value as a text; objects are written out, so that has finds keys in them.
func kqlText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case arm.Document:
		var b strings.Builder
		for k, e := range v {
			fmt.Fprintf(&b, "%q:%q,", k, kqlText(e))
		}
		return b.String()
	}
	return fmt.Sprint(v)
}

// kqlFunctions are those of one argument.
var kqlFunctions = map[string]func(any) any{
	"tolower":    func(v any) any { return strings.ToLower(kqlText(v)) },
	"toupper":    func(v any) any { return strings.ToUpper(kqlText(v)) },
	"tostring":   func(v any) any { return kqlText(v) },
	"isempty":    func(v any) any { return kqlText(v) == "" },
	"isnotempty": func(v any) any { return kqlText(v) != "" },
	"isnull":     func(v any) any { return v == nil },
	"isnotnull":  func(v any) any { return v != nil },
}

// primary reads a literal, a function call or a path.
func (p *kqlParser) primary() (value, error) {
	t := p.take()
	switch {
	case t == "":
		return nil, fmt.Errorf("the query ends where a value should be")
	case t[0] == '\'' || t[0] == '"':
		literal := unquoteKQL(t)
		return func(arm.Document) any { return literal }, nil
	case t[0] >= '0' && t[0] <= '9', t == "true", t == "false":
		return func(arm.Document) any { return t }, nil
	case !alphanumeric(t[0]) && t[0] != '_' && t[0] != '$':
		return nil, fmt.Errorf("expected a value, found %q", t)
	}
	if f, ok := kqlFunctions[strings.ToLower(t)]; ok && p.accept("(") {
		arg, err := p.primary()
		if err != nil {
			return nil, err
		}
		return func(d arm.Document) any { return f(arg(d)) }, p.expect(")")
	}
	keys := []string{t}
	for {
		switch {
		case p.accept("."):
			keys = append(keys, p.take())
		case p.accept("["):
			k := p.take()
			if k == "" || k[0] != '\'' && k[0] != '"' {
				return nil, fmt.Errorf("expected a quoted name in brackets, found %q", k)
			}
			keys = append(keys, unquoteKQL(k))
			if err := p.expect("]"); err != nil {
				return nil, err
			}
		default:
			return func(d arm.Document) any { return arm.At(d, keys...) }, nil
		}
	}
}

// unquoteKQL takes the quotes off a literal.
func unquoteKQL(t string) string {
	return strings.NewReplacer(`\'`, `'`, `\"`, `"`, `\\`, `\`).Replace(t[1 : len(t)-1])
}
