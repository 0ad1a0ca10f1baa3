package kube

import (
	"fmt"
	"strings"
	"testing"
)

func TestLongStreamsAreReadInOrder(t *testing.T) {
	const documents, broken = 70, 45
	padding := "# " + strings.Repeat("x", batchBytes/20) + "\n"
	var stream strings.Builder
	for i := 1; i <= documents; i++ {
		name := fmt.Sprintf("name: p%d", i)
		if i == broken {
			name = "name: [p"
		}
		fmt.Fprintf(&stream, "---\n%sapiVersion: v1\nkind: Namespace\nmetadata:\n  %s\n", padding, name)
	}
	found, err := Decode(strings.NewReader(stream.String()), "file")
	if want := fmt.Sprintf("file: document %d: is neither YAML nor JSON", broken); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("the error is %v, want one that begins with %q", err, want)
	}
	if len(found) != documents-1 {
		t.Fatalf("%d objects, want %d", len(found), documents-1)
	}
	for at, m := range found {
		i := at + 1
		if i >= broken {
			i++
		}
		if m.Object.GetName() != fmt.Sprint("p", i) || m.Source != fmt.Sprintf("file: document %d", i) {
			t.Fatalf("object %d is %s of %s", at, m.Object.GetName(), m.Source)
		}
	}
}

// Documents are numbered by values, so that each is found in the file. What is wrong with one does
// not hide the others.
func TestEveryValueOfAStreamIsAnObject(t *testing.T) {
	space := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)
	}
	for text, want := range map[string]struct{ objects, err string }{
		space("a") + "\n" + space("b") + "\n":            {"a of document 1, b of document 2", ""},
		space("a") + space("b") + "\n---\n" + space("c"): {"a of document 1, b of document 2, c of document 3", ""},
		"# nothing\n---\n" + space("a"):                  {"a of document 2", ""},
		space("a") + "\n...\n---\n" + space("b"):         {"a of document 1, b of document 2", ""},
		space("a") + " garbage\n---\n" + space("b"): {"a of document 1, b of document 3",
			"file: document 2: what follows its value is neither YAML nor JSON: line 1: begins no document: put a line --- between documents, or take it out"},
		space("a") + "\n" + `{"kind":"Pod","kind":"Pod"}` + "\n" + space("c"): {"a of document 1, c of document 3",
			"file: document 2: kind: is there twice, in its line 2: give it once"},
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\nmetadata: {name: b}\n": {"",
			"file: document 1: metadata: is there twice, in its lines 3 and 4: give it once"},
		`{"apiVersion":"v1","kind":"List","items":[` + space("a") + `,{"kind":"Widget","a":{"b":1,"b":2}}]}`: {"",
			"file: document 1: items[1].a.b: is there twice, in its line 1: give it once"},
		"base: &base {name: b, labels: {a: b}}\napiVersion: v1\nkind: Namespace\nmetadata: {<<: *base, name: a}": {"a of document 1", ""},
	} {
		found, err := Decode(strings.NewReader(text), "file")
		var objects []string
		for _, m := range found {
			objects = append(objects, m.Object.GetName()+" of "+strings.TrimPrefix(m.Source, "file: "))
		}
		if got := strings.Join(objects, ", "); got != want.objects {
			t.Errorf("%s: got %s, want %s", text, got, want.objects)
		}
		if got := strings.TrimPrefix(fmt.Sprint(err), "<nil>"); got != want.err {
			t.Errorf("%s: got the error %s, want %s", text, got, want.err)
		}
	}
}
