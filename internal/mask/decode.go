package mask

import (
	"strconv"
	"strings"
)

// decoded is a text whose escapes are undone: a symbol, which is one byte, for each
// character or escape of the source.
type decoded struct {
	text []byte
	// at is where each symbol begins in the source, and after the last one its length.
	at []int
	// slashes is how many backslashes a symbol was escaped by, or inPercent.
	slashes []int
	// inside is by how many backslashes the quote is escaped that was opened last before a
	// symbol and is not closed; -1 outside of quotes.
	inside []int
}

// inPercent stands for the backslashes of a symbol that was escaped as %XX.
const inPercent = -1

// decode undoes escapes of JSON, of HTML and of addresses.
//
// In JSON which is quoted in JSON a quote has a backslash, one level deeper three, then
// seven: a symbol '"' stands for all of them, and slashes tells them apart. An escaped line
// end is a symbol '\n'. Of %XX those are undone which structure an address; the others are a
// symbol '%'.
func decode(source string) decoded {
	d := decoded{text: make([]byte, 0, len(source)), at: make([]int, 0, len(source)+1), slashes: make([]int, 0, len(source))}
	put := func(symbol byte, at, slashes int) {
		d.text, d.at, d.slashes = append(d.text, symbol), append(d.at, at), append(d.slashes, slashes)
	}
	for i := 0; i < len(source); {
		symbol, length, slashes := source[i], 1, 0
		switch source[i] {
		case '\\':
			if symbol, length, slashes = escaped(source[i:]); length == 0 {
				for range slashes {
					put('\\', i, 0)
					i++
				}
				continue
			}
		case '&':
			symbol, length = entity(source[i:])
		case '%':
			if symbol, length = percent(source[i:]); length > 1 {
				slashes = inPercent
			}
		}
		put(symbol, i, slashes)
		i += length
	}
	d.at = append(d.at, len(source))
	d.quotes()
	return d
}

// escaped reads backslashes and what they escape. The length is 0 where that is nothing
// that matters here.
func escaped(source string) (symbol byte, length, slashes int) {
	for slashes < len(source) && source[slashes] == '\\' {
		slashes++
	}
	rest := source[slashes:]
	if rest == "" {
		return 0, 0, slashes
	}
	switch rest[0] {
	case '"', '/':
		return rest[0], slashes + 1, slashes
	case 'n', 'r':
		return '\n', slashes + 1, slashes
	case 't':
		return '\t', slashes + 1, slashes
	case 'u':
		const form = len("u0026")
		if len(rest) >= form {
			if code, err := strconv.ParseUint(rest[1:form], 16, 16); err == nil && code > ' ' && code < 0x7f {
				length = slashes + form
				if code == '&' && strings.HasPrefix(rest[form:], "amp;") {
					length += len("amp;")
				}
				return byte(code), length, slashes
			}
		}
	}
	return 0, 0, slashes
}

func entity(source string) (symbol byte, length int) {
	for _, e := range []struct {
		text   string
		symbol byte
	}{{"&amp;", '&'}, {"&quot;", '"'}, {"&#34;", '"'}, {"&#39;", '\''}, {"&lt;", '<'}, {"&gt;", '>'}} {
		if strings.HasPrefix(source, e.text) {
			return e.symbol, len(e.text)
		}
	}
	return '&', 1
}

// percent reads %XX, also as %25XX, which addresses in addresses have.
func percent(source string) (symbol byte, length int) {
	length = 1
	for strings.HasPrefix(source[length:], "25") && len(source) >= length+4 {
		length += 2
	}
	if len(source) < length+2 {
		return '%', 1
	}
	code, err := strconv.ParseUint(source[length:length+2], 16, 8)
	if err != nil {
		return '%', 1
	}
	if strings.IndexByte("=&:/?@;", byte(code)) >= 0 {
		return byte(code), length + 2
	}
	return '%', length + 2
}

// quotes finds for each symbol the quote that it is inside of. A line of the source ends all
// of them.
func (d *decoded) quotes() {
	d.inside = make([]int, len(d.text)+1)
	open := []int{-1}
	for i, symbol := range d.text {
		d.inside[i] = open[len(open)-1]
		switch {
		case symbol == '\n' && d.slashes[i] == 0:
			open = open[:1]
		case symbol == '"':
			open = quote(open, d.slashes[i])
		}
	}
	d.inside[len(d.text)] = open[len(open)-1]
}

// quote opens or closes a quote.
func quote(open []int, slashes int) []int {
	for ; len(open) > 1; open = open[:len(open)-1] {
		switch last := open[len(open)-1]; within(last, slashes) {
		case closes:
			return open[:len(open)-1]
		case opens:
			return append(open, 2*last+1)
		case foreign: // it belongs to a quote further out
		}
	}
	return append(open, slashes)
}

// role is what a quote does inside of another.
type role int

const (
	closes role = iota
	opens
	foreign
)

// within says what a quote with so many backslashes does inside of one that has outer. Each
// backslash of a text inside of outer is written as outer+1.
func within(outer, slashes int) role {
	switch more := slashes - outer; {
	case more < 0 || more%(outer+1) != 0:
		return foreign
	case more/(outer+1)%2 == 0:
		return closes
	default:
		return opens
	}
}

// lineEnd reports whether a line ends at symbol i for what began at symbol from: a line of
// the source, or one of the quoted text that it is in.
func (d *decoded) lineEnd(i, from int) bool {
	return d.text[i] == '\n' && (d.slashes[i] == 0 || d.inside[from] >= 0 && d.slashes[i] == d.inside[from]+1)
}

// quoteEnd reports whether the quote ends at symbol i that symbol from is inside of.
func (d *decoded) quoteEnd(i, from int) bool {
	return d.text[i] == '"' && d.inside[from] >= 0 && within(d.inside[from], d.slashes[i]) != opens
}

// line is where the line ends that symbol from is in, or the quote around it.
func (d *decoded) line(from int) int { return d.until(from, len(d.text), "") }

// until is where the line ends, or the quote around it, or one of some stands, or where most
// symbols are over.
func (d *decoded) until(from, most int, some string) int {
	i := from
	for end := min(len(d.text), from+most); i < end && strings.IndexByte(some, d.text[i]) < 0 && !d.lineEnd(i, from) && !d.quoteEnd(i, from); {
		i++
	}
	return i
}

// skip is the first symbol from i on that is none of some.
func (d *decoded) skip(i int, some string) int {
	for i < len(d.text) && strings.IndexByte(some, d.text[i]) >= 0 {
		i++
	}
	return i
}

// is reports whether symbol i is there and one of some.
func (d *decoded) is(i int, some string) bool {
	return i >= 0 && i < len(d.text) && strings.IndexByte(some, d.text[i]) >= 0
}
