package mask

import (
	"bytes"
	"regexp"
	"strings"
)

const (
	blanks = " \t"
	marks  = "\"'`"
	// after is what may stand between a value and what follows it, and is left.
	after = ",;.)}]'`>"
)

// fieldFinder finds values that are secrets by the name before them.
type fieldFinder struct{ *finder }

// fields looks at each name: in JSON, YAML, headers, queries, settings, flags and prose.
func (f fieldFinder) fields() {
	for i := 0; i < len(f.text); {
		if !isName(f.text[i]) {
			i++
			continue
		}
		from := i
		for i < len(f.text) && isName(f.text[i]) {
			i++
		}
		f.field(from, i)
	}
}

func isName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

// named is a name that is known to have a secret.
type named struct {
	span
	kind kind
	// quoted says that the name is quoted, as in JSON, first that it begins a line, query
	// that it stands in an address.
	quoted, first, query bool
}

// field looks at the name from symbol from to symbol to.
func (f fieldFinder) field(from, to int) {
	n := named{span: span{from, to}, query: f.is(from-1, "?&"), quoted: f.is(from-1, marks) && f.is(to, marks)}
	n.kind = f.kindOf(&n)
	if n.kind == plain || ofOther(f.finder, from) {
		return
	}
	flag := f.text[from] == '-'
	n.first = !flag && f.first(from)
	at, sign, value := separator(f.finder, to)
	switch {
	case value == sign && flag && sign > at && !f.is(sign, "-"): // --token abc
		f.value(n, sign)
	case value == sign:
		f.partner(n, at)
	case bytes.HasPrefix(f.text[sign:], []byte("://")):
	case !n.quoted && !n.first && f.text[sign] == ':' && f.is(value, blanks) && inGeneral(f.text, from, to): // prose
	default:
		if n.kind == setting && f.text[sign] == ':' { // it does not stand among settings
			n.kind = secret
		}
		f.value(n, f.skip(value, blanks))
	}
}

// ofOther reports whether what begins at a symbol is a type, as in *v1.Secret, or a host, as
// in @proxy:3128 and //proxy.
func ofOther(f *finder, from int) bool {
	return f.is(from-1, "*@") || f.is(from-1, "/") && f.is(from-2, "/")
}

// separator finds what stands between a name that ends at a symbol and its value: at is
// where the blanks begin, sign where the colon or equals sign does, and value what follows
// it; sign and value are the same where there is none.
func separator(f *finder, to int) (at, sign, value int) {
	at = to
	if f.is(at, marks) {
		at++
	}
	if f.is(at, "]") {
		at++
	}
	sign = f.skip(at, blanks)
	value = f.skip(sign, ":=")
	if f.is(value, ">") && value > sign {
		value++
	}
	return at, sign, value
}

// indefinite are words before a name that mean none in particular: no value of one follows it.
var indefinite = regexp.MustCompile(`(?:^|[^A-Za-z0-9_.-])(?i:any|no|each|every)[ \t]+$`)

// inGeneral reports whether prose means objects, or no particular secret, by a name: what follows
// its colon is a further part of the sentence.
func inGeneral(text []byte, from, to int) bool {
	const most = 10 // symbols: the longest of the words, and what is around it
	return isPlural(string(text[from:to])) || indefinite.Match(text[max(0, from-most):from])
}

// kindOf is the kind of a name.
func (f fieldFinder) kindOf(n *named) kind {
	name := string(f.text[n.from:n.to])
	switch {
	case n.query:
		return kindInQuery(name)
	case n.quoted && name == "auth": // of a registry
		return secret
	case strings.EqualFold(name, "key") && f.is(n.from-1, " "): // account key
		before := n.from - 1
		for before > 0 && isName(f.text[before-1]) {
			before--
		}
		name = string(f.text[before:n.from-1]) + name
	}
	return kindOf(name)
}

// first reports whether a name begins a line, or a text that is quoted.
func (f fieldFinder) first(from int) bool {
	for from > 0 && f.is(from-1, blanks+"-#") {
		from--
	}
	if from >= len("export ") && string(f.text[from-len("export "):from]) == "export " {
		from -= len("export ")
	}
	return from == 0 || f.text[from-1] == '\n' || f.text[from-1] == '"' && f.inside[from] >= 0
}

// partnerField is the field value beside a field name: {"name": "PASSWORD", "value": "abc"}.
var partnerField = regexp.MustCompile("^[\"'`]?[\\s,{}]*[\"'`]?(?i:value)[\"'`]?\\s*[:=]\\s*")

// partner looks for a value in a field beside a name.
func (f fieldFinder) partner(n named, at int) {
	if n.kind == address {
		return
	}
	const most = 200
	if m := partnerField.FindIndex(f.text[at:min(at+most, len(f.text))]); m != nil {
		n.quoted, n.query = false, false
		n.first = bytes.IndexByte(f.text[at:at+m[1]], '\n') >= 0
		f.value(n, at+m[1])
	}
}

// value notes the value that begins at a symbol.
func (f fieldFinder) value(n named, at int) {
	switch {
	case at >= len(f.text):
	case f.is(at, marks):
		from, to := f.quotedValue(at)
		f.secret(n, from, to)
	case f.text[at] == '[':
		f.list(n, at+1)
	case f.text[at] == '{' && (f.is(at+1, marks+"} \t\n") || at+1 == len(f.text)), bytes.HasPrefix(f.text[at:], []byte("map[")):
		f.partner(n, at)
	case f.lineEnd(at, n.from), f.is(at, "|>") && !n.quoted:
		f.block(n, at)
	default:
		f.secret(n, at, f.unquoted(n, at))
	}
}

