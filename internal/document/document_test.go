package document

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// said are the values of a text, each as JSON or as what is wrong with it.
func said(text string) []string {
	var out []string
	for _, v := range Values([]byte(text)) {
		if v.Err != nil {
			out = append(out, v.Err.Error())
		} else {
			out = append(out, string(v.JSON))
		}
	}
	return out
}

func TestEveryValueOfATextIsReadOrRefused(t *testing.T) {
	const notStarted = "begins no document: put a line --- between documents, or take it out"
	for text, want := range map[string][]string{
		"":                              nil,
		"# a comment\n":                 nil,
		"null":                          nil,
		"---\n---\na: 1\n":              {`{"a":1}`},
		"a: 1":                          {`{"a":1}`},
		`{"a":1}`:                       {`{"a":1}`},
		" \n{\"a\": 1}\n":               {`{"a": 1}`},
		"{\"a\":1}\n{\"a\":2}\n":        {`{"a":1}`, `{"a":2}`},
		`{"a":1}{"a":2} [3]`:            {`{"a":1}`, `{"a":2}`, `[3]`},
		"{a: 1}\n...\n---\n{b: 2}\n":    {`{"a":1}`, `{"b":2}`},
		"{a: 1}\n...\n---\nb: 2\n":      {`{"a":1}`, `{"b":2}`},
		"{\"a\":1} # a comment\n":       {`{"a":1}`},
		"{\"a\":1}\n---\n{\"b\":2}\n":   {`{"a":1}`, `{"b":2}`},
		"{\"a\":1} garbage":             {`{"a":1}`, "what follows its value is neither YAML nor JSON: line 1: " + notStarted},
		"{\"a\":1}\ngarbage: here\n":    {`{"a":1}`, "what follows its value is neither YAML nor JSON: line 2: " + notStarted},
		"{a: 1}\ngarbage: here\n":       {`{"a":1}`, "what follows its value is neither YAML nor JSON: line 2: " + notStarted},
		"{\"a\":1}\n\n{\"b\":":          {`{"a":1}`, "what follows its value is neither YAML nor JSON: line 3: unexpected EOF: put a line --- between documents, or take it out"},
		"a: [":                          {"is neither YAML nor JSON: yaml: line 1: did not find expected node content"},
		"a: {{ .Values.a }}":            {"holds {{ }}, which is for a template engine: render it first, for instance with helm template"},
		"1: a\ntrue: b\n1.5: c\n":       {`{"1":"a","1.5":"c","true":"b"}`},
		"1: a\n'1': b\n":                {"the key 1: is there twice, as a text and as another value: give it once"},
		"a: .nan":                       {"holds what JSON cannot: json: unsupported value: NaN"},
		"? [a]\n: b":                    {"is neither YAML nor JSON: yaml: invalid map key: []interface {}{\"a\"}"},
		"a: yes\nb: 2001-01-01\nc: ~":   {`{"a":true,"b":"2001-01-01","c":null}`},
		"b: 12345678901234567890\na: 7": {`{"a":7,"b":12345678901234567890}`},
	} {
		if diff := cmp.Diff(want, said(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestKeysThatAreThereTwiceAreRefused(t *testing.T) {
	var long strings.Builder
	for i := range 100 {
		fmt.Fprintf(&long, "%q: %d,\n", fmt.Sprint("k", i), i)
	}
	for text, want := range map[string][]string{
		"spec:\n  replicas: 2\n  a: b\n  replicas: 20\n":  {"spec.replicas: is there twice, in its lines 2 and 4: give it once"},
		"{\"spec\":\n{\"replicas\":2,\n\"replicas\":20}}": {"spec.replicas: is there twice, in its lines 2 and 3: give it once"},
		`{"a":[{"b":1},{"b":1,"c":{"x":[1,2]},"c":2}]}`:   {"a[1].c: is there twice, in its line 1: give it once"},
		"a: [{b: 1}, {b: 1, c: 2, c: 3}]":                 {"a[1].c: is there twice, in its line 1: give it once"},
		`{"a":1,"\u0061":2}`:                              {"a: is there twice, in its line 1: give it once"},
		`{"a":"b\"a\":,{","a ":2}`:                        {`{"a":"b\"a\":,{","a ":2}`},
		`{"a":{"a":1},"b":{"a":1},"c":["a","a"]}`:         {`{"a":{"a":1},"b":{"a":1},"c":["a","a"]}`},
		"{" + long.String() + `"k7": 1}`:                  {"k7: is there twice, in its lines 8 and 101: give it once"},
		"{\"a\":1}\n{\"b\":1,\n\"b\":2}\n{\"c\":1}":       {`{"a":1}`, "b: is there twice, in its lines 2 and 3: give it once", `{"c":1}`},
		"a: 1\n---\nl: {x.y/z: 1, x.y/z: 2}\n---\nc: 1\n": {`{"a":1}`, "l[x.y/z]: is there twice, in its line 3: give it once", `{"c":1}`},
		"a: &a {x: 1, z: 1}\nb: {<<: *a, x: 2}\n":         {`{"a":{"x":1,"z":1},"b":{"x":2,"z":1}}`},
		"a: &a {x: 1}\nb: {<<: *a, x: 2, x: 3}\n":         {"b.x: is there twice, in its line 2: give it once"},
		"a: &a {x: 1}\nc: &c {x: 2}\nb: {<<: [*a, *c]}\n": {`{"a":{"x":1},"b":{"x":1},"c":{"x":2}}`},
	} {
		if diff := cmp.Diff(want, said(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestFilesOfOneValueHaveNoOther(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"a: 1":                               "",
		"---\na: 1\n---\n":                   "",
		`{"a":1}`:                            "",
		`{"a":1} {"b":2}`:                    "has 2 values, one after the other, must have one: give a file that has no other",
		"a: 1\n---\nb: 2":                    "has 2 values, one after the other, must have one: give a file that has no other",
		`{"a":1} and so on`:                  "what follows its value is neither YAML nor JSON: line 1: begins no document: put a line --- between documents, or take it out",
		"limits: {cpu: 1}\nlimits: {cpu: 2}": "limits: is there twice, in its lines 1 and 2: give it once",
	} {
		_, err := One([]byte(text))
		if got := fmt.Sprint(err); got != want && (want != "" || err != nil) {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
