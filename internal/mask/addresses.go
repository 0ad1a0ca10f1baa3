package mask

import (
	"bytes"
	"regexp"
	"strings"
)

// longest is how many symbols an address and what belongs to it have at most, longestHost how
// many a host and its port have: a line of any length is read in a time that grows as it does.
const (
	longest     = 2048
	longestHost = 300
)

// The forms of addresses. All are looked for in lower and upper case.
var (
	// schemeOf begins an address that has a scheme.
	schemeOf = regexp.MustCompile(`^(?i:[a-z][a-z0-9+.-]*:)?//`)
	// next begins a further address in a list.
	next = regexp.MustCompile(`[,;\s]+(?i:[a-z][a-z0-9+.-]*:)//`)
	// done ends an address of a list that has a user, before one that may have no scheme.
	done = regexp.MustCompile(`@[A-Za-z0-9.-]+:\d{1,5}[,;\s]+`)
	// hostPort is what an address without a scheme must go on with, host what one with a
	// scheme does.
	hostPort = regexp.MustCompile(`^(?:[A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):\d{1,5}(?:[^0-9A-Za-z:]|:[^0-9]|:?$)`)
	host     = regexp.MustCompile(`^(?:[A-Za-z0-9]|\[[0-9a-fA-F:]|\*\*\*)`)
	// other is what follows an @ that ends no user: digests of images, and versions.
	other = regexp.MustCompile(`^(?:sha\d+:[0-9a-f]{16}|v/|latest\b|v?\d+\.\d+\.\d+(?:[^.\d]|$)|v\d+(?:[^.\w]|$))`)
	// server is what stands between scheme and path of addresses without a user.
	server = regexp.MustCompile(`^(?:(?:[A-Za-z0-9._*-]*|\[[0-9a-fA-F:.%]+\])(?::\d{0,5})?(?:[,;](?:[A-Za-z0-9._*-]*|\[[0-9a-fA-F:.%]+\])(?::\d{0,5})?)*[^A-Za-z0-9@]*|sha\d+:[0-9a-f]+)$`)
	// clock is a time, whose colons are none of a password.
	clock = regexp.MustCompile(`^(?:\d{4}-\d\d-\d\dT)?\d\d:\d\d`)
	// quotedPart is before a part of an address that package net/url quotes in its errors.
	quotedPart = regexp.MustCompile(`invalid (?:port|userinfo|URL escape|character) $`)
)

// addressFinder finds users and passwords in addresses.
type addressFinder struct{ *finder }

// Address returns an address, or a list of them, without user and password. It is for a
// text that is known to be one: with scheme or without, all before the last @ of an address
// is user and password, whatever characters it has. A user alone is masked, too: it is a
// token as often as not.
func Address(text string) string {
	f := &finder{decoded: literal(text)}
	addressFinder{f}.users(0, len(f.text))
	return Text(f.replaced(text))
}

// literal is a text in which nothing is escaped.
func literal(text string) decoded {
	d := decoded{text: []byte(text), at: make([]int, len(text)+1), slashes: make([]int, len(text))}
	for i := range d.at {
		d.at[i] = i
	}
	d.quotes()
	return d
}

// users notes the users of what is known to be a list of addresses.
func (f addressFinder) users(from, to int) {
	for from < to {
		end := f.element(from, to)
		begin := from + len(schemeOf.Find(f.text[from:end]))
		if at := bytes.LastIndexByte(f.text[begin:end], '@'); at >= 0 {
			f.add(begin, begin+at)
		}
		from = f.skip(end, ",; \t\n")
	}
}

// element is where the first address of a list ends.
func (d *decoded) element(from, to int) int {
	end := to
	if m := next.FindIndex(d.text[from:to]); m != nil {
		end = from + m[0]
	}
	if m := done.FindIndex(d.text[from:end]); m != nil && bytes.IndexByte(d.text[from+m[1]:end], '@') >= 0 {
		end = from + len(bytes.TrimRight(d.text[from:from+m[1]], ",; \t\n"))
	}
	return end
}

// addresses looks at addresses wherever they stand.
func (f addressFinder) addresses() {
	for i := range f.text {
		switch f.text[i] {
		case '/':
			if f.is(i-1, "/") && f.is(i-2, ":") {
				f.withScheme(i + 1)
			}
		case '@':
			f.withoutScheme(i)
		case '"':
			if quotedPart.Match(f.text[max(0, i-40):i]) {
				f.add(f.quotedValue(i))
			}
		}
	}
}

