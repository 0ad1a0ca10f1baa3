package jointoken

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

const text = "abcdef.0123456789abcdef"

func TestTokenIsRevealedByNameAlone(t *testing.T) {
	token := New(text)
	if token.Reveal() != text || token.IsZero() || !token.Equal(New(text)) || token.Equal(New(Mask)) {
		t.Errorf("revealed as %q", token.Reveal())
	}
	inBootData, err := json.Marshal(token.InBootData())
	if err != nil || string(inBootData) != `"`+text+`"` {
		t.Errorf("in boot data: %s, %v", inBootData, err)
	}
	var read Token
	if err := json.Unmarshal(inBootData, &read); err != nil || !read.Equal(token) {
		t.Errorf("read as %q, %v", read.Reveal(), err)
	}
	if err := json.Unmarshal([]byte("1"), &read); err == nil {
		t.Error("a number is read as a token")
	}
}

func TestNoTokenIsEmpty(t *testing.T) {
	for _, none := range []Token{{}, New("")} {
		if !none.IsZero() || none.Reveal() != "" || fmt.Sprint(none) != "" || none.Equal(New(text)) || !none.Equal(Token{}) {
			t.Errorf("%q", none.Reveal())
		}
	}
	omitted, err := json.Marshal(struct {
		Token Token `json:"token,omitzero"`
	}{})
	if err != nil || string(omitted) != "{}" {
		t.Errorf("%s, %v", omitted, err)
	}
}

// holder has tokens where fmt asks their methods and where it does not.
type holder struct {
	Exported   Token
	unexported Token
	pointer    *Token
	list       []Token
	byToken    map[string]Token
	whatever   any
}

func TestTokenMasksItself(t *testing.T) {
	token := New(text)
	for name, token := range map[string]Token{"as it is": token, "in boot data": token.InBootData()} {
		t.Run(name, func(t *testing.T) {
			values := []any{token, &token, []Token{token}, holder{token, token, &token, []Token{token}, map[string]Token{"a": token}, token}}
			var out bytes.Buffer
			for _, v := range values {
				for _, verb := range "vsqxXdbocUetp" {
					fmt.Fprintf(&out, "%"+string(verb)+" %+"+string(verb)+" %#"+string(verb)+"\n", v, v, v)
				}
				slog.New(slog.NewTextHandler(&out, nil)).Info("text", "value", v)
				funcr.New(func(_, args string) { out.WriteString(args) }, funcr.Options{}).Info("logr", "value", v)
				if name == "as it is" { // JSON of the other one is for the machine
					slog.New(slog.NewJSONHandler(&out, nil)).Info("JSON", "value", v)
					if err := json.NewEncoder(&out).Encode(v); err != nil {
						t.Fatal(err)
					}
				}
			}
			out.WriteString(cmp.Diff(token, New(Mask)))
			for _, part := range []string{"0123456789abcdef", "abcdef.", fmt.Sprintf("%x", "0123456789abcdef")} {
				if strings.Contains(strings.ToLower(out.String()), part) {
					t.Errorf("%s is in:\n%s", part, out.String())
				}
			}
			if !strings.Contains(out.String(), Mask) {
				t.Errorf("nothing stands for the token in:\n%s", out.String())
			}
		})
	}
}
