package manifest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/kube/manifest"
)

func TestParseOrdersDefinitionsFirst(t *testing.T) {
	objects, err := manifest.Parse(
		[]byte("# nothing but a comment\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n"+
			"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: b}\n"),
		[]byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: c}\n"),
	)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range objects {
		names = append(names, o.GetName())
	}
	if diff := cmp.Diff([]string{"b", "a", "c"}, names); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestParseRefusesInvalidManifest(t *testing.T) {
	for text, want := range map[string]string{
		"kind: Namespace\nmetadata: {name: a}": "apiVersion",
		"apiVersion: v1\nkind: Namespace":      "metadata.name",
		"\tnot yaml":                           "manifest 0",
	} {
		if _, err := manifest.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error = %v, want one about %s", text, err, want)
		}
	}
}
