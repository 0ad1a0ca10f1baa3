package cloudinit

import (
	"fmt"
	"slices"
	"strings"
)

// The tree of a script. A list runs its items in order; an item is a pipeline that runs
// when what went before it has succeeded (&&), failed (||) or ended (anything else).
type (
	list []item
	item struct {
		after      string // "&&", "||" or ""
		negated    bool
		pipe       []command
		background bool
	}
	// command is a simple command, or a condition.
	command struct {
		assigns   []assign
		words     []word
		redirects []redirect
		branches  []branch // of if and elif; else has no condition
		line      int
	}
	assign struct {
		name  string
		value word
	}
	branch struct {
		condition list // nil for else
		body      list
	}
	// redirect connects file number fd with a file, another number, or a text.
	redirect struct {
		fd   int
		op   string // > >> < >& <<
		word word
	}
	// word is what becomes one argument: texts, variables and outputs of commands.
	word     []wordPart
	wordPart struct {
		text     string
		variable string
		output   list // of $(...)
	}
)

// parser reads a script. The subset of the shell that it knows is what boothooks need:
// simple commands, pipelines, && || ; &, if, quotes, variables, $(...), redirections and
// here-documents. An error names the line.
type parser struct {
	src       string
	pos       int
	hereDocs  []*redirect // whose text begins after the next line break
	stripTabs []bool
	quoted    []bool // of hereDocs: their text is literal
	ends      []string
}

func parse(script string) (list, error) {
	p := &parser{src: strings.ReplaceAll(script, "\\\n", "")}
	out, err := p.list()
	if err == nil && p.pos < len(p.src) {
		err = p.errorf("unexpected %q", p.rest())
	}
	return out, err
}

func (p *parser) line() int { return 1 + strings.Count(p.src[:p.pos], "\n") }

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", p.line(), fmt.Sprintf(format, args...))
}

// rest is what is left of the line, for messages.
func (p *parser) rest() string {
	line, _, _ := strings.Cut(p.src[p.pos:], "\n")
	return line
}

// skip passes blanks and comments.
func (p *parser) skip() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t':
			p.pos++
		case '#':
			for p.pos < len(p.src) && p.src[p.pos] != '\n' {
				p.pos++
			}
		default:
			return
		}
	}
}

// accept passes one of the operators, the longest that is there.
func (p *parser) accept(operators ...string) string {
	p.skip()
	slices.SortFunc(operators, func(a, b string) int { return len(b) - len(a) })
	for _, op := range operators {
		if strings.HasPrefix(p.src[p.pos:], op) {
			p.pos += len(op)
			return op
		}
	}
	return ""
}

// breaks passes line breaks, with the here-documents that begin after them.
func (p *parser) breaks() error {
	for {
		p.skip()
		if p.pos >= len(p.src) || p.src[p.pos] != '\n' {
			return nil
		}
		p.pos++
		if err := p.readHereDocs(); err != nil {
			return err
		}
	}
}

func (p *parser) readHereDocs() error {
	for i, r := range p.hereDocs {
		var text strings.Builder
		for {
			if p.pos >= len(p.src) {
				return p.errorf("the here-document has no end %s", p.ends[i])
			}
			line, _, _ := strings.Cut(p.src[p.pos:], "\n")
			p.pos = min(p.pos+len(line)+1, len(p.src))
			if p.stripTabs[i] {
				line = strings.TrimLeft(line, "\t")
			}
			if line == p.ends[i] {
				break
			}
			text.WriteString(line + "\n")
		}
		r.word = word{{text: text.String()}}
		if !p.quoted[i] {
			inner := &parser{src: text.String()}
			w, err := inner.expandable("")
			if err != nil {
				return err
			}
			r.word = w
		}
	}
	p.hereDocs, p.stripTabs, p.quoted, p.ends = nil, nil, nil, nil
	return nil
}

// peekWord is the next word when it is plain, to look for keywords.
func (p *parser) peekWord() string {
	p.skip()
	end := p.pos
	for end < len(p.src) && strings.IndexByte(" \t\n;&|<>()'\"$`", p.src[end]) < 0 {
		end++
	}
	return p.src[p.pos:end]
}

var (
	closing = []string{"fi", "then", "else", "elif"}
	unknown = []string{"for", "while", "until", "case", "function", "select", "{", "[[", "((", "done", "do", "esac", "}"}
)

