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