// quotedValue is what is between the quote at a symbol and the one that closes it. Where none
// does on its line, a value may go on in lines that are further in.
func (d *decoded) quotedValue(at int) (from, to int) {
	mark, ended := d.text[at], -1
	for i := at + 1; i < len(d.text); i++ {
		switch {
		case d.text[i] == '\n' && d.slashes[i] == 0:
			if ended < 0 {
				ended = i
			}
			if !d.is(i+1, blanks) {
				return at + 1, ended
			}
		case d.text[i] != mark:
		case mark == '"' && within(d.slashes[at], d.slashes[i]) != opens:
			return at + 1, i
		case mark == '\'' && bytes.HasPrefix(d.text[i:], []byte(`'\''`)):
			i += len(`'\''`) - 1
		case mark == '\'' && d.is(i+1, "'"): // '' is one in YAML
			i++
		case mark != '"':
			return at + 1, i
		}
	}
	if ended < 0 {
		ended = len(d.text)
	}
	return at + 1, ended
}

// list notes every text of a list, up to what is itself a list or an object.
func (f fieldFinder) list(n named, at int) {
	for {
		at = f.skip(at, blanks+"\n,")
		switch {
		case at >= len(f.text) || f.is(at, "]{["):
			return
		case f.is(at, marks):
			from, to := f.quotedValue(at)
			f.secret(n, from, to)
			at = to + 1
		default:
			stop := ",] \t\n"
			if n.kind == header {
				stop = "]\n"
			}
			to := at
			for to < len(f.text) && strings.IndexByte(stop, f.text[to]) < 0 && !f.quoteEnd(to, at) {
				to++
			}
			f.secret(n, at, to)
			if to == at {
				return
			}
			at = to
		}
	}
}

// nestedField is a line of YAML that is a field itself.
var nestedField = regexp.MustCompile("^(- )?[\"']?[A-Za-z0-9_./-]+[\"']?:([ \\n]|$)")

// block notes a value of YAML in the lines behind its name.
func (f fieldFinder) block(n named, at int) {
	if !n.first {
		return
	}
	literal := !f.lineEnd(at, n.from)
	indent := f.indent(n.from)
	from, to := -1, -1
	for i := f.line(at); i < len(f.text) && f.lineEnd(i, n.from); i = f.line(i + 1) {
		begin := f.skip(i+1, blanks)
		end := f.line(i + 1)
		if begin >= end {
			continue
		}
		deeper := begin-i-1 > indent
		item := !literal && begin-i-1 == indent && bytes.HasPrefix(f.text[begin:], []byte("- "))
		if !deeper && !item || !literal && nestedField.Match(f.text[begin:end]) {
			break
		}
		if from < 0 {
			from = begin
		}
		to = end
	}
	if from >= 0 {
		f.secret(n, from, to)
	}
}

// indent is how far in a line begins, up to a symbol.
func (d *decoded) indent(at int) int {
	n := 0
	for at > 0 && d.is(at-1, blanks+"-") {
		at--
		n++
	}
	return n
}

// unquoted is where a value ends that is not quoted.
func (f fieldFinder) unquoted(n named, at int) int {
	stop := blanks
	switch {
	case n.query:
		stop += "#\"'<>"
	case n.kind == setting:
		stop += ";&,\"'"
	case n.quoted:
		stop += ",}]"
	case n.kind == header, n.first:
		stop = ""
	}
	if !n.quoted && f.is(n.from-1, "'`") { // -H 'Authorization: Bearer abc'
		stop += string(f.text[n.from-1])
	}
	to := f.until(at, len(f.text), stop)
	if n.query { // an & of the value is escaped once more than the one before the name
		inPercents := f.slashes[n.from-1] == inPercent
		for i := at; i < to; i++ {
			if f.text[i] == '&' && (f.slashes[i] == inPercent) == inPercents {
				to = i
			}
		}
	}
	for to > at && f.is(to-1, after+blanks) {
		to--
	}
	return to
}

// publicCode is a code of Azure's sign-in, which errors about tokens begin with.
var publicCode = regexp.MustCompile(`^AADSTS\d+`)

// fileError is how Go and client libraries go on after the name of a file and a colon: the name is
// the file's then, as in "open /run/token: permission denied".
var fileError = regexp.MustCompile(`^(?:no such file or directory|permission denied|is a directory|not a directory|` +
	`couldn't get version/kind|(?:yaml|json): )`)

// scheme is what a header begins with before the secret.
var scheme = regexp.MustCompile(`(?i)^(bearer|basic|negotiate|ntlm|sharedkey|token)[ \t]+`)

// secret notes a value of a name.
func (f fieldFinder) secret(n named, from, to int) {
	value := f.text[from:to]
	switch {
	case noSecret(string(value)), publicCode.Match(value), !f.is(from-1, marks) && fileError.Match(f.text[from:]):
	case n.kind == address:
		addressFinder(f).users(from, to)
	case n.kind == header:
		if m := scheme.FindIndex(value); m != nil {
			from += m[1]
		}
		f.add(from, to)
	default:
		f.add(from, to)
	}
}