// list reads items up to the end or a keyword that closes a part of a condition.
func (p *parser) list() (list, error) {
	var out list
	after := ""
	for {
		if err := p.breaks(); err != nil {
			return nil, err
		}
		if p.pos >= len(p.src) || p.src[p.pos] == ')' || slices.Contains(closing, p.peekWord()) {
			if after != "" {
				return nil, p.errorf("nothing follows %s", after)
			}
			return out, nil
		}
		it, err := p.pipeline()
		if err != nil {
			return nil, err
		}
		it.after = after
		after = p.accept("&&", "||", ";", "&")
		if after == "&" {
			it.background = true
		}
		if after == "&" || after == ";" {
			after = ""
		}
		out = append(out, it)
	}
}

func (p *parser) pipeline() (item, error) {
	it := item{}
	if p.peekWord() == "!" {
		p.accept("!")
		it.negated = true
	}
	for {
		c, err := p.command()
		if err != nil {
			return it, err
		}
		it.pipe = append(it.pipe, c)
		p.skip()
		if strings.HasPrefix(p.src[p.pos:], "||") || p.accept("|") == "" {
			return it, nil
		}
		if err := p.breaks(); err != nil {
			return it, err
		}
	}
}

func (p *parser) command() (command, error) {
	key := p.peekWord()
	if slices.Contains(unknown, key) || strings.HasPrefix(p.src[p.pos:], "(") {
		return command{}, p.errorf("%q is more than the shell of a simulated machine can do; it has simple commands, pipelines and if", p.rest())
	}
	c := command{line: p.line()}
	var err error
	if key == "if" {
		p.accept("if")
		c.branches, err = p.branches()
	}
	for err == nil {
		p.skip()
		if p.pos >= len(p.src) || strings.IndexByte("\n;|)", p.src[p.pos]) >= 0 {
			break
		}
		if p.src[p.pos] == '&' && !strings.HasPrefix(p.src[p.pos:], "&>") {
			break
		}
		err = p.element(&c)
	}
	if err == nil && len(c.branches)+len(c.words)+len(c.assigns)+len(c.redirects) == 0 {
		err = p.errorf("a command is missing before %q", p.rest())
	}
	return c, err
}

// element reads a redirection, an assignment or a word of a command.
func (p *parser) element(c *command) error {
	if done, err := p.redirection(c); done || err != nil {
		return err
	}
	if len(c.branches) > 0 {
		return p.errorf("unexpected %q after fi", p.rest())
	}
	if name, _, ok := strings.Cut(p.peekWord(), "="); ok && len(c.words) == 0 && isName(name) {
		p.pos += len(name) + 1
		value, err := p.word()
		c.assigns = append(c.assigns, assign{name, value})
		return err
	}
	w, err := p.word()
	c.words = append(c.words, w)
	return err
}

func (p *parser) branches() ([]branch, error) {
	var out []branch
	for {
		condition, err := p.list()
		if err != nil {
			return nil, err
		}
		if p.peekWord() != "then" {
			return nil, p.errorf("want then, have %q", p.rest())
		}
		p.pos += len("then")
		body, err := p.list()
		if err != nil {
			return nil, err
		}
		out = append(out, branch{condition, body})
		key := p.peekWord()
		p.pos += len(key)
		switch key {
		case "elif":
			continue
		case "else":
			if body, err = p.list(); err != nil {
				return nil, err
			}
			out = append(out, branch{nil, body})
			if key = p.peekWord(); key == "fi" {
				p.pos += len(key)
			}
		}
		if key != "fi" {
			return nil, p.errorf("want fi, have %q", key)
		}
		return out, nil
	}
}

