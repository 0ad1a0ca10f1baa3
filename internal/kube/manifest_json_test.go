package kube

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// JSON is not read as YAML, and means the same.
func TestJSONMeansWhatItMeansAsYAML(t *testing.T) {
	const document = `{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"on": "yes"}}},
  {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}]}`
	asItIs, err := Decode(strings.NewReader(document), "file")
	if err != nil {
		t.Fatal(err)
	}
	// A comment makes it YAML.
	asYAML, err := Decode(strings.NewReader("# a comment\n"+document), "file")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asYAML, asItIs); diff != "" || len(asItIs) != 2 {
		t.Errorf("%d objects; YAML against JSON: %s", len(asItIs), diff)
	}
	if _, err := Decode(strings.NewReader(`{"apiVersion": "v1",`), "file"); err == nil || !strings.Contains(err.Error(), "is neither YAML nor JSON") {
		t.Errorf("half a document is answered with %v", err)
	}
}
