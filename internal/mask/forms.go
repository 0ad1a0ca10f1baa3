package mask

import (
	"bytes"
	"regexp"
)

// The forms of secrets that are known without a name. The group of each is the secret.
var (
	// jsonToken is a JSON web token, or other JSON in base64.
	jsonToken = regexp.MustCompile(`\b(eyJ[A-Za-z0-9_-]{10,}={0,2}(?:\.[A-Za-z0-9_-]*)*)`)
	// blockBase64 and certificate are keys and certificates in base64: of their PEM, and as
	// they are.
	blockBase64 = regexp.MustCompile(`(LS0tLS1CRUdJTi[A-Za-z0-9+/=]*)`)
	certificate = regexp.MustCompile(`\b(MII[A-Za-z0-9+/]{61,}={0,2})`)
	storageKey  = regexp.MustCompile(`(?:^|[^A-Za-z0-9+/-])([A-Za-z0-9+/]{86}==)`)
	entraSecret = regexp.MustCompile(`([A-Za-z0-9_.~-]{3}[78]Q~[A-Za-z0-9_.~-]{31,34})`)
	bearer      = regexp.MustCompile(`(?i:\bbearer)[ \t]+([^\s"'<>()\[\]{},;]+)`)
	basic       = regexp.MustCompile(`(?i:\bbasic)[ \t]+([A-Za-z0-9+/]*[0-9+/=][A-Za-z0-9+/]*={0,2})`)
)

// noBearer is what follows the word bearer in prose and in challenges.
var noBearer = regexp.MustCompile(`^(?i:tokens?|auth|authentication|authorization|scheme|challenge)\b|^[a-z_]+=$|^\W*$`)

// forms finds secrets by their own form.
func (f *finder) forms() {
	lower := bytes.ToLower(f.text)
	for _, form := range []struct {
		sign string // is in every text that has one, in lower case: to look for it takes no time
		form *regexp.Regexp
	}{
		{"eyj", jsonToken}, {"ls0tls1crudjti", blockBase64}, {"mii", certificate}, {"==", storageKey}, {"q~", entraSecret},
		{"bearer", bearer}, {"basic", basic},
	} {
		if !bytes.Contains(lower, []byte(form.sign)) {
			continue
		}
		for _, m := range form.form.FindAllSubmatchIndex(f.text, -1) {
			if form.form != bearer || !noBearer.Match(f.text[m[2]:m[3]]) {
				f.add(m[2], m[3])
			}
		}
	}
	f.bootstrapTokens()
	if bytes.Contains(f.text, []byte("-----")) {
		f.blocks()
	}
}

// bootstrapTokens finds tokens such as abcdef.0123456789abcdef.
func (f *finder) bootstrapTokens() {
	const id, secret = 6, 16
	word := func(c byte) bool { return isName(c) && c != '-' && c != '.' }
	for i, c := range f.text {
		from, to := i-id, i+1+secret
		if c != '.' || from < 0 || to > len(f.text) || from > 0 && word(f.text[from-1]) || to < len(f.text) && word(f.text[to]) {
			continue
		}
		if isLower(f.text[from:i]) && isLower(f.text[i+1:to]) {
			f.add(from, to)
		}
	}
}

// isLower reports whether a text has lower case letters and digits alone.
func isLower(text []byte) bool {
	return !bytes.ContainsFunc(text, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// blockBegin and blockEnd are the lines around what is in PEM.
var (
	blockBegin = regexp.MustCompile(`-----BEGIN ([A-Z0-9 ]+)-----`)
	blockEnd   = regexp.MustCompile(`-----END ([A-Z0-9 ]+)-----`)
)

// blocks finds keys and certificates in PEM, public keys left out. A text may begin or end
// within one.
func (f *finder) blocks() {
	const inBlock = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\n"
	public := func(m []int) bool { return bytes.Contains(f.text[m[2]:m[3]], []byte("PUBLIC KEY")) }
	for _, m := range blockBegin.FindAllSubmatchIndex(f.text, -1) {
		if public(m) {
			continue
		}
		rest := f.text[m[1]:]
		if again := blockBegin.FindIndex(rest); again != nil {
			rest = rest[:again[0]]
		}
		if end := blockEnd.FindIndex(rest); end != nil {
			f.add(m[0], m[1]+end[1])
		} else {
			f.add(m[0], f.skip(m[1], inBlock+blanks+`\`))
		}
	}
	for _, m := range blockEnd.FindAllSubmatchIndex(f.text, -1) {
		if public(m) {
			continue
		}
		from := m[0]
		for f.is(from-1, inBlock) {
			from--
		}
		f.add(from, m[1])
	}
}
