// Package jointoken is the bootstrap token with which a machine joins, as a value that
// does not show itself: whatever carries it can be printed, logged and dumped.
//
// The token leaves a [Token] in two ways, both by name: [Token.Reveal] is its text, and
// JSON of [Token.InBootData] has it in full, for what a machine boots from.
package jointoken

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// Mask stands for a token, and is of its form: what is masked stays well-formed.
const Mask = "xxxxxx.xxxxxxxxxxxxxxxx"

// Token is a bootstrap token, ID.SECRET. The zero value is none. Everything that prints
// or encodes it shows Mask, or nothing where there is none. Compare tokens with Equal.
type Token struct {
	// reveal returns the text; nil means none. What prints values by reflection, and
	// therefore asks no method, sees the address of a function.
	reveal func() string
	// inBootData has JSON show the token.
	inBootData bool
}

// New returns the token of that text; an empty text is none.
func New(text string) Token {
	if text == "" {
		return Token{}
	}
	return Token{reveal: func() string { return text }}
}

// Reveal returns the text of the token, ID.SECRET, or "" where there is none.
func (t Token) Reveal() string {
	if t.reveal == nil {
		return ""
	}
	return t.reveal()
}

// IsZero reports whether there is no token.
func (t Token) IsZero() bool { return t.reveal == nil }

// Equal reports whether both are the same token, or both none.
func (t Token) Equal(other Token) bool { return t.Reveal() == other.Reveal() }

// InBootData returns the token as one that JSON shows. Formats and logs mask it still.
func (t Token) InBootData() Token {
	t.inBootData = true
	return t
}

// String is Mask, or "" where there is no token.
func (t Token) String() string {
	if t.IsZero() {
		return ""
	}
	return Mask
}

// Format implements fmt.Formatter for every verb, %#v included.
func (t Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// LogValue implements slog.LogValuer.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalLog implements logr.Marshaler.
func (t Token) MarshalLog() any { return t.String() }

// MarshalJSON implements json.Marshaler: Mask, and the token itself after InBootData.
func (t Token) MarshalJSON() ([]byte, error) {
	if t.inBootData {
		return json.Marshal(t.Reveal())
	}
	return json.Marshal(t.String())
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Token) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("read a bootstrap token: %w", err)
	}
	*t = New(s)
	return nil
}