// withScheme looks at what follows a scheme and its slashes.
func (f addressFinder) withScheme(from int) {
	to := f.until(from, longest, "")
	if m := next.FindIndex(f.text[from:to]); m != nil {
		to = from + m[0]
	}
	whole := f.begins(from)
	if i := bytes.IndexAny(f.text[from:to], f.alien(from, whole)); i >= 0 {
		to = from + i
	}
	word := from + len(firstWord(f.text[from:to]))
	authority := f.text[from:word]
	if i := bytes.IndexAny(authority, "/?#"); i >= 0 {
		authority = authority[:i]
	}
	hasUser := !server.Match(authority)
	at := f.lastUser(from, word, func(rest []byte) bool { return !other.Match(rest) })
	if at < 0 && hasUser {
		at = f.lastUser(from, word, func([]byte) bool { return true })
	}
	if !whole { // a quote behind a word is another text
		if i := bytes.IndexByte(f.text[word:to], '"'); i >= 0 {
			to = word + i
		}
	}
	spaced := f.lastUser(word, to, func(rest []byte) bool {
		return hostPort.Match(rest) || host.Match(rest) && (at < 0 && hasUser || whole && len(firstWord(rest)) == len(rest))
	})
	switch at = max(at, spaced); {
	case at >= 0:
		f.add(from, at)
	case hasUser && bytes.IndexByte(authority, ':') >= 0: // it is cut off
		f.add(from, word)
	}
}

// alien are symbols that end an address which begins at a symbol, and may be the whole of a
// quoted text.
func (d *decoded) alien(from int, whole bool) string {
	switch {
	case d.inside[from] < 0:
		return `<>"`
	case whole:
		return ""
	}
	return "<>"
}

// begins reports whether a quote, or the text, begins with the scheme before a symbol.
func (d *decoded) begins(from int) bool {
	i := from - len("://")
	for i > 0 && (isName(d.text[i-1]) || d.text[i-1] == '+') {
		i--
	}
	return d.opened(i)
}

// opened reports whether a quote, or the text, begins at a symbol.
func (d *decoded) opened(i int) bool { return i == 0 || d.text[i-1] == '"' && d.inside[i] >= 0 }

func firstWord(text []byte) []byte {
	if i := bytes.IndexAny(text, blanks+"\n"); i >= 0 {
		return text[:i]
	}
	return text
}

// lastUser is the last @ of a part of the text whose rest lets it be the end of a user; -1
// where there is none.
func (d *decoded) lastUser(from, to int, lets func(rest []byte) bool) int {
	for i := to - 1; i >= from; i-- {
		if d.text[i] == '@' && lets(d.text[i+1:to]) {
			return i
		}
	}
	return -1
}

// withoutScheme looks at an @ for a user before it, as in me:password@proxy:3128. What is no
// address with a port, and has no password either, is left: mail addresses are.
func (f addressFinder) withoutScheme(at int) {
	rest := f.text[at+1 : f.until(at+1, longestHost, "")]
	if !host.Match(rest) || other.Match(rest) {
		return
	}
	begin := f.wordBefore(at)
	word := f.text[begin:at]
	if bytes.Contains(word, []byte("://")) {
		return
	}
	begin += len(word) - len(bytes.TrimLeft(word, "([{'"))
	for m := done.FindIndex(f.text[begin:at]); m != nil; m = done.FindIndex(f.text[begin:at]) {
		begin += m[1]
	}
	if i := bytes.IndexAny(f.text[begin:at], "=:"); i > 0 && f.text[begin+i] == '=' { // proxy=me:password
		begin += i + 1
	}
	hasPassword := bytes.IndexByte(f.text[begin:at], ':') >= 0
	if hasPassword || hostPort.Match(rest) {
		f.add(f.spaced(begin, hasPassword), at)
	}
}

// wordBefore is where the word begins that ends before a symbol.
func (d *decoded) wordBefore(end int) int {
	for least := max(0, end-longest); end > least && !d.is(end-1, blanks+"\n\"`<>"); {
		end--
	}
	return end
}

// spaced goes back from a word to the one with which a password begins that has blanks. It
// stays where there is none.
func (f addressFinder) spaced(begin int, hasPassword bool) int {
	found := begin
	for i := begin; f.is(i-1, blanks) && begin-i < longest; {
		end := i - 1
		i = f.wordBefore(end)
		word := string(f.text[i:end])
		if strings.Contains(word, "://") {
			break
		}
		colon := strings.IndexByte(word, ':')
		if colon <= 0 || colon == len(word)-1 || clock.MatchString(word) {
			continue
		}
		if found == begin && !hasPassword || f.opened(i) {
			found = i
		}
	}
	return found
}
