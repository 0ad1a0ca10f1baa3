package mask

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strings"
)

// Mask stands for a secret.
const Mask = "***"

// mostPasses bounds how often a text is looked at. What is masked can make one more secret
// known as such, hardly ever two.
const mostPasses = 8

// Text returns a text without the secrets in it.
func Text(text string) string {
	for range mostPasses {
		masked := pass(text)
		if masked == text {
			break
		}
		text = masked
	}
	return text
}

// Writer returns a writer to w of texts without secrets. Each call of Write must have whole
// lines, as those of log handlers have.
func Writer(w io.Writer) io.Writer { return writer{w} }

type writer struct{ to io.Writer }

// Write implements io.Writer.
func (w writer) Write(line []byte) (int, error) {
	if _, err := io.WriteString(w.to, Text(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}

// pass looks at a text once. A pass that changes a text leaves fewer bytes in it that are
// no asterisks, so that passes come to an end.
func pass(text string) string {
	f := &finder{decoded: decode(text)}
	f.forms()
	fieldFinder{f}.fields()
	addressFinder{f}.addresses()
	return f.replaced(text)
}

// finder collects where secrets are in a text.
type finder struct {
	decoded
	// found are the places, in symbols.
	found []span
}

// span is a part of a text, from the first symbol to the one after the last.
type span struct{ from, to int }

// add notes a secret. What is masked already is none.
func (f *finder) add(from, to int) {
	if from < to && len(bytes.Trim(f.text[from:to], "*")) > 0 {
		f.found = append(f.found, span{from, to})
	}
}

// replaced is the source with Mask in the place of all that was found.
func (f *finder) replaced(source string) string {
	if len(f.found) == 0 {
		return source
	}
	slices.SortFunc(f.found, func(a, b span) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	var out strings.Builder
	done := 0 // symbols that are written
	for i := 0; i < len(f.found); {
		s := f.found[i]
		for i++; i < len(f.found) && f.found[i].from <= s.to; i++ {
			s.to = max(s.to, f.found[i].to)
		}
		out.WriteString(source[f.at[done]:f.at[s.from]])
		out.WriteString(Mask)
		done = s.to
	}
	out.WriteString(source[f.at[done]:])
	return out.String()
}