// redirection reads one, and says whether there was one.
func (p *parser) redirection(c *command) (bool, error) {
	start := p.pos
	for p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '9' {
		p.pos++
	}
	number := p.src[start:p.pos]
	if p.pos >= len(p.src) || strings.IndexByte("<>", p.src[p.pos]) < 0 && (number != "" || !strings.HasPrefix(p.src[p.pos:], "&>")) {
		p.pos = start
		return false, nil
	}
	op := p.accept("<<-", "<<", "<", ">>", ">&", ">|", ">", "&>")
	r := redirect{fd: 1, op: op}
	if strings.HasPrefix(op, "<") {
		r.fd = 0
	}
	if number != "" {
		r.fd = int(number[0] - '0')
	}
	p.skip()
	from := p.pos
	w, err := p.word()
	if err != nil {
		return true, err
	}
	r.word = w
	switch op {
	case ">|":
		r.op = ">"
	case "&>": // both outputs
		c.redirects = append(c.redirects, redirect{fd: 1, op: ">", word: w})
		r = redirect{fd: 2, op: ">&", word: word{{text: "1"}}}
	}
	c.redirects = append(c.redirects, r)
	if strings.HasPrefix(op, "<<") {
		last := &c.redirects[len(c.redirects)-1]
		last.op = "<<"
		// The list of redirections must not move while the text is awaited.
		c.redirects = slices.Grow(c.redirects, maxRedirects)
		p.hereDocs = append(p.hereDocs, &c.redirects[len(c.redirects)-1])
		p.stripTabs = append(p.stripTabs, op == "<<-")
		p.quoted = append(p.quoted, strings.ContainsAny(p.src[from:p.pos], `'"\`))
		p.ends = append(p.ends, w.literal())
	}
	return true, nil
}

// maxRedirects is more than a command of a boothook has.
const maxRedirects = 16

func (w word) literal() string {
	var out strings.Builder
	for _, part := range w {
		out.WriteString(part.text)
	}
	return out.String()
}

// word reads one argument with the shell's quoting.
func (p *parser) word() (word, error) {
	var out word
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; c {
		case ' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')':
			return p.someWord(out)
		case '\'':
			end := strings.IndexByte(p.src[p.pos+1:], '\'')
			if end < 0 {
				return nil, p.errorf("no closing '")
			}
			out = append(out, wordPart{text: p.src[p.pos+1 : p.pos+1+end]})
			p.pos += end + 2
		case '"':
			p.pos++
			inner, err := p.expandable(`"`)
			if err != nil {
				return nil, err
			}
			if len(inner) == 0 {
				inner = word{{}} // an empty argument is one
			}
			out = append(out, inner...)
		case '\\':
			if p.pos+1 >= len(p.src) {
				return nil, p.errorf("the script ends in a backslash")
			}
			out = append(out, wordPart{text: p.src[p.pos+1 : p.pos+2]})
			p.pos += 2
		case '$', '`':
			part, err := p.expansion()
			if err != nil {
				return nil, err
			}
			out = append(out, part)
		default:
			out = append(out, wordPart{text: string(c)})
			p.pos++
		}
	}
	return p.someWord(out)
}

func (p *parser) someWord(w word) (word, error) {
	if w == nil && (p.pos == 0 || p.src[p.pos-1] != '=') {
		return nil, p.errorf("unexpected %q", p.rest())
	}
	return w, nil
}

// expandable reads text with variables up to a closing mark, or to the end without one.
func (p *parser) expandable(mark string) (word, error) {
	var out word
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case mark != "" && c == mark[0]:
			p.pos++
			return out, nil
		case c == '\\' && p.pos+1 < len(p.src):
			next := p.src[p.pos+1]
			text := string(next)
			if strings.IndexByte("\"\\$`", next) < 0 {
				text = `\` + text
			}
			out = append(out, wordPart{text: text})
			p.pos += 2
		case c == '$' || c == '`':
			part, err := p.expansion()
			if err != nil {
				return nil, err
			}
			out = append(out, part)
		default:
			out = append(out, wordPart{text: string(c)})
			p.pos++
		}
	}
	if mark != "" {
		return nil, p.errorf("no closing %s", mark)
	}
	return out, nil
}

// expansion reads $NAME, ${NAME} and $(commands).
func (p *parser) expansion() (wordPart, error) {
	rest := p.src[p.pos:]
	switch {
	case strings.HasPrefix(rest, "$("):
		p.pos += 2
		commands, err := p.list()
		if err != nil {
			return wordPart{}, err
		}
		if p.accept(")") == "" {
			return wordPart{}, p.errorf("no closing )")
		}
		if commands == nil {
			return wordPart{}, nil
		}
		return wordPart{output: commands}, nil
	case strings.HasPrefix(rest, "${"):
		name, _, ok := strings.Cut(rest[2:], "}")
		if !ok || !isName(name) {
			return wordPart{}, p.errorf("%q is no variable that the shell of a simulated machine can expand", rest[:min(len(rest), 20)])
		}
		p.pos += len(name) + 3
		return wordPart{variable: name}, nil
	case rest[0] == '$':
		end := 1
		for end < len(rest) && isName(rest[1:end+1]) {
			end++
		}
		if end > 1 {
			p.pos += end
			return wordPart{variable: rest[1:end]}, nil
		}
		if len(rest) > 1 && strings.IndexByte("0123456789@*#?!$-", rest[1]) >= 0 {
			return wordPart{}, p.errorf("%q is no variable that the shell of a simulated machine can expand", rest[:2])
		}
		p.pos++
		return wordPart{text: "$"}, nil
	}
	return wordPart{}, p.errorf("use $(...) for the output of a command, the shell of a simulated machine knows no backquotes")
}

// isName reports whether s is the name of a shell variable.
func isName(s string) bool {
	for i, c := range s {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
