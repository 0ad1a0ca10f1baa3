package bootdata

import (
	"fmt"
	"strings"
)

// assignments reads the variable assignments of a boot script: lines such as
//
//	KEY="value"   export KEY='value'   KEY=value OTHER=value command …
//
// Only assignments that start a line count, several of them may follow each
// other. Anything else on a line is a command and is skipped, and so are comments.
// A later assignment wins. Nothing is executed: a value with an unquoted or
// double-quoted $ or ` would be expanded by a real shell and is returned as an
// error for that key in the second map.
func assignments(script string) (map[string]string, map[string]error) {
	values, bad := map[string]string{}, map[string]error{}
	for n, line := range strings.Split(script, "\n") {
		rest := strings.TrimSpace(line)
		for {
			rest = strings.TrimLeft(rest, " \t\r;")
			rest = strings.TrimLeft(strings.TrimPrefix(rest, "export "), " \t")
			key, tail, ok := strings.Cut(rest, "=")
			if !ok || !isName(key) {
				break
			}
			value, after, err := shellValue(tail)
			delete(values, key)
			delete(bad, key)
			if err != nil {
				bad[key] = fmt.Errorf("line %d: %w", n+1, err)
				break
			}
			values[key] = value
			rest = after
		}
	}
	return values, bad
}

// isName reports whether s is a shell variable name.
func isName(s string) bool {
	for i, c := range s {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// shellValue reads one word with shell quoting and returns what follows it.
func shellValue(s string) (value, rest string, err error) {
	var out strings.Builder
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote == '\'':
			if c == '\'' {
				quote = 0
			} else {
				out.WriteByte(c)
			}
		case c == '$' || c == '`':
			return "", "", fmt.Errorf("value uses %q, which only a shell can expand: write the value out or in single quotes", string(c))
		case c == '\\' && i+1 < len(s):
			i++
			if quote == '"' && !strings.ContainsRune("\"\\$`", rune(s[i])) {
				out.WriteByte('\\')
			}
			out.WriteByte(s[i])
		case quote == '"':
			if c == '"' {
				quote = 0
			} else {
				out.WriteByte(c)
			}
		case c == '"' || c == '\'':
			quote = c
		case strings.IndexByte(" \t\r;&|", c) >= 0:
			return out.String(), s[i:], nil
		default:
			out.WriteByte(c)
		}
	}
	if quote != 0 {
		return "", "", fmt.Errorf("value has no closing %s", string(quote))
	}
	return out.String(), "", nil
}
